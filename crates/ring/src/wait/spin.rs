//! The spin policy: how long to wait between looks, and when to give up and sleep.

// These are the standard types in a model, too: advice orders nothing, and exploring its values reveals nothing.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::WaitStrategy;
use crate::padded::CachePadded;
use crate::primitive::{pause, yield_now};

/// Number of looks before the first yield.
const SPINS: u32 = 2;
/// Bounds on the number of pauses between looks; a pause is some 25 ns.
const MIN_GAP: u32 = 4;
const MAX_GAP: u32 = 64;
/// The most yields before sleeping: 16 µs of them if no other thread wants the core.
const MAX_YIELDS: u32 = 32;
/// A waiter that is woken within this time after it fell asleep should have yielded longer: falling asleep and being
/// woken take about as long.
const SHORT_SLEEP: Duration = Duration::from_micros(20);

/// Of the sleeps of a waiter that has given up looking, only one in this many is timed. Reading the clock takes code
/// and data that are not in the caches of a thread that has slept, and every eighth sleep suffices to learn that sleeps
/// have become short.
const SLEEPS_PER_TIMED: u32 = 8;

/// The adaptive spin policy of the waiters of one side of a ring.
#[derive(Debug)]
pub(super) struct AdaptiveSpin {
    strategy: WaitStrategy,
    stats: CachePadded<SpinStats>,
}

/// All of this is advice: a race loses a part of it and nothing else.
#[derive(Debug)]
struct SpinStats {
    /// The number of yields before sleeping.
    yields: AtomicU32,
    /// The number of pauses between looks.
    gap: AtomicU32,
    /// The number of sleeps of waiters that have given up looking.
    sleeps: AtomicU32,
}

impl AdaptiveSpin {
    pub(super) fn new(strategy: WaitStrategy) -> Self {
        let [yields, gap, sleeps] = [MAX_YIELDS, MIN_GAP, 0].map(AtomicU32::new);
        AdaptiveSpin { strategy, stats: CachePadded(SpinStats { yields, gap, sleeps }) }
    }

    /// Whether the waiters decide themselves when to sleep.
    pub(super) fn is_adaptive(&self) -> bool {
        self.strategy == WaitStrategy::Adaptive
    }

    pub(super) fn start(&self) -> Pace<'_> {
        let max_looks = match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Yield => None,
            WaitStrategy::Block => Some(0),
            WaitStrategy::Adaptive => match self.stats.yields.load(Ordering::Relaxed) {
                // Looking has not helped for some time, so events are far apart, and the thread sleeps at once: it is
                // woken soonest if it is already asleep when one comes.
                0 => Some(0),
                yields => Some(SPINS + yields),
            },
        };
        Pace { spin: self, gap: self.stats.gap.load(Ordering::Relaxed), looks: 0, max_looks }
    }

    /// Records that a wait ended without sleep, so yielding was right.
    fn yielding_helped(&self) {
        let yields = self.stats.yields.load(Ordering::Relaxed);
        if yields < MAX_YIELDS {
            self.stats.yields.store((yields * 2 + 1).min(MAX_YIELDS), Ordering::Relaxed);
        }
    }

    /// Whether the sleep that begins now is timed; then the caller reports its end to
    /// [`slept_since`](Self::slept_since).
    pub(super) fn times_sleep(&self) -> bool {
        if !self.is_adaptive() {
            return false;
        }
        if self.stats.yields.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let sleeps = self.stats.sleeps.load(Ordering::Relaxed);
        self.stats.sleeps.store(sleeps.wrapping_add(1), Ordering::Relaxed);
        sleeps.is_multiple_of(SLEEPS_PER_TIMED)
    }

    /// Learns from a timed sleep, which has just ended.
    pub(super) fn slept_since(&self, began: Instant) {
        if !self.is_adaptive() {
            return;
        }
        // Falling asleep and waking took longer than the wait itself, so the next waits yield for longer.
        if began.elapsed() < SHORT_SLEEP {
            self.yielding_helped();
        } else {
            let yields = self.stats.yields.load(Ordering::Relaxed);
            self.stats.yields.store(yields / 2, Ordering::Relaxed);
        }
    }

    /// Pauses for the gap, if events come in small portions.
    #[inline]
    pub(super) fn let_gather(&self) {
        let gap = self.stats.gap.load(Ordering::Relaxed);
        if gap > MIN_GAP {
            (0..gap).for_each(|_| pause());
        }
    }

    /// Learns the gap from the number of positions, of `capacity`, that had gathered. A single position shortens the
    /// gap to its minimum: a partner that answers events one by one never sends two together. If at least two had
    /// gathered, but less than a quarter of the ring, more should gather.
    pub(super) fn gathered(&self, positions: u64, capacity: u64) {
        let gap = self.stats.gap.load(Ordering::Relaxed);
        let better = match positions {
            0 | 1 => MIN_GAP,
            _ if positions < capacity / 4 => (gap * 2).min(MAX_GAP),
            _ if positions > capacity / 4 * 3 => (gap / 2).max(MIN_GAP),
            _ => gap,
        };
        if better != gap {
            self.stats.gap.store(better, Ordering::Relaxed);
        }
    }
}

/// One wait of one thread.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    spin: &'a AdaptiveSpin,
    gap: u32,
    looks: u32,
    max_looks: Option<u32>,
}

impl Pace<'_> {
    /// The number of looks so far.
    pub(super) fn looks(&self) -> u32 {
        self.looks
    }

    /// Whether the waiter sleeps without a single look.
    pub(super) fn sleeps_at_once(&self) -> bool {
        self.max_looks == Some(0)
    }

    /// Whether the last pause is over and yielding begins.
    pub(super) fn yields_next(&self) -> bool {
        self.looks == SPINS
    }

    /// Looks until there is something, the deadline has passed, or it is time to sleep.
    pub(super) fn look<R>(mut self, deadline: Option<Instant>, mut look: impl FnMut(&Self) -> Option<R>) -> Looked<R> {
        while self.max_looks.is_none_or(|most| self.looks < most) {
            // A partner that runs needs only the pauses; one that does not run needs the core.
            if self.looks < SPINS || self.spin.strategy == WaitStrategy::Spin {
                (0..self.gap).for_each(|_| pause());
            } else {
                yield_now();
            }
            self.looks = self.looks.saturating_add(1);
            if let Some(found) = look(&self) {
                self.spin.yielding_helped();
                return Looked::Found(found);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Looked::TimedOut;
            }
        }
        Looked::GaveUp
    }
}

/// The outcome of looking.
#[derive(Debug)]
pub(super) enum Looked<R> {
    Found(R),
    TimedOut,
    /// It is time to sleep.
    GaveUp,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn gap(spin: &AdaptiveSpin) -> u32 {
        spin.stats.gap.load(Ordering::Relaxed)
    }

    #[test]
    fn small_portions_make_the_gap_longer_up_to_its_limit() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive);
        (0..20).for_each(|_| spin.gathered(2, 1024));
        assert_eq!(gap(&spin), MAX_GAP);
        spin.gathered(500, 1024);
        assert_eq!(gap(&spin), MAX_GAP, "half a ring changed the gap");
        spin.gathered(1000, 1024);
        assert_eq!(gap(&spin), MAX_GAP / 2, "more than three quarters of a ring did not halve the gap");
    }

    #[test]
    fn an_event_that_comes_alone_is_not_delayed() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive);
        (0..20).for_each(|_| spin.gathered(2, 1024));
        spin.gathered(1, 1024);
        assert_eq!(gap(&spin), MIN_GAP);
    }

    #[test]
    fn a_waiter_whose_sleeps_are_long_stops_looking_until_one_is_short() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive);
        let looks = || {
            let mut looks = 0;
            spin.start().look(None, |_| -> Option<()> {
                looks += 1;
                None
            });
            looks
        };
        assert_eq!(looks(), SPINS + MAX_YIELDS);
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        (0..6).for_each(|_| spin.slept_since(long_ago));
        assert_eq!(looks(), 0);
        // This sleep has not begun yet, so it counts as short, however busy the machine is.
        spin.slept_since(Instant::now() + Duration::from_secs(3600));
        assert_eq!(looks(), SPINS + 1);
    }

    #[test]
    fn a_waiter_that_has_stopped_looking_times_one_sleep_in_eight() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive);
        let timed = || (0..80).filter(|_| spin.times_sleep()).count();
        assert_eq!(timed(), 80, "a sleep whose length decides how long to look was not timed");
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        (0..6).for_each(|_| spin.slept_since(long_ago));
        assert_eq!(timed(), 10);
        assert!(!AdaptiveSpin::new(WaitStrategy::Block).times_sleep(), "a strategy that learns nothing timed a sleep");
    }
}
