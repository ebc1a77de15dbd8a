//! Time stamps before or after an operation, whatever the processor reorders.
//!
//! A stamp may be too early before an operation and too late after it, because that widens the operation, and a wider
//! operation never causes a false alarm. A stamp that is too late before, or too early after, would be wrong. So
//! [`before`](Source::before) holds back all later accesses, and [`between`](Source::between), which ends one operation
//! and may begin the next, also waits for all earlier ones.

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
    /// The counter if it runs at a constant rate on all cores, the clock otherwise.
    pub(crate) fn best() -> Self {
        if counter::is_steady() { Source::Counter } else { Source::Clock }
    }

    /// A stamp no later than the next memory access.
    #[inline]
    pub(crate) fn before(self) -> u64 {
        match self {
            Source::Counter => counter::before(),
            Source::Clock => clock::before(),
        }
    }

    /// A stamp no earlier than the moment when all cores see this thread's stores, and this thread's loads are done;
    /// and no later than the next memory access.
    #[inline]
    pub(crate) fn between(self) -> u64 {
        match self {
            Source::Counter => counter::between(),
            Source::Clock => clock::between(),
        }
    }

    /// Some 200 ns, give or take half.
    pub(crate) fn near(self) -> u64 {
        match self {
            Source::Counter => counter::near(),
            Source::Clock => clock::near(),
        }
    }

    /// A stamp no earlier than this thread's loads so far.
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
                // The last turn comes after the time, however long the thread lost its core.
                is_last = began.elapsed() >= Duration::from_millis(20);
                for stamp in [source.before(), source.between(), source.after_loads()] {
                    // A thread that migrates may see a decrease as large as the skew, which is far below this.
                    assert!(stamp + 100_000 > last, "{source:?}: {stamp} after {last}");
                    last = stamp;
                }
            }
            assert!(last - first > 10_000, "{source:?}: {} in 20 ms", last - first);
        }
    }
}
