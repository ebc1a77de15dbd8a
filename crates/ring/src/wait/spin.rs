//! The spin policy: how a thread polls before it sleeps, and for how long.

// These are the standard types even in a model: the values are only advice and order nothing, so exploring them reveals
// nothing.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use super::{WaitStrategy, cost};
use crate::padded::CachePadded;
use crate::primitive::pause;

/// The maximum delay that accumulation may add to an event, or to a producer's wait for room.
const MAX_GATHERING_NS: u32 = 1_600;

/// The maximum delay that accumulation may add to an event, in picoseconds for each slot of the ring. The partner could
/// fill the ring during a longer pause, and would then have to wait.
const EVENT_PS: u64 = 1_600;

/// A waiter sleeps at once when its time to poll was halved this many times.
const MAX_HALVINGS: u32 = 5;

/// A yield that takes longer than this many quick ones has let another thread run.
const SHARED: u64 = 2;

/// A turn lasts as long as this many sleeps, so wake-ups take a small part of the time. It lasts at least
/// `MIN_TURN_NS`, because the next polling producer also has to fill its core's caches. The factor serves a second
/// purpose: after a yield that lasted a turn, waiters do not yield again for this many times the length of that yield.
const SLEEPS_PER_TURN: u64 = 32;
const MIN_TURN_NS: u64 = 1_000_000;

/// A yield that takes longer counts as this long. It says nothing about other threads: the process was stopped, or had
/// used up its share of the processor.
const MAX_YIELD_NS: u64 = 100_000_000;

/// The adaptive spin policy of the waiters of one side of a ring.
#[derive(Debug)]
pub(super) struct AdaptiveSpin {
    strategy: WaitStrategy,
    /// The maximum delay that accumulation may add to an event of this ring.
    gathering_ns: u32,
    advice: CachePadded<Advice>,
}

/// All of this is advice: a race may lose an update, which only changes how long waiters poll.
#[derive(Debug, Default)]
struct Advice {
    /// How often the time to poll has been halved since polling last helped.
    halvings: AtomicU32,
    /// The number of pauses between checks, minus one.
    gap: AtomicU32,
    /// The time at which a waiter that no longer polls last fell asleep.
    asleep_ns: AtomicU64,
    /// The duration of the last yield, which shows whether the waiters share their cores with other threads.
    yield_ns: AtomicU64,
    /// The time at which waiters may yield again, after a yield that took a whole turn; zero if no yield took so long.
    yields_from_ns: AtomicU64,
}

/// The length of a turn in nanoseconds, if the waits in it are short.
fn turn_ns(sleep_ns: u64) -> u64 {
    MIN_TURN_NS.max(SLEEPS_PER_TURN * sleep_ns)
}

/// Whether a producer's turn has ended, after `waits` waits for room in `lasted_ns`. If the waits take as long as a
/// sleep, the turn may be shorter than `MIN_TURN_NS`: such a producer sends little, so cold caches cost it less than
/// its waits.
pub(super) fn turn_has_ended(lasted_ns: u64, waits: u64, sleep_ns: u64) -> bool {
    lasted_ns >= turn_ns(sleep_ns) || (lasted_ns >= SLEEPS_PER_TURN * sleep_ns && lasted_ns / waits >= sleep_ns)
}

impl AdaptiveSpin {
    pub(super) fn new(strategy: WaitStrategy, capacity: u64) -> Self {
        let gathering_ns = (capacity.saturating_mul(EVENT_PS) / 1000).clamp(1, MAX_GATHERING_NS.into()) as u32;
        AdaptiveSpin { strategy, gathering_ns, advice: CachePadded(Advice::default()) }
    }

    /// Whether the waiters decide themselves when to sleep.
    pub(super) fn is_adaptive(&self) -> bool {
        self.strategy == WaitStrategy::Adaptive
    }

    /// Whether the waiters share their cores with other threads.
    pub(super) fn shares_core(&self) -> bool {
        self.advice.yield_ns.load(Ordering::Relaxed) > SHARED * u64::from(cost::of_yield())
    }

    /// Whether waiters yield. A thread that has kept the core for a whole turn will do so again after the next yield,
    /// whereas a sleeper that is woken takes the core back at once. So after such a yield the waiters only spin before
    /// they sleep. They try another yield only after a long time, so these attempts cost little.
    fn yields(&self) -> bool {
        let from_ns = self.advice.yields_from_ns.load(Ordering::Relaxed);
        match self.strategy {
            WaitStrategy::Spin => false,
            WaitStrategy::Yield => true,
            _ => from_ns == 0 || from_ns <= cost::now_ns(),
        }
    }

    /// Learns from a yield that took `took_ns`.
    fn yielded(&self, took_ns: u64) {
        self.advice.yield_ns.store(took_ns, Ordering::Relaxed);
        let lost = took_ns >= turn_ns(u64::from(cost::of_sleep()));
        if lost || self.advice.yields_from_ns.load(Ordering::Relaxed) > 0 {
            let from_ns = if lost { cost::now_ns() + SLEEPS_PER_TURN * took_ns.min(MAX_YIELD_NS) } else { 0 };
            self.advice.yields_from_ns.store(from_ns, Ordering::Relaxed);
        }
    }

    /// Whether a yield takes longer than a sleep, because other threads get the core.
    fn loses_core(&self) -> bool {
        self.advice.yield_ns.load(Ordering::Relaxed) > u64::from(cost::of_sleep())
    }

    pub(super) fn start(&self) -> Pace<'_> {
        Pace { spin: self, budget_ns: self.budget_ns(), spent_ns: 0 }
    }

    /// The time for which a waiter polls, in nanoseconds.
    fn budget_ns(&self) -> u64 {
        match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Yield => u64::MAX,
            WaitStrategy::Block => 0,
            WaitStrategy::Adaptive => match self.advice.halvings.load(Ordering::Relaxed) {
                // Polling has not helped for some time, so events are far apart. The thread sleeps at once, because it
                // is woken soonest if it already sleeps when the event comes.
                MAX_HALVINGS.. => 0,
                halvings => u64::from(cost::of_sleep() >> halvings).max(1),
            },
        }
    }

    /// Records that a wait ended without sleep, or that its sleep was too short to be worth its cost.
    fn polling_helps(&self) {
        let halvings = self.advice.halvings.load(Ordering::Relaxed);
        if halvings > 0 {
            self.advice.halvings.store(halvings - 1, Ordering::Relaxed);
        }
    }

    /// Learns from a sleep after polling that found nothing. Other waiters took `events` events during the sleep.
    pub(super) fn slept(&self, took_ns: u64, events: u64) {
        if took_ns < Self::short_ns() {
            self.polling_helps();
        } else if took_ns / events.saturating_add(1) > u64::from(cost::of_sleep()) {
            let halvings = self.advice.halvings.load(Ordering::Relaxed);
            self.advice.halvings.store((halvings + 1).min(MAX_HALVINGS), Ordering::Relaxed);
        }
    }

    /// Learns from the previous sleep that began without polling, if a waker ended it at `woken_ns`. The waiter calls
    /// this before its next sleep, when it has nothing else to do. Right after a sleep, reading the clock would be
    /// slow, because neither its code nor its data are in the caches.
    pub(super) fn sleeps_at_once(&self, now_ns: u64, woken_ns: u64) {
        let before = self.advice.asleep_ns.load(Ordering::Relaxed);
        self.advice.asleep_ns.store(now_ns, Ordering::Relaxed);
        if before > 0 && (before..before + u64::from(cost::of_sleep())).contains(&woken_ns) {
            self.polling_helps();
        }
    }

    /// A sleep shorter than this was not worth its cost: polling would have found the event.
    fn short_ns() -> u64 {
        u64::from(cost::of_sleep() + cost::of_wake_up())
    }

    /// If events come in small portions and no other thread wants the core, pauses for the gap between checks.
    #[inline]
    pub(super) fn let_gather(&self) {
        let gap = self.advice.gap.load(Ordering::Relaxed);
        if gap > 0 && !self.shares_core() {
            (0..=gap).for_each(|_| pause());
        }
    }

    /// Adapts the gap between checks to the number of positions, of `capacity`, that had accumulated. After a single
    /// position the gap is zero, because a partner that replies to each event never sends two together. After two
    /// positions or more, but less than a quarter of the ring, the gap grows, so that more accumulate.
    pub(super) fn gathered(&self, positions: u64, capacity: u64) {
        let gap = self.advice.gap.load(Ordering::Relaxed);
        let better = match positions {
            0 | 1 => 0,
            _ if positions < capacity / 4 => (gap * 2 + 1).min(cost::pauses_in(self.gathering_ns)),
            _ if positions > capacity / 4 * 3 => gap / 2,
            _ => gap,
        };
        if better != gap {
            self.advice.gap.store(better, Ordering::Relaxed);
        }
    }
}

/// One wait of one thread.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    spin: &'a AdaptiveSpin,
    /// How long the waiter polls.
    budget_ns: u64,
    /// How long it has polled so far. Each yield counts as a quick one, however long other threads ran.
    spent_ns: u64,
}

impl Pace<'_> {
    /// Whether the waiter sleeps without a single check.
    pub(super) fn sleeps_at_once(&self) -> bool {
        self.budget_ns == 0
    }

    /// Nanoseconds for which the waiter has polled.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// Whether the waiter may still wait until more than one position is there.
    pub(super) fn gathers(&self) -> bool {
        self.spent_ns < u64::from(self.spin.gathering_ns)
    }

    /// Polls until `check` finds something, the deadline has passed, or it is time to sleep.
    ///
    /// A partner that is running needs only pauses; a partner that is not running needs the core. So the waiter pauses
    /// for as long as a yield takes, then yields, and repeats this. While its yields let other threads run, the waiter
    /// only yields; after a yield that took a whole turn, it only pauses. Before a yield that may last longer than a
    /// sleep, it calls `leaves(true)` and checks; after that yield it calls `leaves(false)`.
    pub(super) fn poll<R>(
        mut self,
        deadline: Option<Instant>,
        mut leaves: impl FnMut(bool),
        mut check: impl FnMut(&Self) -> Option<R>,
    ) -> PollOutcome<R> {
        let gap = self.spin.advice.gap.load(Ordering::Relaxed) + 1;
        let most = cost::pauses_in(self.spin.gathering_ns);
        while self.spent_ns < self.budget_ns {
            let yields = self.spin.yields();
            if !yields || !self.spin.shares_core() {
                let spin_ns = u64::from(cost::of_yield()).min(self.budget_ns - self.spent_ns);
                // Each check takes the cache line that the partner writes, so checks become less and less frequent.
                let (mut gap, mut left) = (gap, cost::pauses_in(spin_ns as u32));
                while left > 0 {
                    (0..gap).for_each(|_| pause());
                    if let Some(found) = check(&self) {
                        return self.found(found);
                    }
                    left = left.saturating_sub(gap);
                    gap = (gap * 2).min(most.max(gap));
                }
                self.spent_ns += spin_ns;
            }
            if yields {
                let leaves_core = self.spin.loses_core();
                if leaves_core {
                    leaves(true);
                    if let Some(found) = check(&self) {
                        leaves(false);
                        return self.found(found);
                    }
                }
                let yielded_ns = cost::timed_yield();
                if leaves_core {
                    leaves(false);
                }
                self.spin.yielded(yielded_ns);
                self.spent_ns += u64::from(cost::of_yield());
                if let Some(found) = check(&self) {
                    return self.found(found);
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return PollOutcome::TimedOut;
            }
        }
        PollOutcome::GaveUp
    }

    fn found<R>(&self, found: R) -> PollOutcome<R> {
        self.spin.polling_helps();
        PollOutcome::Found(found)
    }
}

/// The outcome of polling.
#[derive(Debug)]
pub(super) enum PollOutcome<R> {
    Found(R),
    TimedOut,
    /// It is time to sleep.
    GaveUp,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn gap(spin: &AdaptiveSpin) -> u32 {
        spin.advice.gap.load(Ordering::Relaxed)
    }

    #[test]
    fn small_portions_make_the_gap_longer_up_to_its_limit() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        let limit = cost::pauses_in(MAX_GATHERING_NS);
        (0..40).for_each(|_| spin.gathered(2, 1024));
        assert_eq!(gap(&spin), limit);
        spin.gathered(500, 1024);
        assert_eq!(gap(&spin), limit, "half a ring changed the gap");
        spin.gathered(1000, 1024);
        assert_eq!(gap(&spin), limit / 2, "more than three quarters of a ring did not halve the gap");
    }

    #[test]
    fn the_gap_of_a_small_ring_is_no_longer_than_its_events_take() {
        let gathering = |capacity| AdaptiveSpin::new(WaitStrategy::Adaptive, capacity).gathering_ns;
        assert_eq!([1, 10, 1000, u64::MAX].map(gathering), [1, 16, 1600, 1600]);
    }

    #[test]
    fn an_event_that_comes_alone_is_not_delayed() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        (0..20).for_each(|_| spin.gathered(2, 1024));
        spin.gathered(1, 1024);
        assert_eq!(gap(&spin), 0);
    }

    #[test]
    fn a_waiter_polls_for_some_time_and_gives_up_or_ends_at_its_deadline() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        let mut checks = 0;
        let outcome = spin.start().poll(
            None,
            |_| (),
            |_| -> Option<()> {
                checks += 1;
                None
            },
        );
        assert!(matches!(outcome, PollOutcome::GaveUp) && checks > 0, "{checks} checks");
        let past = Instant::now();
        assert!(matches!(spin.start().poll(Some(past), |_| (), |_| None::<()>), PollOutcome::TimedOut));
    }

    #[test]
    fn a_waiter_whose_sleeps_are_long_stops_polling_until_one_is_short() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        (0..6).for_each(|_| spin.slept(u64::from(cost::of_sleep()) * 50, 100));
        assert!(!spin.start().sleeps_at_once(), "a sleeper whose events others took has learnt from it");
        (0..6).for_each(|_| spin.slept(u64::MAX, 0));
        assert!(spin.start().sleeps_at_once());
        spin.slept(0, 1);
        assert!(!spin.start().sleeps_at_once());
    }

    #[test]
    fn a_waiter_that_sleeps_at_once_polls_again_when_events_come_in_quick_succession() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        (0..6).for_each(|_| spin.slept(u64::MAX, 0));
        let second = 1_000_000_000;
        (1..10).for_each(|n| spin.sleeps_at_once(n * second, n * second - 1));
        assert!(spin.start().sleeps_at_once(), "an event in a second made the waiter poll");
        // The event came 1 ns after the waiter had fallen asleep. The waiter then handled it for almost a second, which
        // does not count as sleep.
        spin.sleeps_at_once(10 * second, 9 * second + 1);
        assert!(!spin.start().sleeps_at_once());
    }

    #[test]
    fn waiters_that_lost_their_cores_for_a_turn_yield_again_after_some_time() {
        let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
        let sleep_ns = u64::from(cost::of_sleep());
        spin.yielded(MIN_TURN_NS / 2);
        assert!(spin.yields(), "a turn of the partner ended the yields");
        spin.yielded(16 * turn_ns(sleep_ns));
        assert!(!spin.yields());
        spin.advice.yields_from_ns.store(cost::now_ns(), Ordering::Relaxed);
        assert!(spin.yields());
        spin.yielded(1);
        assert_eq!(
            spin.advice.yields_from_ns.load(Ordering::Relaxed),
            0,
            "a quick yield is no reason to read the clock"
        );
        spin.yielded(3600 * 1_000_000_000);
        let latest_ns = cost::now_ns() + 5_000_000_000;
        assert!(
            spin.advice.yields_from_ns.load(Ordering::Relaxed) <= latest_ns,
            "an hour in which the process was stopped ended the yields for a day"
        );
        let always = AdaptiveSpin::new(WaitStrategy::Yield, 1024);
        always.yielded(u64::MAX);
        assert!(always.yields());
    }

    #[test]
    fn a_turn_of_long_waits_ends_before_one_of_short_waits() {
        let quick = 10_000;
        assert!(turn_has_ended(32 * quick, 32, quick) && !turn_has_ended(32 * quick - 1, 1, quick));
        assert!(!turn_has_ended(32 * quick, 33, quick) && !turn_has_ended(MIN_TURN_NS - 1, 1000, quick));
        assert!(turn_has_ended(MIN_TURN_NS, u64::MAX, quick));
        let slow = 50_000;
        assert!(!turn_has_ended(MIN_TURN_NS, 1, slow) && turn_has_ended(32 * slow, u64::MAX, slow));
    }

    /// An adversary that knows the rule chooses when each event comes: at once, right after the waiter has fallen
    /// asleep, a sleep's cost later, or long after. Apart from a few sleeps in all, the waiter's cost is at most 49/16
    /// of that of a waiter that knows the future.
    #[test]
    fn no_sequence_of_waits_costs_more_than_the_claimed_multiple_of_the_best() {
        const WAITS: u32 = 7;
        for sequence in 0..4u32.pow(WAITS) {
            for work in 0..4 {
                let spin = AdaptiveSpin::new(WaitStrategy::Adaptive, 1024);
                let (mut ours, mut best, mut now, mut woken, mut most) = (0.0, 0.0, 1u64, 0u64, 0.0f64);
                // After six long waits the waiter sleeps at once.
                for wait in (0..6).map(|_| 3).chain((0..WAITS).map(|wait| sequence / 4u32.pow(wait) % 4)) {
                    let sleep = u64::from(cost::of_sleep());
                    let budget = spin.budget_ns();
                    let comes = [0, budget + 1, budget + sleep, 100 * sleep][wait as usize];
                    best += comes.min(sleep) as f64 / sleep as f64;
                    if comes <= budget && budget > 0 {
                        spin.polling_helps();
                        ours += comes as f64 / sleep as f64;
                    } else {
                        if budget == 0 {
                            spin.sleeps_at_once(now, woken);
                        } else {
                            spin.slept(comes - budget + sleep / 2, 0);
                        }
                        woken = now + comes;
                        ours += 1.0 + budget as f64 / sleep as f64;
                    }
                    now += comes + sleep / 2 + work * sleep;
                    most = most.max(ours - 49.0 / 16.0 * best);
                }
                assert!(most <= 4.1, "sequence {sequence}: {most} sleeps more than 49/16 of the best");
            }
        }
    }
}
