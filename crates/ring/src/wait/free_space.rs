//! Waiting for room in a full ring.
//!
//! **One producer looks, the others sleep.** A ring is full because its consumers are slower than its producers are
//! together, so a producer or two keep it filled. If all looked and yielded, a consumer that yields on the same core
//! would run only after all of them, and they would find no room: with 256 producers on two cores that was 13 ns per
//! event and 25 ns of CPU time instead of 5.7 and 10.7. So a producer that finds the ring full while another one looks
//! for room goes to sleep at once.
//!
//! **Sleepers cost nothing.** Waking a producer takes as long as hundreds of events, so it should happen seldom, and a
//! completion should not have to find out whether it is time. A completion compares its position with one number,
//! `wake_at`: the position at which to check for sleepers, out of reach while there are none.
//!
//! **When a producer is woken.** A consumer checks for sleepers with each quarter of the ring that it frees and at the
//! end of the claimed positions. It wakes one if at most a quarter of the ring is left to consume, no position was
//! claimed since the last check, and no producer looks for room: then no producer is at work. If nothing is left to
//! consume, it wakes one even if positions were claimed, unless a producer looks for room. A waiting consumer also
//! checks, if there is still nothing after a pause (and at most a quarter of the ring is left to consume): if hardly
//! any position was claimed since it last waited that long, too few producers are at work, and it wakes one. If many
//! were, the producers at work are merely a little slower than the consumer. The consumer would wake one after another,
//! so instead it wakes one per 16,384 positions or per 1 ms, whichever comes first. Before it sleeps, and where there
//! is only one producer, it always wakes one. And every 131,072 positions the producer that has slept longest gets its
//! turn.
//!
//! **No producer is forgotten.** A consumer may take less than a quarter and then stop for good; other producers may
//! keep the ring full permanently; a woken producer may need only one of many free slots. So each sleep is bounded: by
//! the time that the producer has slept so far (at least 1 ms, at most 50 ms) times the number of sleepers, and never
//! by more than 200 ms. Up to four sleepers together therefore wake up at most once per millisecond at first, and 20
//! times a second in the long run. A producer whose sleep timed out once is *urgent*: the next completion wakes the
//! producer that has slept longest. And a producer that leaves wakes one, which may have slept because the leaver was
//! there.
//!
//! **An occasional nap.** A producer and a consumer that share a core and yield to each other give the scheduler no
//! reason to separate them, although the other core may be idle, or already run enough producers. The scheduler places
//! a thread afresh when it wakes from sleep. So once in 131,072 positions a producer that finds the ring full sleeps at
//! once: with three producers on two cores, 4.7 ns per event instead of 6.0.

use std::time::{Duration, Instant};

use super::notifier::Notifier;
use super::spin::{AdaptiveSpin, Looked};
use millstream_sync::eventcount::Waited;

use super::WaitStrategy;
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicU64, Ordering};
use crate::primitive::{heavy, light};

/// The standard atomics, in a model, too: advice orders nothing, and exploring its values reveals nothing.
mod advice {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// In a model a nap ends at any time, so exploring which sleeper is woken before its nap ends makes no difference.
const WAKES_THREADS: bool = !cfg!(loom);

/// Number of looks after which a producer takes whatever room there is.
const GATHERING_LOOKS: u32 = 20;
const MIN_NAP: Duration = Duration::from_millis(1);
const MAX_NAP_EACH: Duration = Duration::from_millis(50);
/// The longest nap, however many producers sleep.
const MAX_NAP: Duration = Duration::from_millis(200);
/// Number of positions between two naps that are taken although yielding would do, and between two turns of the longest
/// sleeper. These positions take some 0.5 ms, and a nap or a turn costs a few µs.
const POSITIONS_BETWEEN_NAPS: u64 = 1 << 17;
/// Number of positions, or the time, after which a consumer that finds nothing wakes one more producer although some
/// are at work; whichever passes first.
const POSITIONS_BETWEEN_HELPERS: u64 = 1 << 14;
const TIME_BETWEEN_HELPERS: Duration = Duration::from_millis(1);
/// A producer is at work if at least this many positions were claimed between two fruitless pauses.
const AT_WORK: u64 = 16;

#[derive(Debug)]
pub(crate) struct FreeSpace {
    threads: Notifier,
    /// Tasks have no timer of their own, so each completion wakes as many as can go on.
    tasks: Notifier,
    alarm: CachePadded<Alarm>,
    /// The number of free positions for which a producer waits while it may expect more soon.
    portion: u64,
    spin: AdaptiveSpin,
    spinners: CachePadded<Spinners>,
}

/// The places that a completion has freed.
pub(crate) struct Places<N> {
    /// Whether positions may be completed before earlier ones are.
    pub(crate) may_have_gaps: bool,
    /// The number of tasks that could go on, at least 1.
    pub(crate) number: N,
}

/// The value of `wake_at` while there are no sleepers.
const NEVER: u64 = u64::MAX;
/// The value of `wake_at` when the next completion must wake.
const AT_ONCE: u64 = 0;

/// When consumers should wake a sleeping producer, and when a producer should sleep. For threads all of this is advice,
/// since their sleeps are bounded. Tasks rely on `wake_at`.
#[derive(Debug)]
struct Alarm {
    /// The consumers' position at which to check for sleepers.
    wake_at: AtomicU64,
    /// The same position for threads alone.
    threads_wake_at: advice::AtomicU64,
    /// Whether a producer's sleep has timed out.
    urgent: advice::AtomicBool,
    /// The consumers' position from which on the longest sleeper gets its turn.
    turn_due: advice::AtomicU64,
    /// The claimed positions at a consumer's last check.
    claimed: advice::AtomicU64,
    /// The claimed positions when a consumer last found nothing after a pause.
    drained: advice::AtomicU64,
    /// The claimed positions when a waiting consumer last woke a producer, and the time of that, in nanoseconds from
    /// `epoch`.
    helped: advice::AtomicU64,
    helped_ns: advice::AtomicU64,
    epoch: Instant,
}

impl Alarm {
    /// Whether a consumer that finds nothing should wake a producer. If so, this records that it does.
    fn needs_help(&self, claimed: u64, must: bool, now: Instant) -> bool {
        let since = |then: &advice::AtomicU64, now: u64| now.saturating_sub(then.load(Ordering::Relaxed));
        let now_ns = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        let needs = must
            || since(&self.drained, claimed) < AT_WORK
            || since(&self.helped, claimed) >= POSITIONS_BETWEEN_HELPERS
            || since(&self.helped_ns, now_ns) >= TIME_BETWEEN_HELPERS.as_nanos() as u64;
        // Consumers that race here overwrite each other's records, at worst for one wake-up too many or too late.
        self.drained.store(claimed, Ordering::Relaxed);
        if needs {
            self.helped.store(claimed, Ordering::Relaxed);
            self.helped_ns.store(now_ns, Ordering::Relaxed);
        }
        needs
    }
}

/// State shared by producers that find the ring full.
#[derive(Debug)]
struct Spinners {
    /// The number of producers that look for room without sleeping.
    active: advice::AtomicU32,
    /// The consumers' position from which on the next producer sleeps instead of looking.
    nap_due: advice::AtomicU64,
}

impl FreeSpace {
    pub(crate) fn new(strategy: WaitStrategy, capacity: u64) -> Self {
        FreeSpace {
            threads: Notifier::new(),
            tasks: Notifier::new(),
            alarm: CachePadded(Alarm {
                wake_at: AtomicU64::new(NEVER),
                threads_wake_at: advice::AtomicU64::new(NEVER),
                urgent: advice::AtomicBool::new(false),
                turn_due: advice::AtomicU64::new(POSITIONS_BETWEEN_NAPS),
                claimed: advice::AtomicU64::new(0),
                drained: advice::AtomicU64::new(0),
                helped: advice::AtomicU64::new(0),
                helped_ns: advice::AtomicU64::new(0),
                epoch: Instant::now(),
            }),
            spinners: CachePadded(Spinners {
                active: advice::AtomicU32::new(0),
                nap_due: advice::AtomicU64::new(POSITIONS_BETWEEN_NAPS),
            }),
            portion: (capacity / 4).max(1),
            spin: AdaptiveSpin::new(strategy),
        }
    }

    /// Announces that a consumer has completed positions, the last of them before `end`. If waiters should be woken,
    /// returns the position `wake_at`: then the caller must call [`wake_waiters`](Self::wake_waiters), out of line and
    /// with numbers in registers, since this runs for each event. Calls `fenced` after the light fence, before any
    /// waiter is woken.
    #[inline(always)]
    #[must_use]
    pub(crate) fn freed(&self, end: u64, fenced: impl FnOnce()) -> Option<u64> {
        light();
        // Relaxed: the fence has done the ordering, and `wake_waiters` reads the position again with acquire.
        let wake_at = self.alarm.wake_at.load(Ordering::Relaxed);
        fenced();
        (wake_at <= end).then_some(wake_at)
    }

    /// Wakes waiters for the freed `places`. All positions before `completed()` are free again, or approximately so;
    /// producers have claimed up to `claimed()`.
    pub(crate) fn wake_waiters(
        &self,
        wake_at: u64,
        places: Places<impl FnOnce() -> usize>,
        completed: impl FnOnce() -> u64,
        claimed: impl FnOnce() -> u64,
    ) {
        let completed = completed();
        if self.tasks.has_waiters_unfenced() {
            self.wake_tasks(places);
            // `wake_at` now serves the tasks, so threads have a position of their own.
            if self.alarm.threads_wake_at.load(Ordering::Relaxed) <= completed {
                self.check_threads(completed, claimed);
            }
            return;
        }
        if completed < wake_at {
            // Another consumer is behind, and will come here when it reaches the position.
            return;
        }
        // Acquire pairs with the release in `wake_no_later_than`: the waiter whose position the swap replaces is seen
        // as registered.
        self.alarm.wake_at.swap(NEVER, Ordering::AcqRel);
        if self.tasks.has_waiters_unfenced() {
            // A task registered in between. Another consumer may have found `NEVER` meanwhile. If its light fence came
            // before the heavy one here, the woken task sees its completion; otherwise that consumer finds `AT_ONCE`.
            self.wake_no_later_than(AT_ONCE);
            heavy();
            self.tasks.wake(usize::MAX);
        }
        self.check_threads(completed, claimed);
    }

    /// Wakes as many tasks as there are places.
    ///
    /// If there may be gaps, this takes two steps: a consumer that completes a position behind a gap wakes a task that
    /// cannot go on, so the consumer that closes the gap must wake one for that position, too. Of all consumers that
    /// have completed the positions up to some point, one is the last to count places: by then it sees the others'
    /// completions, and so does the task it wakes. So every consumer wakes one task first, and *then* counts.
    fn wake_tasks(&self, places: Places<impl FnOnce() -> usize>) {
        if !places.may_have_gaps {
            return self.tasks.wake((places.number)());
        }
        self.tasks.wake(1);
        self.tasks.catch_up();
        let more = (places.number)() - 1;
        if more > 0 {
            self.tasks.wake(more);
        }
    }

    /// Wakes a thread if a sleep has timed out or lasted long enough, or if no producer is at work, and sets the next
    /// check.
    fn check_threads(&self, completed: u64, claimed: impl FnOnce() -> u64) {
        if !self.has_sleepers() {
            return;
        }
        let alarm = &*self.alarm;
        let claimed = claimed();
        let no_claims = claimed == alarm.claimed.load(Ordering::Relaxed);
        alarm.claimed.store(claimed, Ordering::Relaxed);
        let level = claimed.saturating_sub(completed);
        // There is a check at the end of the claimed positions: perhaps no completion follows.
        self.check_threads_at(completed + level.clamp(1, self.portion));

        // Each check wakes at most one producer: if that is too few, the next check finds no claims again.
        let is_turn = alarm.turn_due.load(Ordering::Relaxed) <= completed;
        let no_producer_works = level <= self.portion && (no_claims || level == 0);
        if alarm.urgent.load(Ordering::Relaxed) {
            alarm.urgent.store(false, Ordering::Relaxed);
            self.threads.wake(1);
        } else if is_turn {
            alarm.turn_due.store(completed + POSITIONS_BETWEEN_NAPS, Ordering::Relaxed);
            self.threads.wake(1);
        } else if no_producer_works && self.spinners.active.load(Ordering::Relaxed) == 0 {
            self.threads.wake(1);
        }
    }

    /// Makes consumers check for sleeping threads when they have completed all positions before `position`.
    fn check_threads_at(&self, position: u64) {
        if WAKES_THREADS {
            self.alarm.threads_wake_at.store(position, Ordering::Relaxed);
            self.wake_no_later_than(position);
        }
    }

    /// Makes consumers call [`wake_waiters`](Self::wake_waiters) when they have completed all positions before
    /// `position`, if not earlier.
    fn wake_no_later_than(&self, position: u64) {
        self.alarm.wake_at.fetch_min(position, Ordering::Release);
    }

    /// Called by a consumer that finds nothing after a pause, or is about to sleep. All positions before `completed()`
    /// are free again, and producers have claimed up to `claimed()`. Wakes one producer if it `must`, or if too few are
    /// at work.
    pub(crate) fn drained(&self, must: bool, completed: impl FnOnce() -> u64, claimed: impl FnOnce() -> u64) {
        // No fence is needed: threads' sleeps are bounded, and tasks were woken by the consumer's earlier completions.
        if !self.has_sleepers() {
            return;
        }
        let (completed, claimed) = (completed(), claimed());
        if claimed.saturating_sub(completed) > self.portion {
            return;
        }
        if self.alarm.needs_help(claimed, must, Instant::now()) {
            self.threads.wake(1);
        }
    }

    /// Wakes a producer after another one has left: it may have slept because the other was there.
    pub(crate) fn producer_left(&self) {
        if self.has_sleepers() {
            self.threads.wake(1);
        }
    }

    fn has_sleepers(&self) -> bool {
        WAKES_THREADS && self.threads.has_waiters_unfenced()
    }

    /// Wakes all waiters, since the other side is gone.
    pub(crate) fn wake_all(&self) {
        self.threads.wake(usize::MAX);
        self.tasks.wake(usize::MAX);
    }

    /// Waits until `look(n)` finds something, for a suitable number of free positions `n`; `None` if the deadline has
    /// passed and `look(1)` finds nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        completed: impl Fn() -> u64,
        mut look: impl FnMut(u64) -> Option<R>,
    ) -> Option<R> {
        // A producer with a deadline has no time to stand back.
        let stands_back = deadline.is_none() && self.should_sleep(&completed);
        let looked = if stands_back { Looked::GaveUp } else { self.look_for_room(deadline, &mut look) };
        match looked {
            Looked::Found(found) => Some(found),
            // The looks so far may have asked for a whole portion; less will do now.
            Looked::TimedOut => look(1),
            Looked::GaveUp => {
                let began = Instant::now();
                let found = self.sleep(began, deadline, completed, look);
                // The sleep of a producer that stood back shows nothing about looking: it has not looked.
                if !stands_back {
                    self.spin.slept_since(began);
                }
                found
            }
        }
    }

    /// Whether this wait should begin with sleep.
    fn should_sleep(&self, completed: impl Fn() -> u64) -> bool {
        self.spin.is_adaptive() && (self.spinners.active.load(Ordering::Relaxed) > 0 || self.nap_is_due(completed()))
    }

    fn nap_is_due(&self, completed: u64) -> bool {
        let nap_due = &self.spinners.nap_due;
        let is_due = nap_due.load(Ordering::Relaxed) <= completed;
        if is_due {
            nap_due.store(completed + POSITIONS_BETWEEN_NAPS, Ordering::Relaxed);
        }
        is_due
    }

    /// Looks until there is room or reason to sleep.
    fn look_for_room<R>(&self, deadline: Option<Instant>, mut look: impl FnMut(u64) -> Option<R>) -> Looked<R> {
        let is_counted = self.spin.is_adaptive();
        if is_counted {
            // Two producers may begin at the same time, which is as good as one.
            self.spinners.active.fetch_add(1, Ordering::Relaxed);
        }
        // At first only a whole portion will do, so that the producer does not take each slot the moment it is freed;
        // behind a slow consumer it takes what there is.
        let pace = self.spin.start();
        let looked = pace.look(deadline, |pace| look(if pace.looks() <= GATHERING_LOOKS { self.portion } else { 1 }));
        if is_counted {
            self.spinners.active.fetch_sub(1, Ordering::Relaxed);
        }
        looked
    }

    fn sleep<R>(
        &self,
        began: Instant,
        deadline: Option<Instant>,
        completed: impl Fn() -> u64,
        mut look: impl FnMut(u64) -> Option<R>,
    ) -> Option<R> {
        // No fence is needed: a wake-up that slips through costs the rest of a nap, whereas a fence would interrupt the
        // consumer.
        let registration = self.threads.register_unfenced();
        self.check_threads_at(completed() + self.portion);
        let mut was_woken = false;
        loop {
            let key = registration.key();
            if let Some(found) = look(1) {
                return Some(found);
            }
            if was_woken {
                // The wake-up did not help: others were quicker, or the freed positions lie behind one that is not
                // completed yet.
                self.check_threads_at(AT_ONCE);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            // Each nap is as long as all before it, and longer the more producers sleep: so together they wake up by
            // themselves no more often than one would.
            let nap = (began.elapsed().clamp(MIN_NAP, MAX_NAP_EACH) * registration.waiters()).min(MAX_NAP);
            let until = Instant::now() + nap;
            let end = deadline.map_or(until, |deadline| deadline.min(until));
            was_woken = registration.sleep(key, Some(end)) == Waited::Changed;
            // A whole nap has passed without a wake-up, so no check has found that this producer is needed, and there
            // may be room all the same: the next completion wakes the longest sleeper.
            if !was_woken && end == until {
                self.alarm.urgent.store(true, Ordering::Relaxed);
                self.check_threads_at(AT_ONCE);
            }
        }
    }

    /// Wakes one more task: the one that was woken may leave its place to others. Threads find the place by themselves.
    pub(crate) fn pass_on(&self) {
        if self.tasks.has_waiters() {
            self.tasks.wake(1);
        }
    }

    /// Waits as a task until `look` finds something.
    pub(crate) async fn wait_async<R>(&self, look: impl FnMut() -> Option<R>) -> R {
        self.tasks.wait_async(|| self.wake_no_later_than(AT_ONCE), look).await
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn naps_are_rare_and_belong_to_the_adaptive_strategy_alone() {
        let due = |strategy| {
            let room = FreeSpace::new(strategy, 8);
            (0..4 * POSITIONS_BETWEEN_NAPS).step_by(100).filter(|&at| room.should_sleep(|| at)).count()
        };
        assert_eq!(due(WaitStrategy::Adaptive), 3);
        assert_eq!([WaitStrategy::Block, WaitStrategy::Yield, WaitStrategy::Spin].map(due), [0; 3]);
    }

    #[test]
    fn an_idle_consumer_wakes_a_producer_at_once_only_if_none_is_at_work() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 1024);
        let epoch = room.alarm.epoch;
        let needs = |claimed, must, us| room.alarm.needs_help(claimed, must, epoch + Duration::from_micros(us));
        assert!(needs(0, false, 10_000));
        assert!(!needs(1000, false, 10_001));
        assert!(
            needs(1010, false, 10_002) && needs(1010, false, 10_003),
            "hardly any position was claimed, so a producer is needed"
        );
        assert!(!needs(5000, false, 10_050));
        assert!(needs(9000, true, 10_051), "the consumer is about to sleep, so a producer is needed");
        assert!(!needs(9100, false, 10_100));
        assert!(needs(9000 + POSITIONS_BETWEEN_HELPERS, false, 10_101), "the last wake-up was many positions ago");
        assert!(!needs(26_000, false, 11_000));
        assert!(needs(27_000, false, 11_200), "the last wake-up was long ago");
    }

    #[test]
    fn no_producer_is_woken_while_more_than_a_quarter_is_left() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 1024);
        let sleeper = room.threads.register_unfenced();
        let wakes = |level: u64| {
            let key = sleeper.key();
            room.drained(true, || 5000 - level, || 5000);
            sleeper.key() != key
        };
        assert_eq!([257u64, 256, 0].map(wakes), [false, true, true]);
    }
}
