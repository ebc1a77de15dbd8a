//! The file of a trace: a header line with the model of the flow, chunks of records, and the summary of the run.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::bytes::{Numbers, checksum};
use super::model::Model;
use super::run::{Context, Record, read};
use crate::report::{Outcome, Report};

/// The tag of a chunk of records.
pub(super) const CHUNK: u8 = b'C';
/// The tag of the summary, which ends a trace.
pub(super) const SUMMARY: u8 = b'S';

/// The maximum length of the first line.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// The maximum length of a frame.
const MAX_FRAME_BYTES: u64 = 64 << 20;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) millstream_trace: u32,
    pub(crate) model: Model,
    pub(crate) machine: Machine,
    /// The program's note about the run.
    pub(crate) note: serde_json::Value,
    /// If the recording [samples](super::sampling) its later units: the number of earlier units, which are all
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) whole: Option<u64>,
    /// Present in a live trace, which covers a part of a run that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Window>,
}

/// The part of a run that a live trace covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// The trace has all records of units with this number or a higher one.
    pub(crate) from_id: u64,
    /// The records are complete for runs that began before this time.
    pub(crate) until_ns: u64,
    /// The trace has all records of runs that began at this time or later.
    #[serde(default)]
    pub(crate) from_ns: u64,
    /// N if the trace has one in N of the waiting units; 0 if it has no waiting units.
    #[serde(default)]
    pub(crate) waiting_one_in: u64,
}

/// The properties of the machine that a replay depends on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    /// The time from a wake-up to the first instruction of the woken worker.
    pub(crate) wake_ns: u64,
    /// The time from the start of a thread to its first instruction.
    pub(crate) start_ns: u64,
}

/// The mean times of the engine's own work during the run; 0 if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MeanTimes {
    /// The engine's own work for each run of a batch in a stage.
    pub(crate) between_ns: u64,
    /// The time for which a woken worker waited for a processor.
    pub(crate) wake_delay_ns: u64,
    /// The time from the start of a fiber to its first instruction.
    pub(crate) fiber_start_ns: u64,
}

/// The measurements of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) complete: bool,
    pub(crate) wall_ns: u64,
    pub(crate) admitted: u64,
    pub(crate) split: u64,
    pub(crate) retired: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) gathered: u64,
    pub(crate) left: u64,
    /// The number of units that left in a window.
    #[serde(default)]
    pub(crate) departed: u64,
    /// The time that this many units take to leave at the window's steady pace.
    #[serde(default)]
    pub(crate) departed_ns: u64,
    pub(crate) latency_p50_ns: u64,
    pub(crate) latency_p99_ns: u64,
    pub(crate) latency_mean_ns: u64,
    pub(crate) bottleneck: String,
    #[serde(flatten)]
    pub(crate) times: MeanTimes,
    /// The number of shared workers at the end.
    pub(crate) workers: u64,
    /// The cap on units in flight at the end.
    pub(crate) inflight: u64,
    /// The capacities of the resources at the end.
    pub(crate) capacities: Vec<u64>,
}

impl Measured {
    pub(crate) fn of(report: &Report, times: MeanTimes) -> Self {
        Measured {
            times,
            complete: report.outcome == Outcome::Complete,
            wall_ns: (report.wall_s * 1e9) as u64,
            admitted: report.admitted,
            split: report.split,
            retired: report.retired,
            dead_lettered: report.dead_lettered,
            gathered: report.gathered,
            left: report.left,
            departed: 0,
            departed_ns: 0,
            latency_p50_ns: report.latency_ns.p50,
            latency_p99_ns: report.latency_ns.p99,
            latency_mean_ns: report.latency_ns.mean,
            bottleneck: report.bottleneck.clone(),
            workers: report.workers,
            inflight: report.inflight_cap,
            capacities: report.resources.iter().map(|resource| resource.capacity).collect(),
        }
    }
}

/// The reason why a file could not be read as a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Reading failed.
    #[error("the trace could not be read: {0}")]
    Io(#[from] io::Error),
    /// The file is not a trace.
    #[error("this is not a trace: its first line should be JSON with `millstream_trace`, but {0}")]
    NotATrace(String),
    /// The trace has another format version.
    #[error("the trace has format {found}, but this program reads format {VERSION}")]
    #[expect(missing_docs, reason = "the message says what the field is")]
    Version { found: u32 },
    /// A part of the file is damaged.
    #[error("the trace is damaged at byte {at}: {what}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    Damaged { at: u64, what: String },
    /// The end of the trace is missing.
    #[error("the trace ends at byte {at} without the summary of its run: the run was killed, or has not ended yet")]
    #[expect(missing_docs, reason = "the message says what the field is")]
    CutOff { at: u64 },
    /// The trace has more runs of units than a replay keeps.
    #[error("the trace has more than {most} runs of units in stages, which is the limit for a replay")]
    #[expect(missing_docs, reason = "the message says what the field is")]
    TooLong { most: usize },
    /// Parts of the trace contradict each other.
    #[error("the trace contradicts itself: {0}")]
    Contradiction(String),
}

impl Header {
    pub(crate) fn new(model: Model, machine: Machine, note: serde_json::Value) -> Self {
        Header { millstream_trace: VERSION, model, machine, note, whole: None, window: None }
    }

    pub(super) fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self).map_err(io::Error::other)?;
        line.push(b'\n');
        out.write_all(&line)
    }

    /// Reads the first line. Returns the header and the line's length.
    fn read_from(input: &mut impl BufRead) -> Result<(Self, u64), TraceError> {
        #[derive(Deserialize)]
        struct Version {
            millstream_trace: u32,
        }
        let mut line = Vec::new();
        input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(TraceError::NotATrace("the file has no first line".into()));
        }
        let foreign = |error: serde_json::Error| TraceError::NotATrace(format!("that line is not: {error}"));
        let Version { millstream_trace: found } = serde_json::from_slice(&line).map_err(foreign)?;
        if found != VERSION {
            return Err(TraceError::Version { found });
        }
        let header: Header = serde_json::from_slice(&line).map_err(foreign)?;
        match header.model.contradiction() {
            Some(contradiction) => Err(TraceError::Contradiction(contradiction)),
            None => Ok((header, line.len() as u64)),
        }
    }
}

/// Writes a frame: tag, length, checksum, and the bytes.
pub(super) fn put_frame(out: &mut dyn Write, tag: u8, bytes: &[u8], sum: u64) -> io::Result<()> {
    let mut head = [0; 13];
    head[0] = tag;
    head[1..5].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    head[5..].copy_from_slice(&sum.to_le_bytes());
    out.write_all(&head)?;
    out.write_all(bytes)
}

/// Reads a trace from its beginning to its summary. Passes each record to `take`, with the number of the worker that
/// wrote it. Keeps one chunk in memory at a time.
pub(crate) fn read_trace(
    mut input: impl BufRead,
    mut take: impl FnMut(&Header, u64, Record) -> Result<(), TraceError>,
) -> Result<(Header, Measured), TraceError> {
    let (header, mut at) = Header::read_from(&mut input)?;
    loop {
        let damaged = |what: &str| TraceError::Damaged { at, what: what.into() };
        let mut head = [0; 13];
        match input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(TraceError::CutOff { at }),
            Err(error) => return Err(error.into()),
        }
        let [tag, length @ .., _, _, _, _, _, _, _, _] = head;
        let length = u64::from(u32::from_le_bytes(length));
        let sum = u64::from_le_bytes(*head.last_chunk().expect("a head is longer than its checksum"));
        if !matches!(tag, CHUNK | SUMMARY) || length > MAX_FRAME_BYTES {
            return Err(damaged("a part of the file should begin here, with its kind and its length"));
        }
        let mut bytes = Vec::new();
        if (&mut input).take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(TraceError::CutOff { at });
        }
        if checksum(&bytes) != sum {
            return Err(damaged("the bytes after this differ from their checksum"));
        }
        if tag == SUMMARY {
            let measured = serde_json::from_slice(&bytes).map_err(|error| damaged(&format!("the summary: {error}")))?;
            if !input.fill_buf()?.is_empty() {
                at += head.len() as u64 + length;
                return Err(TraceError::Damaged { at, what: "the trace ends here, and more bytes follow".into() });
            }
            return Ok((header, measured));
        }
        let (mut numbers, mut context) = (Numbers(&bytes), Context::default());
        let worker = numbers.next().ok_or_else(|| damaged("a chunk begins with the number of its worker"))?;
        while !numbers.is_empty() {
            let record = read(&mut numbers, &mut context).ok_or_else(|| damaged("a record is malformed"))?;
            take(&header, worker, record)?;
        }
        at += head.len() as u64 + length;
    }
}
