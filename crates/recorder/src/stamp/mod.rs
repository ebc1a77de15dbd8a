//! Time stamps that are correct even if the processor reorders instructions.
//!
//! The stamp of a call may be too early, and that of a return may be too late: the operation then appears longer than it was,
//! which never causes a false alarm. The stamp of a call must not be too late, and that of a return must not be too early.
//! Therefore [`before`](Source::before) keeps all later accesses from beginning before the stamp is read.
//! [`between`](Source::between) ends one operation and may begin the next, so it also waits until all earlier accesses are
//! complete.

mod clock;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod counter;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod counter;
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
use clock as counter;

/// The source of stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The processor's counter, in ticks.
    Counter,
    /// The system's monotonic clock, in nanoseconds.
    Clock,
}

impl Source {
    /// Returns the counter if it runs at a constant rate on all cores, otherwise the clock.
    pub(crate) fn best() -> Self {
        if counter::is_steady() { Source::Counter } else { Source::Clock }
    }

    /// Returns a stamp that is no later than the next memory access.
    #[inline]
    pub(crate) fn before(self) -> u64 {
        match self {
            Source::Counter => counter::before(),
            Source::Clock => clock::before(),
        }
    }

    /// Returns a stamp that is no later than the next memory access. It is no earlier than the moment when this thread's earlier
    /// loads are complete and all cores see its earlier stores.
    #[inline]
    pub(crate) fn between(self) -> u64 {
        match self {
            Source::Counter => counter::between(),
            Source::Clock => clock::between(),
        }
    }

    /// Returns between 100 and 300 ns, in units of the source.
    pub(crate) fn near(self) -> u64 {
        match self {
            Source::Counter => counter::near(),
            Source::Clock => clock::near(),
        }
    }

    /// Returns a stamp that is no earlier than this thread's loads so far.
    pub(crate) fn after_loads(self) -> u64 {
        match self {
            Source::Counter => counter::after_loads(),
            Source::Clock => clock::between(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Source;

    #[test]
    fn stamps_of_one_thread_never_fall_and_do_advance() {
        for source in [Source::best(), Source::Clock] {
            let first = source.before();
            let began = Instant::now();
            let (mut last, mut is_last) = (first, false);
            while !is_last {
                // One more iteration is made after the time is up, however long the thread was preempted.
                is_last = began.elapsed() >= Duration::from_millis(20);
                for stamp in [source.before(), source.between(), source.after_loads()] {
                    // After a migration, a stamp may be smaller than the last one by as much as the skew, which is far below this
                    // number.
                    assert!(stamp + 100_000 > last, "{source:?}: {stamp} after {last}");
                    last = stamp;
                }
            }
            assert!(last - first > 10_000, "{source:?}: {} in 20 ms", last - first);
        }
    }
}
