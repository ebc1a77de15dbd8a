//! What the threads' logs have in common.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::assemble::{Rate, assemble};
use super::log::{Filed, Log};
use super::skew;
use super::stamp::Source;
use crate::history::History;
use crate::operation::Op;

/// Collects the logs of a test's threads; see [the module](super).
#[derive(Debug)]
pub struct Recorder {
    source: Source,
    skew: u64,
    began: Moment,
    room: usize,
    limit: usize,
    processes: AtomicU32,
    drawer: Arc<Drawer>,
    names: Mutex<Vec<String>>,
}

/// Where logs go when they are full of what happened.
#[derive(Debug, Default)]
pub(super) struct Drawer(Mutex<Vec<Filed>>);

impl Drawer {
    pub(super) fn file(&self, log: Filed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(log);
    }
}

/// One moment in both times.
#[derive(Debug, Clone, Copy)]
struct Moment {
    stamp: u64,
    instant: Instant,
}

impl Moment {
    fn now(source: Source) -> Self {
        Moment { stamp: source.before(), instant: Instant::now() }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new()
    }
}

impl Recorder {
    /// How many operations a log has room for at first: two megabytes of them.
    pub const ROOM: usize = 50_000;
    /// How many operations a log takes at most.
    pub const LIMIT: usize = 1 << 22;

    /// A recorder without logs. The first one in a process measures the clocks: some 100 µs a processor, on a busy
    /// machine up to 0.3 s, and some seconds in all if that shows little; then the next one measures them again.
    pub fn new() -> Self {
        Recorder::with(Source::best())
    }

    fn with(source: Source) -> Self {
        // Each measurement proves a bound, so the least of them is one.
        static SKEWS: [AtomicU64; 2] = [const { AtomicU64::new(u64::MAX) }; 2];
        let known = &SKEWS[source as usize];
        if known.load(Ordering::Relaxed) > skew::coarse(source) {
            known.fetch_min(skew::measure(source), Ordering::Relaxed);
        }
        Recorder {
            source,
            skew: known.load(Ordering::Relaxed),
            began: Moment::now(source),
            room: Recorder::ROOM,
            limit: Recorder::LIMIT,
            processes: AtomicU32::new(0),
            drawer: Arc::default(),
            names: Mutex::default(),
        }
    }

    /// Each log has memory for at least so many operations (40 bytes each) from the start, and asks for as much when it is used up.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn room(self, operations: usize) -> Self {
        assert!(operations > 0, "a log without room records nothing");
        Recorder { room: operations, ..self }
    }

    /// No log takes more operations than this; the history ends when the first one is full.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn limit(self, operations: usize) -> Self {
        assert!(operations > 0, "a log without room records nothing");
        Recorder { limit: operations, ..self }
    }

    /// The log of the next thread.
    pub fn log(&self) -> Log {
        // Relaxed: numbers need only be distinct.
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        Log::new(Arc::clone(&self.drawer), self.source, process, self.room.min(self.limit), self.limit)
    }

    /// An operation of your own specification, by its name.
    pub fn op(&self, name: &str) -> Op {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        super::assemble::builder(&names).op(name)
    }

    /// How much later than another one an operation must have begun, by the clocks, to count as later, in nanoseconds; as measured before the
    /// recording.
    pub fn skew(&self) -> u64 {
        self.rate(Moment::now(self.source)).skew(self.skew)
    }

    /// The history: of all logs, which have all been dropped.
    ///
    /// Measures the clocks again, for as long as a [new](Self::new) recorder, so that it knows their difference at
    /// both ends of the recording.
    ///
    /// # Panics
    /// If a log has not been dropped: what its thread did is not known yet. Threads of a scope have ended with it; others
    /// have to be joined first.
    pub fn finish(self) -> History {
        let rate = self.rate(Moment::now(self.source));
        let skew = self.skew.max(skew::measure(self.source));
        let filed = std::mem::take(&mut *self.drawer.0.lock().unwrap_or_else(PoisonError::into_inner));
        assert_eq!(
            filed.len(),
            self.processes.into_inner() as usize,
            "a log is still in use: join its thread, or drop it"
        );
        let names = self.names.into_inner().unwrap_or_else(PoisonError::into_inner);
        assemble(filed, &names, &rate, rate.skew(skew))
    }

    fn rate(&self, now: Moment) -> Rate {
        match self.source {
            Source::Clock => Rate::new(1, 1),
            Source::Counter => {
                let passed = now.instant.duration_since(self.began.instant);
                Rate::new(passed.as_nanos() as u64, now.stamp.wrapping_sub(self.began.stamp))
            }
        }
    }
}
