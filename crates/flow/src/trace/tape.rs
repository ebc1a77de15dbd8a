//! The tape: the listener that collects the records of all workers, for a file, for a live trace, or for both.
//!
//! Each worker fills its own chunk. A full chunk goes to the file, and to the *ring*, which keeps the newest chunks. A
//! tape that is off collects nothing: a worker checks the switch at the beginning of each turn, which is one or several
//! batches of work. The worker checks after it has taken the batches under the flow's mutex, so every run of a unit
//! that was admitted after the tape was switched on is recorded.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bytes::{checksum, put};
use super::clocks::Clocks;
use super::file::{CHUNK, MeanTimes, put_frame};
use super::part::{Part, Places};
use super::run::{Context, put_pull, put_run};
use super::sampling;
use crate::contain::contain;
use crate::engine::run::witness::{Ran, Track, Witness};

/// A worker flushes its chunk when it has this many bytes.
const CHUNK_BYTES: usize = 48 << 10;
/// The same limit for a tape without a file. Its chunks are smaller, because its ring drops old records chunk by chunk.
const SMALL_CHUNK_BYTES: usize = 8 << 10;

/// The maximum size of the records that a ring keeps; enough for about 800,000 runs of units in stages.
pub(super) const RING_BYTES: usize = 8 << 20;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Tape {
    on: AtomicBool,
    /// The number of units that are all recorded before sampling begins; 0 if every unit is recorded.
    whole: AtomicU64,
    out: Mutex<Option<Output>>,
    /// The chunks of all workers that have a track. A chunk's lock is taken before the ring's.
    chunks: Mutex<Chunks>,
    ring: Mutex<Ring>,
    /// The engine's own times, as far as workers have flushed them.
    times: Mutex<Times>,
}

/// The engine's own times.
#[derive(Default)]
struct Times {
    /// The engine's work between runs of batches in stages.
    between: Mean,
    /// The wait of a woken worker for a processor.
    wake_delay: Mean,
    /// The time from the start of a fiber to its first instruction.
    fiber_start: Mean,
}

/// A mean that is being computed.
#[derive(Default)]
struct Mean {
    ns: u64,
    count: u64,
}

impl Mean {
    fn count(&mut self, ns: u64) {
        self.add(&Mean { ns, count: 1 });
    }

    fn add(&mut self, other: &Mean) {
        self.ns = self.ns.saturating_add(other.ns);
        self.count += other.count;
    }

    fn ns(&self) -> u64 {
        self.ns / self.count.max(1)
    }
}

struct Output {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

#[derive(Default)]
struct Chunks {
    /// The number of workers that ever had a track.
    workers: u64,
    open: Vec<Arc<Mutex<Chunk>>>,
}

/// The newest chunks.
#[derive(Default)]
struct Ring {
    /// The first unit whose records the ring keeps; `None` if it keeps none.
    since: Option<u64>,
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Records of units with lower numbers may be missing.
    from_id: u64,
    /// Records of runs that began earlier may be missing.
    from_ns: u64,
}

#[derive(Clone)]
struct Frame {
    bytes: Arc<[u8]>,
    /// The highest unit number in the chunk.
    most_id: u64,
    /// The latest start time of a run in the chunk.
    last_ns: u64,
}

impl Ring {
    /// Notes that the ring lacks a chunk, and is complete only for units and runs after those of the chunk.
    fn lose(&mut self, frame: &Frame) {
        self.from_id = self.from_id.max(frame.most_id.saturating_add(1));
        self.from_ns = self.from_ns.max(frame.last_ns.saturating_add(1));
    }
}

/// The records that a tape has kept.
pub(super) struct Kept {
    pub(super) chunks: Vec<Arc<[u8]>>,
    /// All records of units with this number or a higher one are in the chunks.
    pub(super) from_id: u64,
    /// All records of runs that began at this time or later are in the chunks.
    pub(super) from_ns: u64,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// Makes the tape write to `out` from now on, and sample after `whole` units. Returns `false`, without effect, if
    /// the tape already has an output.
    pub(super) fn write_to(&self, out: Box<dyn Write + Send>, whole: Option<u64>) -> bool {
        let mut output = lock(&self.out);
        let is_new = output.is_none();
        if is_new {
            *output = Some(Output { out, failed: None });
            if self.keeps_since().is_none() {
                // Relaxed: `switch_on` publishes it.
                self.whole.store(whole.unwrap_or(0), Ordering::Relaxed);
            }
        }
        is_new
    }

    /// Records every unit from now on, without sampling.
    pub(super) fn take_all(&self) {
        // Relaxed: the flow's mutex, which the caller locks next, orders this store before the admission of the units
        // that matter.
        self.whole.store(0, Ordering::Relaxed);
    }

    /// Collects records from now on.
    pub(super) fn switch_on(&self) {
        // Pairs with the load in `begins`: a worker that sees the tape on also sees that the flow is witnessed.
        self.on.store(true, Ordering::Release);
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Keeps the newest chunks from now on, and drops earlier chunks. `from_ns` is the current time, and `from_id`
    /// the number of the next unit to be admitted.
    pub(super) fn keep_from(&self, from_id: u64, from_ns: u64) {
        let mut ring = lock(&self.ring);
        *ring = Ring { since: Some(from_id), from_id: from_id.max(ring.from_id), from_ns, ..Ring::default() };
    }

    /// The number of the first unit whose records are kept; `None` if chunks are not kept.
    pub(super) fn keeps_since(&self) -> Option<u64> {
        lock(&self.ring).since
    }

    /// Returns the newest records, about `most_bytes` of them. A worker that ends a run during the call waits for a few
    /// microseconds.
    pub(super) fn kept(&self, most_bytes: usize) -> Kept {
        let open = lock(&self.chunks).open.clone();
        // All locks are held together, so that each record is found once, either in its worker's chunk or in the ring.
        let chunks: Vec<_> = open.iter().map(|chunk| lock(chunk)).collect();
        let ring = lock(&self.ring);
        let mut kept = Kept { chunks: Vec::new(), from_id: ring.from_id, from_ns: ring.from_ns };
        let mut bytes = 0;
        for chunk in chunks.iter().filter(|chunk| !chunk.bytes.is_empty()) {
            kept.chunks.push(chunk.bytes.as_slice().into());
            bytes += chunk.bytes.len();
        }
        for frame in ring.frames.iter().rev() {
            if bytes + frame.bytes.len() <= most_bytes {
                bytes += frame.bytes.len();
                kept.chunks.push(frame.bytes.clone());
            } else {
                bytes = most_bytes;
                kept.from_id = kept.from_id.max(frame.most_id.saturating_add(1));
                kept.from_ns = kept.from_ns.max(frame.last_ns.saturating_add(1));
            }
        }
        kept
    }

    /// The mean of the engine's own times, as far as workers have flushed them.
    pub(super) fn mean_times(&self) -> MeanTimes {
        let times = lock(&self.times);
        MeanTimes {
            between_ns: times.between.ns(),
            wake_delay_ns: times.wake_delay.ns(),
            fiber_start_ns: times.fiber_start.ns(),
        }
    }

    /// Flushes all chunks, and takes the output out of the tape. Returns the first write error instead, if there was
    /// one.
    pub(super) fn finish(&self) -> Option<Result<Box<dyn Write + Send>, io::Error>> {
        let open = lock(&self.chunks).open.clone();
        for chunk in open {
            self.flush(lock(&chunk));
        }
        let Output { out, failed } = lock(&self.out).take()?;
        Some(failed.map_or(Ok(out), Err))
    }

    /// Moves a chunk's records to the file and the ring.
    fn flush(&self, mut chunk: MutexGuard<'_, Chunk>) {
        let times = std::mem::take(&mut chunk.times);
        let mut all = lock(&self.times);
        all.between.add(&times.between);
        all.wake_delay.add(&times.wake_delay);
        all.fiber_start.add(&times.fiber_start);
        drop(all);
        let (bytes, most_id, last_ns) = chunk.take();
        if bytes.is_empty() {
            return;
        }
        let bytes: Arc<[u8]> = bytes.into();
        lock(&self.ring).push(Frame { bytes: bytes.clone(), most_id, last_ns });
        // A write to the file may take a long time. The chunk's lock is released before the write, so that only this
        // worker waits.
        drop(chunk);
        if let Some(output) = &mut *lock(&self.out)
            && output.failed.is_none()
        {
            // The output is the program's code. If it panics, the worker must still settle its batch.
            let written = contain(|| put_frame(&mut output.out, CHUNK, &bytes, checksum(&bytes)));
            let panicked = || Err(io::Error::other("the output of the trace panicked"));
            output.failed = written.unwrap_or_else(panicked).err();
        }
    }
}

impl Ring {
    fn push(&mut self, frame: Frame) {
        if self.since.is_none() {
            return;
        }
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        while self.bytes > RING_BYTES
            && let Some(oldest) = self.frames.pop_front()
        {
            self.bytes -= oldest.bytes.len();
            self.lose(&oldest);
        }
    }
}

impl Witness for Tape {
    fn track(self: Arc<Self>, of_fibers: bool) -> Box<dyn Track> {
        let chunk_bytes = if lock(&self.out).is_some() { CHUNK_BYTES } else { SMALL_CHUNK_BYTES };
        let mut chunks = lock(&self.chunks);
        let chunk = Arc::new(Mutex::new(Chunk::of(chunks.workers)));
        chunks.workers += 1;
        chunks.open.push(chunk.clone());
        drop(chunks);
        let (clocks, part) = (Clocks::new(of_fibers), Part::default());
        Box::new(WorkerTrack { tape: self, chunk, chunk_bytes, clocks, part, records: false, whole: 0 })
    }
}

/// The records of a worker that are not flushed yet.
struct Chunk {
    worker: u64,
    bytes: Vec<u8>,
    context: Context,
    times: Times,
}

impl Chunk {
    fn of(worker: u64) -> Self {
        Chunk { worker, bytes: Vec::new(), context: Context::default(), times: Times::default() }
    }

    /// Returns the bytes and the context for the next record. A chunk begins with the number of its worker.
    fn parts(&mut self) -> (&mut Vec<u8>, &mut Context) {
        if self.bytes.is_empty() {
            put(&mut self.bytes, self.worker);
        }
        (&mut self.bytes, &mut self.context)
    }

    /// Takes the bytes, the highest unit number in them, and the latest start time of a run. The next record
    /// begins a new chunk.
    fn take(&mut self) -> (Vec<u8>, u64, u64) {
        let context = std::mem::take(&mut self.context);
        (std::mem::take(&mut self.bytes), context.most_id(), context.latest_ns())
    }
}

/// The part of the tape for one worker.
struct WorkerTrack {
    tape: Arc<Tape>,
    chunk: Arc<Mutex<Chunk>>,
    chunk_bytes: usize,
    clocks: Clocks,
    /// The recorded part of the latest batch.
    part: Part,
    /// Whether the tape was on when the turn began.
    records: bool,
    /// The tape's `whole` when the turn began.
    whole: u64,
}

impl WorkerTrack {
    /// Writes a record. `between_ns` is the time of the engine's work before the run, if it is known.
    fn note(&self, between_ns: Option<u64>, write: impl FnOnce(&mut Vec<u8>, &mut Context)) {
        let mut chunk = lock(&self.chunk);
        if let Some(ns) = between_ns {
            chunk.times.between.count(ns);
        }
        let (bytes, context) = chunk.parts();
        write(bytes, context);
        if bytes.len() >= self.chunk_bytes {
            self.tape.flush(chunk);
        }
    }
}

impl Track for WorkerTrack {
    #[cfg(feature = "fibers")]
    fn fiber_began(&mut self, delay_ns: u64) {
        if self.tape.is_on() {
            lock(&self.chunk).times.fiber_start.count(delay_ns);
        }
    }

    fn rests(&mut self) {
        if self.records {
            self.clocks.rest();
        }
    }

    fn begins(&mut self, now: u64) {
        if !self.tape.is_on() {
            return;
        }
        if !std::mem::replace(&mut self.records, true) {
            self.clocks.forget();
        }
        // Relaxed: see the comments at the stores.
        self.whole = self.tape.whole.load(Ordering::Relaxed);
        self.clocks.begin(now);
    }

    fn ran(&mut self, ran: &Ran<'_>) {
        if !self.records {
            return;
        }
        let between_ns = self.clocks.take_between();
        if let Some(ns) = self.clocks.take_wake_delay() {
            lock(&self.chunk).times.wake_delay.count(ns);
        }
        let cpu = self.clocks.end(ran.began_ns, ran.settlement.ended_ns);
        if !ran.goes_on {
            self.part.choose(ran, self.whole);
        }
        let (ids, rows) = (self.part.ids(), ran.rows.len());
        debug_assert!(self.part.all().iter().eq(ran.rows.iter().map(|row| ran.site.stamps().id(row))), "other units");
        match self.part.places() {
            Places::All => self.note(between_ns, |out, context| put_run(out, context, ran, 0..rows, ids, cpu)),
            Places::Some(places) => {
                self.note(between_ns, |out, context| put_run(out, context, ran, places.iter().copied(), ids, cpu));
            }
            Places::None => {}
        }
    }

    fn pulled(&mut self, first_id: u64, units: u64, began_ns: u64, ended_ns: u64) {
        if self.records {
            self.clocks.end(began_ns, ended_ns);
            if units > 0 && (self.whole == 0 || sampling::is_one_recorded(first_id, units, self.whole)) {
                self.note(None, |out, context| put_pull(out, context, first_id, units, began_ns, ended_ns));
            }
        }
    }
}

impl Drop for WorkerTrack {
    /// Flushes the records of a worker whose thread ends.
    fn drop(&mut self) {
        self.tape.flush(lock(&self.chunk));
        lock(&self.tape.chunks).open.retain(|open| !Arc::ptr_eq(open, &self.chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize, most_id: u64) -> Frame {
        Frame { bytes: vec![0; bytes].into(), most_id, last_ns: most_id }
    }

    #[test]
    fn a_ring_keeps_the_newest_chunks_and_knows_which_units_are_whole() {
        let tape = Tape::default();
        lock(&tape.ring).push(frame(10, 5));
        assert_eq!(tape.kept(RING_BYTES).chunks.len(), 0, "the ring kept a chunk before it was asked to");
        tape.keep_from(100, 100);
        for (nth, most_id) in [(1, 120), (2, 110), (3, 150)] {
            lock(&tape.ring).push(frame(RING_BYTES / 4 * nth, most_id));
        }
        // The first two chunks have been dropped.
        let kept = tape.kept(RING_BYTES);
        assert_eq!((kept.chunks.len(), kept.from_id, kept.from_ns), (1, 121, 121));
        lock(&tape.ring).push(frame(100, 140));
        let newest = tape.kept(100);
        assert_eq!(
            (newest.chunks.len(), newest.from_id),
            (1, 151),
            "the newest chunks are not limited to the requested bytes"
        );
        tape.keep_from(7, 7);
        let kept = tape.kept(RING_BYTES);
        assert_eq!((kept.chunks.len(), kept.from_id), (0, 121), "the number has fallen");
    }
}
