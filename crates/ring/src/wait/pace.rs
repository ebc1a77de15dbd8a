//! How long to wait between looks, and when to give up looking and sleep.

// The standard ones in a model, too: advice orders nothing, and what it is makes no difference to explore.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::WaitStrategy;
use crate::padded::Padded;
use crate::primitive::{pause, yield_now};

/// Looks before the first yield.
const SPINS: u32 = 2;
/// Pauses between looks; a pause is some 25 ns.
const GAP_LEAST: u32 = 4;
const GAP_MOST: u32 = 64;
/// The most yields before sleeping: 16 µs of them when nobody wants the core.
const YIELDS_MOST: u32 = 32;
/// Who is woken within this after it fell asleep should have yielded longer: falling asleep and being woken
/// take about as long.
const SHORT_SLEEP: Duration = Duration::from_micros(20);

/// Of so many sleeps of who has given up looking one is timed. To read the clock takes code and data that are not in the caches of who has
/// slept, and that sleeps have become short is learnt as well from every eighth.
const SLEEPS_PER_TIMED: u32 = 8;

/// What the waiters of one side of a ring have learnt.
#[derive(Debug)]
pub(super) struct Temper {
    strategy: WaitStrategy,
    learnt: Padded<Learnt>,
}

/// All of it is advice: races lose some of it, no more.
#[derive(Debug)]
struct Learnt {
    /// Yields before sleeping.
    yields: AtomicU32,
    /// Pauses between looks.
    gap: AtomicU32,
    /// Sleeps of who has given up looking.
    sleeps: AtomicU32,
}

impl Temper {
    pub(super) fn new(strategy: WaitStrategy) -> Self {
        let [yields, gap, sleeps] = [YIELDS_MOST, GAP_LEAST, 0].map(AtomicU32::new);
        Temper { strategy, learnt: Padded(Learnt { yields, gap, sleeps }) }
    }

    /// Whether its waiters decide themselves when to sleep.
    pub(super) fn is_adaptive(&self) -> bool {
        self.strategy == WaitStrategy::Adaptive
    }

    pub(super) fn start(&self) -> Pace<'_> {
        let looks_most = match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Yield => None,
            WaitStrategy::Block => Some(0),
            WaitStrategy::Adaptive => match self.learnt.yields.load(Ordering::Relaxed) {
                // Looking has not helped for some time: events are far apart, and who sleeps when one comes is woken soonest.
                0 => Some(0),
                yields => Some(SPINS + yields),
            },
        };
        Pace { temper: self, gap: self.learnt.gap.load(Ordering::Relaxed), looks: 0, looks_most }
    }

    /// The wait has ended without sleep: yielding was right.
    fn yielding_helped(&self) {
        let yields = self.learnt.yields.load(Ordering::Relaxed);
        if yields < YIELDS_MOST {
            self.learnt.yields.store((yields * 2 + 1).min(YIELDS_MOST), Ordering::Relaxed);
        }
    }

    /// A sleep begins. Whether to tell [`slept_since`](Self::slept_since) when it ends.
    pub(super) fn times_sleep(&self) -> bool {
        if !self.is_adaptive() {
            return false;
        }
        if self.learnt.yields.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let sleeps = self.learnt.sleeps.load(Ordering::Relaxed);
        self.learnt.sleeps.store(sleeps.wrapping_add(1), Ordering::Relaxed);
        sleeps.is_multiple_of(SLEEPS_PER_TIMED)
    }

    /// A sleep has ended.
    pub(super) fn slept_since(&self, began: Instant) {
        if !self.is_adaptive() {
            return;
        }
        if began.elapsed() < SHORT_SLEEP {
            self.yielding_helped();
        } else {
            let yields = self.learnt.yields.load(Ordering::Relaxed);
            self.learnt.yields.store(yields / 2, Ordering::Relaxed);
        }
    }

    /// Pauses for the gap, if there is reason for one.
    #[inline]
    pub(super) fn let_gather(&self) {
        let gap = self.learnt.gap.load(Ordering::Relaxed);
        if gap > GAP_LEAST {
            (0..gap).for_each(|_| pause());
        }
    }

    /// Learns the gap from how many positions of `capacity` had gathered. One is no sign: a partner that
    /// answers each event by itself never has two. Between two and a quarter of the ring, more should gather.
    pub(super) fn gathered(&self, positions: u64, capacity: u64) {
        let gap = self.learnt.gap.load(Ordering::Relaxed);
        let better = match positions {
            0 | 1 => GAP_LEAST,
            _ if positions < capacity / 4 => (gap * 2).min(GAP_MOST),
            _ if positions > capacity / 4 * 3 => (gap / 2).max(GAP_LEAST),
            _ => gap,
        };
        if better != gap {
            self.learnt.gap.store(better, Ordering::Relaxed);
        }
    }
}

/// One wait of one thread.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    temper: &'a Temper,
    gap: u32,
    looks: u32,
    looks_most: Option<u32>,
}

impl Pace<'_> {
    /// How often the waiter has looked.
    pub(super) fn looks(&self) -> u32 {
        self.looks
    }

    /// Whether it looks not even once.
    pub(super) fn sleeps_at_once(&self) -> bool {
        self.looks_most == Some(0)
    }

    /// Whether the last pause is over and yielding begins.
    pub(super) fn yields_next(&self) -> bool {
        self.looks == SPINS
    }

    /// Looks until there is something, the deadline has passed, or it is time to sleep.
    pub(super) fn look<R>(mut self, deadline: Option<Instant>, mut look: impl FnMut(&Self) -> Option<R>) -> Looked<R> {
        while self.looks_most.is_none_or(|most| self.looks < most) {
            if self.looks < SPINS || self.temper.strategy == WaitStrategy::Spin {
                (0..self.gap).for_each(|_| pause());
            } else {
                yield_now();
            }
            self.looks = self.looks.saturating_add(1);
            if let Some(found) = look(&self) {
                self.temper.yielding_helped();
                return Looked::Found(found);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Looked::TimedOut;
            }
        }
        Looked::InVain
    }
}

/// How looking ended.
#[derive(Debug)]
pub(super) enum Looked<R> {
    Found(R),
    TimedOut,
    /// It is time to sleep.
    InVain,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn gap(temper: &Temper) -> u32 {
        temper.learnt.gap.load(Ordering::Relaxed)
    }

    #[test]
    fn small_portions_make_the_gap_longer_up_to_its_limit() {
        let temper = Temper::new(WaitStrategy::Adaptive);
        (0..20).for_each(|_| temper.gathered(2, 1024));
        assert_eq!(gap(&temper), GAP_MOST);
        temper.gathered(500, 1024);
        assert_eq!(gap(&temper), GAP_MOST, "half a ring is right");
        temper.gathered(1000, 1024);
        assert_eq!(gap(&temper), GAP_MOST / 2, "nearly too late");
    }

    #[test]
    fn an_event_that_comes_alone_is_not_kept_waiting() {
        let temper = Temper::new(WaitStrategy::Adaptive);
        (0..20).for_each(|_| temper.gathered(2, 1024));
        temper.gathered(1, 1024);
        assert_eq!(gap(&temper), GAP_LEAST);
    }

    #[test]
    fn who_keeps_sleeping_long_stops_looking_until_a_sleep_was_short() {
        let temper = Temper::new(WaitStrategy::Adaptive);
        let looks = || {
            let mut looks = 0;
            temper.start().look(None, |_| -> Option<()> {
                looks += 1;
                None
            });
            looks
        };
        assert_eq!(looks(), SPINS + YIELDS_MOST);
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        (0..6).for_each(|_| temper.slept_since(long_ago));
        assert_eq!(looks(), 0);
        // One that has not begun yet, however busy the machine is.
        temper.slept_since(Instant::now() + Duration::from_secs(3600));
        assert_eq!(looks(), SPINS + 1);
    }

    #[test]
    fn who_has_stopped_looking_times_one_sleep_of_eight() {
        let temper = Temper::new(WaitStrategy::Adaptive);
        let timed = || (0..80).filter(|_| temper.times_sleep()).count();
        assert_eq!(timed(), 80, "how long it was decides how long to look");
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        (0..6).for_each(|_| temper.slept_since(long_ago));
        assert_eq!(timed(), 10);
        assert!(!Temper::new(WaitStrategy::Block).times_sleep(), "there is nothing to learn");
    }
}
