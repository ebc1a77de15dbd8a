//! A recording: the trace of a flow while it runs, in a file.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::bytes::checksum;
use super::costs;
use super::file::{Header, Measured, SUMMARY, put_frame};
use super::sampling;
use super::tape::Tape;
use crate::contain::contain;
use crate::flow::Flow;
use crate::report::Report;

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// Records the visits of each unit to each stage, for [`Trace::read`](crate::Trace::read). Call it before the flow
    /// starts, and call [`finish`](Recording::finish) with the report. `note` is stored in the trace unchanged.
    ///
    /// A record takes at most about 16 bytes for a unit in a stage, and far fewer if units are alike. A worker writes
    /// its records in chunks of 48 KiB, after it has run a batch and before it settles the batch. The call measures the
    /// machine for about two milliseconds.
    ///
    /// Of more than a million units a sample is recorded, so that a file grows with the logarithm of the run's length:
    /// whole families, of which a reader makes an even sample (see [`Trace::weight`](crate::Trace::weight)). All units
    /// are recorded where children are split in turn or gathered by parent, and as long as a
    /// [live trace](crate::LiveTrace) is kept as well.
    ///
    /// # Errors
    /// Returns errors of writing the first line, and `AlreadyExists` if the flow is being recorded already.
    ///
    /// ```
    /// use millstream_flow::{Flow, Need, Trace, WhatIf};
    ///
    /// let mut flow = Flow::builder("naps");
    /// let bed = flow.tokens("bed", 1);
    /// let (nap, done) = (flow.inlet("nap"), flow.retire());
    /// flow.update(nap, |_: &mut u32, _| {
    ///     std::thread::sleep(std::time::Duration::from_millis(2));
    ///     Ok(())
    /// })
    /// .need(Need::tokens(bed, 1))
    /// .blocking()
    /// .to(done);
    /// let flow = flow.build(nap)?;
    /// let path = std::env::temp_dir().join(format!("naps-{}.trace", std::process::id()));
    /// let recording = flow.record(std::fs::File::create(&path)?, "an afternoon".into())?;
    /// recording.finish(&flow.run(0..50))?;
    ///
    /// let trace = Trace::read(std::io::BufReader::new(std::fs::File::open(&path)?))?;
    /// let as_it_was = trace.replay(&WhatIf::default())?;
    /// let with_four = trace.replay(&WhatIf::default().capacity("bed", 4))?;
    /// assert!(with_four.report.wall_s < as_it_was.report.wall_s / 3.0);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(&self, out: impl Write + Send + 'static, note: serde_json::Value) -> io::Result<Recording> {
        self.record_whole(out, note, sampling::WHOLE)
    }

    /// [`record`](Self::record) with another number of units that are all recorded, rounded up to whole blocks.
    pub(crate) fn record_whole(
        &self,
        mut out: impl Write + Send + 'static,
        note: serde_json::Value,
        whole: u64,
    ) -> io::Result<Recording> {
        let tape = self.tape();
        // Settings may have changed since the build.
        let model = self.built.present(&self.shared);
        let whole = Some(whole.checked_next_multiple_of(sampling::BLOCK).unwrap_or(u64::MAX))
            .filter(|_| model.tells_families());
        let mut header = Header::new(model, costs::measure(), note);
        header.whole = whole;
        header.write_to(&mut out)?;
        if !tape.write_to(Box::new(out), whole) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the flow is recorded already"));
        }
        self.shared.site().set_witnessed();
        tape.switch_on();
        Ok(Recording { tape })
    }

    /// The flow's tape, which listens to its workers from the first call on.
    pub(super) fn tape(&self) -> Arc<Tape> {
        let begin = || {
            let tape = Arc::<Tape>::default();
            self.shared.set_witness(tape.clone());
            tape
        };
        self.tape.get_or_init(begin).clone()
    }
}

/// The recording of a flow's trace, until [`finish`](Self::finish) ends it.
///
/// Workers write their records in chunks. A write error ends the recording but not the flow; `finish` reports it.
#[must_use = "a trace is complete when its recording is finished"]
pub struct Recording {
    tape: Arc<Tape>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

impl Recording {
    /// Ends the trace with the run's `report`.
    ///
    /// # Errors
    /// Returns the first write error since the beginning; the trace is then useless.
    pub fn finish(self, report: &Report) -> io::Result<()> {
        let Some(out) = self.tape.finish() else { return Ok(()) };
        let (mut out, times) = (out?, self.tape.mean_times());
        let summary = serde_json::to_vec(&Measured::of(report, times)).map_err(io::Error::other)?;
        contain(|| put_frame(&mut out, SUMMARY, &summary, checksum(&summary)).and_then(|()| out.flush()))
            .unwrap_or_else(|| Err(io::Error::other("the output of the trace panicked")))
    }
}
