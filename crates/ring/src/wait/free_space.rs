//! Waiting for room in a full ring.
//!
//! **One producer polls, and the others sleep in a [line](super::line).** A ring is full because its consumers are
//! slower than all its producers together; one or two producers then suffice to keep it filled. If all producers polled
//! and yielded, a consumer that yields on the same core would run only after all of them, and they would find no room.
//! So a producer that finds the ring full joins the line if another producer already polls.
//!
//! **The first thread of the line is woken**, one thread at a time, by:
//! - The polling producer, when its *turn* ends. It then joins the line itself. A turn lasts as long as some 30 sleeps,
//!   and at least a millisecond where the consumers are quick, so the change of producers takes a small part of the
//!   time. A producer in the line waits only for the turns of those in front of it.
//! - The next completion, after a producer has polled for as long as a sleep costs and found no room. Consumers then
//!   take longer for an event than a sleep costs, so a wake-up for each completion is cheap compared with their work.
//! - A consumer that has found no event for as long as a wake-up takes, or is about to sleep. Then too few producers
//!   are at work.
//! - A consumer that uses the `try_` forms, in a call that finds no event while no producer polls. It wakes no second
//!   producer before the first is awake.
//! - A producer that leaves the ring, and a producer that was woken but whose deadline has passed.
//!
//! The process measures the times in these rules, so they depend neither on the size of the ring nor on its events.
//! There are two exceptions. The minimum of one millisecond for a turn is a constant. A `try_` call measures no time,
//! so it may wake a producer although another one is at work.
//!
//! **No producer is forgotten.** A consumer may take some events and then stop for good, without ever finding the ring
//! empty. The one producer that it woke may need only one of many free slots. So each sleep is bounded. The bound is
//! the time that the producer has waited so far (at least 1 ms, at most 50 ms) times the length of the line, but never
//! more than 200 ms. A producer whose sleep times out keeps its position in the line. If it finds no room, it makes the
//! next completion wake the first of the line.
//!
//! **An occasional nap.** A producer and a consumer that share a core and yield to each other give the scheduler no
//! reason to separate them, although another core may be idle. The scheduler chooses a core for a thread when the
//! thread wakes from sleep. So a producer whose yields let other threads run sleeps once per turn, until the next
//! completion.

use std::time::{Duration, Instant};

use millstream_sync::eventcount::Waited;

use super::line::{Line, Place};
use super::notifier::Notifier;
use super::spin::{AdaptiveSpin, PollOutcome, turn_has_ended};
use super::{WaitStrategy, cost};
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicBool, Ordering};
use crate::primitive::{heavy, light};

/// These are the standard atomics, even in a model: the values are only advice and order nothing, so exploring them
/// reveals nothing.
mod advice {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64};
}

const MIN_NAP: Duration = Duration::from_millis(1);
const MAX_NAP_EACH: Duration = Duration::from_millis(50);
/// The longest nap, however many producers sleep.
const MAX_NAP: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct FreeSpace {
    alarm: CachePadded<Alarm>,
    /// The threads that sleep.
    line: Line,
    /// The tasks that sleep. They have no timers of their own, so each completion wakes as many tasks as can continue.
    tasks: Notifier,
    /// The number of free positions for which a polling producer waits at first.
    portion: u64,
    spin: AdaptiveSpin,
    poller: CachePadded<PollingProducer>,
}

/// The slots that a completion has freed.
pub(crate) struct Places<N> {
    /// Whether positions may be completed before earlier ones are.
    pub(crate) may_have_gaps: bool,
    /// The number of tasks that can now continue, at least 1.
    pub(crate) number: N,
}

/// Whether the next completion must wake a waiter. Tasks depend on the alarm; for threads it is only advice, because
/// their sleeps are bounded.
#[derive(Debug)]
struct Alarm {
    is_set: AtomicBool,
    /// Whether the waiter to wake is the first of the line.
    for_thread: advice::AtomicBool,
}

/// The producer that polls for room without sleeping.
#[derive(Debug, Default)]
struct PollingProducer {
    is_there: advice::AtomicBool,
    turn_began_ns: advice::AtomicU64,
    /// The number of waits for room in the current turn.
    waits: advice::AtomicU64,
}

impl FreeSpace {
    pub(crate) fn new(strategy: WaitStrategy, capacity: u64) -> Self {
        FreeSpace {
            alarm: CachePadded(Alarm { is_set: AtomicBool::new(false), for_thread: advice::AtomicBool::new(false) }),
            line: Line::default(),
            tasks: Notifier::new(),
            portion: (capacity / 4).max(1),
            spin: AdaptiveSpin::new(strategy, capacity),
            poller: CachePadded(PollingProducer::default()),
        }
    }

    /// Announces that a consumer has completed positions. Returns whether waiters should be woken; if so, the caller
    /// must call [`wake_waiters`](Self::wake_waiters). That function is separate, because this one runs for each event
    /// and is inlined. Calls `fenced` after the light fence, before any waiter is woken.
    #[inline(always)]
    #[must_use]
    pub(crate) fn freed(&self, fenced: impl FnOnce()) -> bool {
        light();
        // Relaxed: the fence has done the ordering, and `wake_waiters` reads the alarm again with acquire.
        let is_set = self.alarm.is_set.load(Ordering::Relaxed);
        fenced();
        is_set
    }

    /// Wakes waiters for the freed `places`.
    pub(crate) fn wake_waiters(&self, places: Places<impl FnOnce() -> usize>) {
        if self.tasks.has_waiters_unfenced() {
            // The alarm stays set for the tasks.
            self.wake_tasks(places);
        } else {
            // Acquire pairs with the release in `set_alarm`: this thread sees the registration of the waiter whose
            // alarm it clears.
            self.alarm.is_set.swap(false, Ordering::AcqRel);
            if self.tasks.has_waiters_unfenced() {
                // A task registered after the first check, and another consumer may have found the alarm cleared in
                // between. If the light fence of that consumer comes before the heavy fence here, the task that is
                // woken here sees the consumer's completion. Otherwise the consumer finds the alarm set.
                self.set_alarm();
                heavy();
                self.tasks.wake(usize::MAX);
            }
        }
        if self.alarm.for_thread.load(Ordering::Relaxed) && self.alarm.for_thread.swap(false, Ordering::Relaxed) {
            self.line.wake_first();
        }
    }

    /// Wakes as many tasks as there are free slots.
    ///
    /// If there may be gaps, a slot completed behind a gap is not free yet, so a task that is woken for it cannot
    /// continue. When another consumer closes the gap, that slot becomes free, too, and a task must be woken for it. So
    /// every consumer wakes one task first, *then* counts the slots that are free now, and wakes a task for each of the
    /// others. Of all consumers that have completed the positions up to some point, the last one to count sees the
    /// completions of the others, and so do the tasks that it wakes.
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

    /// Makes the next completion wake waiters.
    fn set_alarm(&self) {
        self.alarm.is_set.store(true, Ordering::Release);
    }

    /// Makes the next completion wake the first of the line.
    fn set_alarm_for_thread(&self) {
        // No fence is needed: a completion that misses the alarm only prolongs a nap, whereas a fence would interrupt
        // the consumer.
        self.alarm.for_thread.store(true, Ordering::Relaxed);
        self.set_alarm();
    }

    /// Called by a consumer that has found no event for as long as a wake-up takes, or is about to sleep. `level`
    /// returns the number of positions that are claimed and not consumed; if it is at most a quarter of the ring, this
    /// wakes a producer.
    pub(crate) fn starved(&self, level: impl FnOnce() -> u64) {
        if self.line.len() > 0 && level() <= self.portion {
            self.line.wake_first();
        }
    }

    /// Called by a consumer whose `try_` call found no event. Wakes a producer unless a producer polls or was just
    /// woken.
    #[inline]
    pub(crate) fn found_nothing(&self) {
        if self.line.len() > 0 && !self.poller.is_there.load(Ordering::Relaxed) && !self.line.is_waking() {
            self.line.wake_first();
        }
    }

    /// Called when a producer has left. Wakes the first of the line, which may be asleep only because the departed
    /// producer polled.
    pub(crate) fn producer_left(&self) {
        self.line.wake_first();
    }

    /// Wakes all waiters, because the other side is gone.
    pub(crate) fn wake_all(&self) {
        self.line.wake_all();
        self.tasks.wake(usize::MAX);
    }

    /// Waits until `check(n)` succeeds, which needs `n` free positions; this function chooses `n`. Returns `None` if
    /// the deadline has passed and `check(1)` fails.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(&self, deadline: Option<Instant>, mut check: impl FnMut(u64) -> Option<R>) -> Option<R> {
        let mut sleeper: Option<(Place<'_>, Instant)> = None;
        let mut role = self.role();
        loop {
            if role == Role::Polls {
                match self.poll_for_room(deadline, &mut check) {
                    PollOutcome::Found(found) => return Some(found),
                    PollOutcome::TimedOut => break,
                    PollOutcome::GaveUp => {}
                }
            }
            let (place, began) = sleeper.get_or_insert_with(|| (self.line.join(), Instant::now()));
            place.rejoin();
            if role != Role::StandsBack {
                self.set_alarm_for_thread();
            }
            if let Some(found) = check(1) {
                return Some(found);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            let slept_ns = self.nap(place, *began, deadline);
            if role == Role::Polls {
                self.gave_up(slept_ns);
            }
            // A producer whose sleep timed out sets the alarm, checks once, and sleeps again.
            role = if place.was_woken() { self.role() } else { Role::Naps };
        }
        let found = check(1);
        if found.is_none() && sleeper.is_some_and(|(place, _)| place.was_woken()) {
            self.line.wake_first();
        }
        found
    }

    /// Chooses the role of a producer that finds the ring full.
    fn role(&self) -> Role {
        if !self.spin.is_adaptive() {
            return Role::Polls;
        }
        if self.poller.is_there.load(Ordering::Relaxed) {
            return Role::StandsBack;
        }
        let is_queue = self.line.len() > 0;
        // A producer that sleeps at once does not poll, so it has no turn that could end.
        if !self.spin.start().sleeps_at_once() && (is_queue || self.spin.shares_core()) && self.turn_has_ended() {
            self.line.wake_first();
            return if is_queue { Role::StandsBack } else { Role::Naps };
        }
        if self.poller.is_there.swap(true, Ordering::Relaxed) { Role::StandsBack } else { Role::Polls }
    }

    /// Whether the turn has ended; if so, begins the next turn.
    fn turn_has_ended(&self) -> bool {
        let now_ns = cost::now_ns();
        let began_ns = self.poller.turn_began_ns.load(Ordering::Relaxed);
        let waits = self.poller.waits.load(Ordering::Relaxed) + 1;
        let has_ended = turn_has_ended(now_ns.saturating_sub(began_ns), waits, u64::from(cost::of_sleep()));
        if has_ended {
            self.poller.turn_began_ns.store(now_ns, Ordering::Relaxed);
        }
        self.poller.waits.store(if has_ended { 0 } else { waits }, Ordering::Relaxed);
        has_ended && began_ns > 0
    }

    /// Polls until there is room, the deadline has passed, or it is time to sleep.
    fn poll_for_room<R>(&self, deadline: Option<Instant>, mut check: impl FnMut(u64) -> Option<R>) -> PollOutcome<R> {
        // At first the producer waits for a whole portion, so that it does not take each slot the moment it is freed.
        // If consumers are slow, a single slot is enough after a short time.
        let outcome =
            self.spin.start().poll(deadline, |_| (), |pace| check(if pace.gathers() { self.portion } else { 1 }));
        self.poller.is_there.store(false, Ordering::Relaxed);
        outcome
    }

    /// Sleeps until the producer is woken or the sleep times out. Returns the time asleep. The time-out is the time
    /// since `began`, within bounds, times the number of sleeping producers: so all of them together time out no more
    /// often than a single one would.
    fn nap(&self, place: &Place<'_>, began: Instant, deadline: Option<Instant>) -> u64 {
        let length = self.line.len().try_into().unwrap_or(u32::MAX);
        let nap = began.elapsed().clamp(MIN_NAP, MAX_NAP_EACH).saturating_mul(length).min(MAX_NAP);
        let until = Instant::now() + nap;
        let asleep_ns = cost::now_ns();
        let waited = place.sleep(deadline.map_or(until, |deadline| deadline.min(until)));
        let awake_ns = cost::now_ns();
        if waited == Waited::Changed {
            self.line.woken.learn(asleep_ns, awake_ns);
        }
        awake_ns.saturating_sub(asleep_ns)
    }

    /// Learns from the sleep of a producer that polled first and found no room. Producers poll for a longer or shorter
    /// time afterwards.
    fn gave_up(&self, slept_ns: u64) {
        if !self.spin.is_adaptive() {
            return;
        }
        if self.spin.start().sleeps_at_once() {
            self.spin.sleeps_at_once(cost::now_ns(), self.line.woken.get());
        } else {
            self.spin.slept(slept_ns, 0);
        }
    }

    /// Wakes one more task, because the task that was woken may not use its slot. Threads find a free slot without
    /// this.
    pub(crate) fn pass_on(&self) {
        if self.tasks.has_waiters() {
            self.tasks.wake(1);
        }
    }

    /// Waits as a task until `check` finds something.
    pub(crate) async fn wait_async<R>(&self, check: impl FnMut() -> Option<R>) -> R {
        self.tasks.wait_async(|| self.set_alarm(), check).await
    }
}

/// The role of a producer that finds the ring full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Polls for room, and then sleeps until the next completion.
    Polls,
    /// Sleeps until the next completion.
    Naps,
    /// Sleeps, because another producer polls.
    StandsBack,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_producer_polls_and_the_others_stand_back_unless_the_strategy_forbids_sleep() {
        for (strategy, others) in [
            (WaitStrategy::Adaptive, Role::StandsBack),
            (WaitStrategy::Yield, Role::Polls),
            (WaitStrategy::Spin, Role::Polls),
        ] {
            let room = FreeSpace::new(strategy, 1024);
            assert_eq!([room.role(), room.role(), room.role()], [Role::Polls, others, others]);
        }
    }

    #[test]
    fn a_polling_producer_hands_over_to_the_first_of_the_line_when_its_turn_has_ended() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 1024);
        let [first, second] = [(); 2].map(|()| room.line.join());
        let soon = cost::now_ns() + 3_600_000_000_000;
        room.poller.turn_began_ns.store(soon, Ordering::Relaxed);
        assert_eq!(room.role(), Role::Polls, "a turn was cut short");
        room.poller.is_there.store(false, Ordering::Relaxed);
        room.poller.turn_began_ns.store(1, Ordering::Relaxed);
        while !turn_has_ended(cost::now_ns() - 1, 1, u64::from(cost::of_sleep())) {
            std::thread::yield_now();
        }
        assert_eq!(room.role(), Role::StandsBack);
        assert!(first.was_woken() && !second.was_woken());
        assert_eq!(room.role(), Role::Polls, "the next turn has not begun");
    }

    #[test]
    fn the_completion_after_an_alarm_wakes_the_first_of_the_line_and_later_ones_none() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 8);
        let [first, second] = [(); 2].map(|()| room.line.join());
        let complete = || {
            let is_set = room.freed(|| ());
            if is_set {
                room.wake_waiters(Places { may_have_gaps: false, number: || 1 });
            }
            is_set
        };
        assert!(!complete());
        room.set_alarm_for_thread();
        assert!(complete() && first.was_woken() && !second.was_woken());
        assert!(!complete());
    }

    #[test]
    fn a_starved_consumer_wakes_no_producer_while_more_than_a_quarter_is_on_its_way() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 1024);
        let wakes = |level: u64| {
            let sleeper = room.line.join();
            room.starved(|| level);
            sleeper.was_woken()
        };
        assert_eq!([257u64, 256, 0].map(wakes), [false, true, true]);
    }

    #[test]
    fn a_try_call_that_finds_nothing_wakes_one_producer_and_none_while_one_polls() {
        let room = FreeSpace::new(WaitStrategy::Adaptive, 1024);
        let [first, second] = [(); 2].map(|()| room.line.join());
        room.poller.is_there.store(true, Ordering::Relaxed);
        room.found_nothing();
        assert!(!first.was_woken());
        room.poller.is_there.store(false, Ordering::Relaxed);
        room.found_nothing();
        room.found_nothing();
        assert!(first.was_woken() && !second.was_woken(), "a second producer was woken before the first was awake");
        assert_eq!(first.sleep(Instant::now() + Duration::from_secs(3600)), Waited::Changed);
        room.found_nothing();
        assert!(second.was_woken());
    }

    #[test]
    fn a_producer_that_is_woken_as_its_deadline_passes_wakes_the_next_one() {
        let room = FreeSpace::new(WaitStrategy::Block, 8);
        let waits = std::thread::scope(|scope| {
            let late = scope.spawn(|| {
                let soon = Instant::now() + Duration::from_millis(20);
                room.wait(Some(soon), |_| {
                    // The deadline has passed, so a wake-up now comes too late for this producer.
                    if Instant::now() >= soon && room.line.len() == 2 {
                        room.line.wake_first();
                    }
                    None::<()>
                })
            });
            while room.line.len() == 0 {
                std::thread::yield_now();
            }
            let next = room.line.join();
            assert_eq!(late.join().expect("the wait does not panic"), None);
            next.was_woken()
        });
        assert!(waits, "the wake-up was lost with the producer that it had woken");
    }
}
