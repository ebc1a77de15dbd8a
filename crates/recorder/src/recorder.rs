//! The recorder, which creates the threads' logs and collects them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use millstream_history::{History, Op};

use crate::assemble::{Rate, assemble, builder};
use crate::log::{Filed, Log};
use crate::skew;
use crate::stamp::Source;

/// Collects the logs of a test's threads; see [the crate](crate).
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

/// The logs that have been dropped.
#[derive(Debug, Default)]
pub(crate) struct Drawer(Mutex<Vec<Filed>>);

impl Drawer {
    pub(crate) fn file(&self, log: Filed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(log);
    }
}

/// One moment: the stamp and the time of the clock.
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
    /// The default initial capacity of a log, in operations. This many operations take two megabytes.
    pub const ROOM: usize = 50_000;
    /// The default maximum number of operations of a log.
    const LIMIT: usize = 1 << 22;

    /// Returns a recorder without logs. The first recorder in a process measures by how much the processors' clocks differ.
    /// This takes about 100 µs per processor, or up to 0.3 s on a busy machine. If the measurement proves only a coarse bound,
    /// it is continued for up to several seconds, and the next recorder measures again.
    pub fn new() -> Self {
        Recorder::with(Source::best())
    }

    fn with(source: Source) -> Self {
        // Each measurement proves a bound, so the smallest of these bounds is valid as well.
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

    /// Sets the number of operations for which each log requests memory at a time (40 bytes each): at the start, and again
    /// whenever the memory is used up.
    ///
    /// # Panics
    /// Panics if the number is 0.
    #[must_use]
    pub fn room(self, operations: usize) -> Self {
        assert!(operations > 0, "a log without room records nothing");
        Recorder { room: operations, ..self }
    }

    /// Sets the maximum number of operations of a log; 4,194,304 by default. The history ends when the first log is full.
    ///
    /// # Panics
    /// Panics if the number is 0.
    #[must_use]
    pub fn limit(self, operations: usize) -> Self {
        assert!(operations > 0, "a log without room records nothing");
        Recorder { limit: operations, ..self }
    }

    /// Creates a log for one more thread.
    pub fn log(&self) -> Log {
        // Relaxed: numbers need only be distinct.
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        Log::new(Arc::clone(&self.drawer), self.source, process, self.room.min(self.limit), self.limit)
    }

    /// Returns the operation with this name in a custom specification.
    pub fn op(&self, name: &str) -> Op {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        builder(&names).op(name)
    }

    /// Returns the bound on the difference of the clocks, in nanoseconds, as measured before the recording. An operation counts
    /// as later than another only if it began more than this time after the other had ended.
    pub fn skew(&self) -> u64 {
        self.rate(Moment::now(self.source)).skew(self.skew)
    }

    /// Returns the history of all logs. The logs must have been dropped.
    ///
    /// Measures the clocks again, as [`new`](Self::new) does, because their difference must be known both before and after the
    /// recording.
    ///
    /// # Panics
    /// Panics if a log has not been dropped, because its thread may still record operations. Threads of a scope have ended when
    /// the scope ends; other threads must be joined first.
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
