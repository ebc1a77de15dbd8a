//! A recording: the trace of a flow while it runs.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use super::bytes::{checksum, put};
use super::costs;
use super::file::{CHUNK, Header, Measured, SUMMARY, put_frame};
use super::model::ModelResource;
use super::run::{Context, put_pull, put_run};
use crate::contain::contain;
use crate::engine::run::witness::{Ran, Track, Witness, take_charged};
use crate::flow::Flow;
use crate::report::Report;

/// A worker hands its records over when it has this many bytes of them.
const CHUNK_BYTES: usize = 48 << 10;

/// A shorter run is taken for processor time; the clock of a thread's processor time costs a system call.
const WORTH_A_CLOCK_NS: u64 = 20_000;

/// The kernel's account of waits for a processor is read after a run of this length; that takes about a microsecond.
const WORTH_AN_ACCOUNT_NS: u64 = 200_000;

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// Records what each unit does in each stage, for [`Trace::read`](crate::Trace::read): call it before the flow starts,
    /// and [`finish`](Recording::finish) with the report. `note` goes into the trace as it is.
    ///
    /// The records are at most about 16 bytes for a unit in a stage, and far fewer where units are alike. Workers write
    /// them in chunks of 48 KiB, while no unit is in their hands. The call measures the machine for about two milliseconds.
    ///
    /// # Errors
    /// Those of writing the first line, and `AlreadyExists` if the flow is recorded already.
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
        let mut model = self.model.clone();
        // Settings may have changed since the build.
        let settings = self.shared.settings();
        (model.inflight, model.workers) = (settings.inflight, settings.shared_workers);
        model.memory = (settings.memory != u64::MAX).then_some(settings.memory);
        for (resource, spec) in model.resources.iter_mut().zip(self.shared.lock().resources()) {
            *resource = ModelResource::of(spec);
        }
        let header = Header::new(model, costs::measure(), note);
        let (recording, witness) = Recording::begin(Box::new(out), &header)?;
        match self.shared.set_witness(witness) {
            true => Ok(recording),
            false => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the flow is recorded already")),
        }
    }
}

/// The recording of a flow's trace, until [`finish`](Self::finish) ends it.
///
/// Workers write their records in chunks. An error of the output ends the recording and not the flow; `finish` reports
/// it.
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
    /// Begins a recording that the flow's site is told to write.
    pub(crate) fn begin(mut out: Box<dyn Write + Send>, header: &Header) -> io::Result<(Self, Arc<dyn Witness>)> {
        header.write_to(&mut out)?;
        let tape = Arc::new(Tape { out: Mutex::new(Output { out, failed: None }), chunks: Mutex::default() });
        Ok((Recording { tape: tape.clone() }, tape))
    }

    /// Ends the trace with the run's `report`.
    ///
    /// # Errors
    /// The first error of the output since the beginning; the trace is of no use then.
    pub fn finish(self, report: &Report) -> io::Result<()> {
        let chunks: Vec<_> = lock(&self.tape.chunks).drain(..).collect();
        for chunk in chunks {
            let bytes = lock(&chunk).take();
            self.tape.write(CHUNK, &bytes);
        }
        let summary = serde_json::to_vec(&Measured::of(report)).map_err(io::Error::other)?;
        self.tape.write(SUMMARY, &summary);
        let mut output = lock(&self.tape.out);
        match output.failed.take() {
            Some(error) => Err(error),
            None => {
                let out = &mut output.out;
                contain(|| out.flush()).unwrap_or_else(|| Err(io::Error::other("the output of the trace panicked")))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Tape {
    out: Mutex<Output>,
    /// The unwritten records of all workers that ever had a track.
    chunks: Mutex<Vec<Arc<Mutex<Chunk>>>>,
}

struct Output {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

impl Tape {
    fn write(&self, tag: u8, bytes: &[u8]) {
        let mut output = lock(&self.out);
        if output.failed.is_none() && !bytes.is_empty() {
            let out = &mut output.out;
            // The output is the program's code, and runs on a worker that has units in hand.
            let written = contain(|| put_frame(out, tag, bytes, checksum(bytes)));
            let panicked = || Err(io::Error::other("the output of the trace panicked"));
            output.failed = written.unwrap_or_else(panicked).err();
        }
    }
}

impl Witness for Tape {
    fn track(self: Arc<Self>) -> Box<dyn Track> {
        let mut chunks = lock(&self.chunks);
        let chunk = Arc::new(Mutex::new(Chunk::of(chunks.len() as u64)));
        chunks.push(chunk.clone());
        drop(chunks);
        Box::new(WorkerTrack { tape: self, chunk, clocks: Clocks::new() })
    }
}

/// The records of a worker that are not written yet.
struct Chunk {
    worker: u64,
    bytes: Vec<u8>,
    context: Context,
}

impl Chunk {
    fn of(worker: u64) -> Self {
        Chunk { worker, bytes: Vec::new(), context: Context::default() }
    }

    /// The bytes and the context for the next record. A chunk begins with the number of its worker.
    fn parts(&mut self) -> (&mut Vec<u8>, &mut Context) {
        if self.bytes.is_empty() {
            put(&mut self.bytes, self.worker);
        }
        (&mut self.bytes, &mut self.context)
    }

    /// Takes the bytes; the next record begins a chunk.
    fn take(&mut self) -> Vec<u8> {
        self.context = Context::default();
        std::mem::take(&mut self.bytes)
    }
}

/// One worker's part of the recording.
struct WorkerTrack {
    tape: Arc<Tape>,
    chunk: Arc<Mutex<Chunk>>,
    clocks: Clocks,
}

impl WorkerTrack {
    fn note(&self, write: impl FnOnce(&mut Vec<u8>, &mut Context)) {
        let mut chunk = lock(&self.chunk);
        let (bytes, context) = chunk.parts();
        write(bytes, context);
        if bytes.len() >= CHUNK_BYTES {
            let full = chunk.take();
            drop(chunk);
            self.tape.write(CHUNK, &full);
        }
    }
}

impl Track for WorkerTrack {
    fn begins(&mut self) {
        self.clocks.begin();
    }

    fn ran(&mut self, ran: &Ran<'_>) {
        let cpu = self.clocks.end(ran.settlement.ended_ns.saturating_sub(ran.began_ns));
        self.note(|out, context| put_run(out, context, ran, cpu));
    }

    fn pulled(&mut self, first_id: u64, units: u64, began_ns: u64, ended_ns: u64) {
        self.clocks.end(ended_ns.saturating_sub(began_ns));
        if units > 0 {
            self.note(|out, context| put_pull(out, context, first_id, units, began_ns, ended_ns));
        }
    }
}

/// A thread's clocks of processor time, and of waits for a processor.
struct Clocks {
    /// The processor time at the last look, and that of runs since then which were too short for one.
    cpu_ns: u64,
    unread_ns: u64,
    /// The kernel's account of this thread, if it keeps one, and the wait at the last look.
    account: Option<File>,
    delayed_ns: u64,
    /// The last run was long, so the next one is worth a look at its beginning.
    long: bool,
}

impl Clocks {
    fn new() -> Self {
        let account = File::open("/proc/thread-self/schedstat").ok();
        let mut clocks = Clocks { cpu_ns: 0, unread_ns: 0, account, delayed_ns: 0, long: true };
        clocks.begin();
        clocks
    }

    /// The thread begins a run. Its wait for a processor since the last one is not the run's.
    fn begin(&mut self) {
        if self.long {
            (self.cpu_ns, self.unread_ns) = (thread_cpu_ns(), 0);
            self.delayed_ns = self.delay_ns();
        }
    }

    /// The processor time of a run of `wall_ns`, with that charged to it, and its wait for a processor; `None` if all of
    /// its time was processor time, as far as is known.
    fn end(&mut self, wall_ns: u64) -> Option<(u64, u64)> {
        let (charged_ns, charged_delay_ns) = take_charged();
        self.long = wall_ns >= WORTH_AN_ACCOUNT_NS;
        if wall_ns < WORTH_A_CLOCK_NS && charged_ns == 0 {
            self.unread_ns += wall_ns;
            return None;
        }
        let cpu_ns = thread_cpu_ns();
        let own_ns = cpu_ns.saturating_sub(self.cpu_ns).saturating_sub(self.unread_ns).min(wall_ns);
        (self.cpu_ns, self.unread_ns) = (cpu_ns, 0);
        let mut delayed_ns = charged_delay_ns;
        if self.long {
            let total_ns = self.delay_ns();
            delayed_ns += total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns));
        }
        Some((own_ns + charged_ns, delayed_ns))
    }

    /// The time that this thread has waited for a processor so far, by the kernel's account.
    fn delay_ns(&self) -> u64 {
        let mut text = [0; 64];
        let read = self.account.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let second = std::str::from_utf8(&text[..read]).ok().and_then(|text| text.split_whitespace().nth(1));
        second.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_no_processor_time_and_a_busy_loop_does() {
        let mut clocks = Clocks::new();
        let began = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (cpu_ns, _) = clocks.end(began.elapsed().as_nanos() as u64).unwrap();
        assert!(cpu_ns < 2_000_000, "{cpu_ns}");
        clocks.begin();
        let began = thread_cpu_ns();
        while thread_cpu_ns() < began + 3_000_000 {}
        let (cpu_ns, _) = clocks.end(1_000_000_000).unwrap();
        assert!((3_000_000..6_000_000).contains(&cpu_ns), "{cpu_ns}");
        assert_eq!(clocks.end(100), None, "too short for a clock");
    }

    #[test]
    fn charged_time_belongs_to_the_run_that_it_was_charged_in() {
        use std::time::Duration;
        let mut clocks = Clocks::new();
        crate::engine::run::witness::charge(Duration::from_millis(7), Duration::from_millis(2));
        let (cpu_ns, delayed_ns) = clocks.end(9_000).unwrap();
        assert!((7_000_000..7_020_000).contains(&cpu_ns) && delayed_ns == 2_000_000);
        assert_eq!(clocks.end(9_000), None);
    }
}
