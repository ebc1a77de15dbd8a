//! Waiting for room in a full ring.
//!
//! **One looks, the others sleep.** A ring is full because its consumers are slower than its producers are together, so a producer or two keep
//! it filled. If all looked and yielded, the consumer that yields on the same core would come last after all of them, who find
//! nothing: with 256 producers on two cores that was 13 ns an event and 25 ns of CPU time instead of 5.7 and 10.7. So a
//! producer that finds the ring full while another looks for room goes to sleep at once.
//!
//! **Sleepers cost nothing.** Waking a producer takes as much as hundreds of events, so it is to happen seldom, and a completion should
//! not have to find out. It compares its position with one number, `due`: the position at which to look after those who
//! sleep, out of reach while nobody does.
//!
//! **Who is woken when.** A consumer looks after them with each quarter of the ring that it frees and at the end of what is there, and wakes
//! one if at most a quarter is left, nobody has claimed anything since it looked last, and nobody looks for room: then no producer is at
//! work. It wakes one, too, if nothing is left. So does a consumer that waits, when there still is nothing after a pause (and at most a quarter
//! claimed): if hardly anything has come since it last waited so long, those at work are too few; if much has, they are merely a little slower than the
//! consumer, who would wake one after the other, so then it wakes one in 16 384 positions, or in 1 ms. Before it sleeps it always does, and where there is
//! but one producer.
//! And every 131 072 positions whoever has slept longest has its turn.
//!
//! **Nobody is forgotten.** A consumer may take less than a quarter and then stop for good; others may keep the ring
//! full for ever; who was woken may need but one slot of many. So each sleep is bounded: by 1 ms at first, then as long
//! as all sleeps before together, never more than 50 ms, times the number of sleepers, and by 200 ms. Up to four sleepers
//! together so wake up at most once in a millisecond at first and 20 times a second in the long run. Who
//! has slept once in vain is *urgent*: the next completion wakes the producer that has slept longest. And a producer that leaves wakes one, who
//! may have slept because it was there.
//!
//! **Now and then a nap.** A producer and the consumer that share a core and yield to each other never give the scheduler
//! cause to part them, although the other core may idle or have producers enough. A thread that wakes from sleep is placed
//! anew. So once in 131 072 positions a producer that finds the ring full sleeps at once: with three producers
//! on two cores, 4.7 ns an event instead of 6.0.

use std::time::{Duration, Instant};

use super::bell::Bell;
use super::pace::{Looked, Temper};
use millstream_sync::eventcount::Waited;

use super::WaitStrategy;
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicU64, Ordering};
use crate::primitive::{heavy, light};

/// The standard atomics, in a model, too: advice orders nothing, and what it is makes no difference to explore.
mod advice {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// In a model naps end at any time, so it makes no difference to explore who is woken before.
const LOOKS_AFTER_THREADS: bool = !cfg!(loom);

/// Looks after which a producer takes what room there is.
const GATHERING_LOOKS: u32 = 20;
const NAP_FIRST: Duration = Duration::from_millis(1);
const NAP_LONGEST: Duration = Duration::from_millis(50);
/// The longest nap, however many sleep.
const NAP_MOST: Duration = Duration::from_millis(200);
/// So many positions lie between two naps that are taken although yielding would do, and between two turns of who sleeps: some 0.5 ms, for
/// a few µs.
const POSITIONS_BETWEEN_NAPS: u64 = 1 << 17;
/// A consumer that finds nothing although producers are at work wakes one in so many positions, or in this time if it comes first.
const POSITIONS_BETWEEN_HELPERS: u64 = 1 << 14;
const TIME_BETWEEN_HELPERS: Duration = Duration::from_millis(1);
/// A producer is at work if so many positions were claimed from one pause in vain to the next.
const AT_WORK: u64 = 16;

#[derive(Debug)]
pub(crate) struct Room {
    threads: Bell,
    /// Tasks have no timer of their own, so each completion wakes as many as can go on.
    tasks: Bell,
    alarm: Padded<Alarm>,
    /// What a producer waits for, while it may hope that there will be more soon.
    portion: u64,
    temper: Temper,
    lookers: Padded<Lookers>,
}

/// What a completion has made free.
pub(crate) struct Places<N> {
    /// Whether positions may be completed before those that come before them.
    pub(crate) may_have_gaps: bool,
    /// How many tasks could go on, 1 at least.
    pub(crate) number: N,
}

/// The due position while nobody sleeps.
const NEVER: u64 = u64::MAX;
/// The due position of who is to be woken by the next completion.
const AT_ONCE: u64 = 0;

/// When consumers should wake a sleeping producer, and when a producer should sleep. For threads all of it is advice, as their sleeps are
/// bounded. Tasks rely on `due`.
#[derive(Debug)]
struct Alarm {
    /// The consumers' position at which to look after the sleepers.
    due: AtomicU64,
    /// The same of threads alone.
    threads_due: advice::AtomicU64,
    /// Somebody has slept in vain.
    urgent: advice::AtomicBool,
    /// The consumers' position from which on whoever has slept longest has its turn.
    turn_due: advice::AtomicU64,
    /// What was claimed when a consumer looked last.
    claimed: advice::AtomicU64,
    /// What was claimed when a consumer last found nothing after a pause.
    drained: advice::AtomicU64,
    /// What was claimed when it last woke somebody for it, and when that was, in nanoseconds from `epoch`.
    helped: advice::AtomicU64,
    helped_ns: advice::AtomicU64,
    epoch: Instant,
}

impl Alarm {
    /// Whether a consumer that finds nothing should wake a producer; it does if this says so.
    fn needs_help(&self, claimed: u64, must: bool, now: Instant) -> bool {
        let since = |then: &advice::AtomicU64, now: u64| now.saturating_sub(then.load(Ordering::Relaxed));
        let now_ns = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        let needs = must
            || since(&self.drained, claimed) < AT_WORK
            || since(&self.helped, claimed) >= POSITIONS_BETWEEN_HELPERS
            || since(&self.helped_ns, now_ns) >= TIME_BETWEEN_HELPERS.as_nanos() as u64;
        self.drained.store(claimed, Ordering::Relaxed);
        if needs {
            self.helped.store(claimed, Ordering::Relaxed);
            self.helped_ns.store(now_ns, Ordering::Relaxed);
        }
        needs
    }
}

/// What producers tell each other when they find the ring full.
#[derive(Debug)]
struct Lookers {
    /// How many look for room without sleeping.
    now: advice::AtomicU32,
    /// The consumers' position from which on the next who would look sleeps instead.
    nap_due: advice::AtomicU64,
}

impl Room {
    pub(crate) fn new(strategy: WaitStrategy, capacity: u64) -> Self {
        Room {
            threads: Bell::new(),
            tasks: Bell::new(),
            alarm: Padded(Alarm {
                due: AtomicU64::new(NEVER),
                threads_due: advice::AtomicU64::new(NEVER),
                urgent: advice::AtomicBool::new(false),
                turn_due: advice::AtomicU64::new(POSITIONS_BETWEEN_NAPS),
                claimed: advice::AtomicU64::new(0),
                drained: advice::AtomicU64::new(0),
                helped: advice::AtomicU64::new(0),
                helped_ns: advice::AtomicU64::new(0),
                epoch: Instant::now(),
            }),
            lookers: Padded(Lookers {
                now: advice::AtomicU32::new(0),
                nap_due: advice::AtomicU64::new(POSITIONS_BETWEEN_NAPS),
            }),
            portion: (capacity / 4).max(1),
            temper: Temper::new(strategy),
        }
    }

    /// A consumer has completed positions, the last of them before `end`. If somebody should be woken, the position that is due: then the caller
    /// is to [`ring`](Self::ring), out of line and with numbers in registers, for this is called for each event. Calls `fenced` after the light
    /// fence, before anybody is woken.
    #[inline(always)]
    #[must_use]
    pub(crate) fn freed(&self, end: u64, fenced: impl FnOnce()) -> Option<u64> {
        light();
        // Relaxed: the fence has done the ordering, and `ring` looks properly.
        let due = self.alarm.due.load(Ordering::Relaxed);
        fenced();
        (due <= end).then_some(due)
    }

    /// Wakes who waits for the `places` that were made. All before `completed()` are free again, or about so; producers have claimed up to
    /// `claimed()`.
    pub(crate) fn ring(
        &self,
        due: u64,
        places: Places<impl FnOnce() -> usize>,
        completed: impl FnOnce() -> u64,
        claimed: impl FnOnce() -> u64,
    ) {
        let completed = completed();
        if self.tasks.has_listeners() {
            self.wake_tasks(places);
            // `due` is for the tasks now, so threads have a position of their own.
            if self.alarm.threads_due.load(Ordering::Relaxed) <= completed {
                self.look_after_threads(completed, claimed);
            }
            return;
        }
        if completed < due {
            // Another consumer is behind, and comes by here when it gets there.
            return;
        }
        // Acquire pairs with the release in `ring_at`: whose position is taken out here is seen among the listeners.
        self.alarm.due.swap(NEVER, Ordering::AcqRel);
        if self.tasks.has_listeners() {
            // A task came in between. Another consumer may have found `NEVER` meanwhile. Either it passes the fence, and what it completed is
            // there for the task to see when it is woken; or it completes later and finds `AT_ONCE`.
            self.ring_at(AT_ONCE);
            heavy();
            self.tasks.wake(usize::MAX);
        }
        self.look_after_threads(completed, claimed);
    }

    /// Wakes as many tasks as there are places.
    ///
    /// If there may be gaps, in two parts: who completes a position behind a gap wakes a task in vain, and whoever closes the gap has to wake one
    /// for that position, too. Of all who have completed the positions up to some place, one comes to the count last: by then it sees what the
    /// others have completed, and whom it wakes does, too. So everybody wakes one first, and *then* counts.
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

    /// Wakes a thread if one has slept in vain or long enough, or if no producer is at work; says when to look again.
    fn look_after_threads(&self, completed: u64, claimed: impl FnOnce() -> u64) {
        if !self.has_sleepers() {
            return;
        }
        let alarm = &*self.alarm;
        let claimed = claimed();
        let nobody_claims = claimed == alarm.claimed.load(Ordering::Relaxed);
        alarm.claimed.store(claimed, Ordering::Relaxed);
        let level = claimed.saturating_sub(completed);
        // The end of what is there is not passed without a look: nobody may come by here after it.
        self.look_at(completed + level.clamp(1, self.portion));

        let is_turn = alarm.turn_due.load(Ordering::Relaxed) <= completed;
        let nobody_works = level <= self.portion && (nobody_claims || level == 0);
        if alarm.urgent.load(Ordering::Relaxed) {
            alarm.urgent.store(false, Ordering::Relaxed);
            self.threads.wake(1);
        } else if is_turn {
            alarm.turn_due.store(completed + POSITIONS_BETWEEN_NAPS, Ordering::Relaxed);
            self.threads.wake(1);
        } else if nobody_works && self.lookers.now.load(Ordering::Relaxed) == 0 {
            self.threads.wake(1);
        }
    }

    /// Has the consumers look after sleeping threads when they have completed what is before `position`.
    fn look_at(&self, position: u64) {
        if LOOKS_AFTER_THREADS {
            self.alarm.threads_due.store(position, Ordering::Relaxed);
            self.ring_at(position);
        }
    }

    /// Has the consumers call [`ring`](Self::ring) when they have completed what is before `position`, if not earlier.
    fn ring_at(&self, position: u64) {
        self.alarm.due.fetch_min(position, Ordering::Release);
    }

    /// A consumer finds nothing after a pause, or is about to sleep; all before `completed()` are free again, and producers have claimed up to
    /// `claimed()`. Wakes one producer if it `must`, or if that seems good.
    pub(crate) fn drained(&self, must: bool, completed: impl FnOnce() -> u64, claimed: impl FnOnce() -> u64) {
        // Without a fence: sleeps are bounded, and tasks are woken by what the consumer completed before.
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

    /// A producer has left; another may sleep because it was there.
    pub(crate) fn left(&self) {
        if self.has_sleepers() {
            self.threads.wake(1);
        }
    }

    fn has_sleepers(&self) -> bool {
        LOOKS_AFTER_THREADS && self.threads.has_listeners()
    }

    /// Wakes everybody: whom they wait for is gone.
    pub(crate) fn wake_all(&self) {
        self.threads.wake(usize::MAX);
        self.tasks.wake(usize::MAX);
    }

    /// Waits until `look(n)` finds something, for a suitable number of free positions `n`; `None` when the deadline has
    /// passed and `look(1)` finds nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        completed: impl Fn() -> u64,
        mut look: impl FnMut(u64) -> Option<R>,
    ) -> Option<R> {
        // Who has a deadline has no time to stand back.
        let stands_back = deadline.is_none() && self.should_sleep(&completed);
        let looked = if stands_back { Looked::InVain } else { self.look_for_room(deadline, &mut look) };
        match looked {
            Looked::Found(found) => Some(found),
            Looked::TimedOut => look(1),
            Looked::InVain => {
                let began = Instant::now();
                let found = self.sleep(began, deadline, completed, look);
                if !stands_back {
                    self.temper.slept_since(began);
                }
                found
            }
        }
    }

    /// Whether this wait should begin with sleep.
    fn should_sleep(&self, completed: impl Fn() -> u64) -> bool {
        self.temper.is_adaptive() && (self.lookers.now.load(Ordering::Relaxed) > 0 || self.nap_is_due(completed()))
    }

    fn nap_is_due(&self, completed: u64) -> bool {
        let nap_due = &self.lookers.nap_due;
        let is_due = nap_due.load(Ordering::Relaxed) <= completed;
        if is_due {
            nap_due.store(completed + POSITIONS_BETWEEN_NAPS, Ordering::Relaxed);
        }
        is_due
    }

    /// Looks until there is room or reason to sleep.
    fn look_for_room<R>(&self, deadline: Option<Instant>, mut look: impl FnMut(u64) -> Option<R>) -> Looked<R> {
        let is_counted = self.temper.is_adaptive();
        if is_counted {
            // Two may come at the same time; that is as good as one.
            self.lookers.now.fetch_add(1, Ordering::Relaxed);
        }
        let pace = self.temper.start();
        let looked = pace.look(deadline, |pace| look(if pace.looks() <= GATHERING_LOOKS { self.portion } else { 1 }));
        if is_counted {
            self.lookers.now.fetch_sub(1, Ordering::Relaxed);
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
        // Without a fence: a wake-up that slips through costs the rest of a nap, a fence would interrupt the consumer.
        let listening = self.threads.listen_in_time();
        self.look_at(completed() + self.portion);
        let mut was_woken = false;
        loop {
            let key = listening.key();
            if let Some(found) = look(1) {
                return Some(found);
            }
            if was_woken {
                // In vain: others were quicker, or the room we were woken for begins behind a position that is not completed yet.
                self.look_at(AT_ONCE);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            let nap = (began.elapsed().clamp(NAP_FIRST, NAP_LONGEST) * listening.listeners()).min(NAP_MOST);
            let until = Instant::now() + nap;
            let end = deadline.map_or(until, |deadline| deadline.min(until));
            was_woken = listening.sleep(key, Some(end)) == Waited::Changed;
            if !was_woken && end == until {
                self.alarm.urgent.store(true, Ordering::Relaxed);
                self.look_at(AT_ONCE);
            }
        }
    }

    /// Wakes one more task: the one that was woken may leave its place to others. Threads find it by themselves.
    pub(crate) fn pass_on(&self) {
        if self.tasks.is_heard() {
            self.tasks.wake(1);
        }
    }

    /// Waits as a task until `look` finds something.
    pub(crate) async fn wait_async<R>(&self, look: impl FnMut() -> Option<R>) -> R {
        self.tasks.wait_async(|| self.ring_at(AT_ONCE), look).await
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn naps_are_rare_and_only_for_those_who_leave_it_to_us() {
        let due = |strategy| {
            let room = Room::new(strategy, 8);
            (0..4 * POSITIONS_BETWEEN_NAPS).step_by(100).filter(|&at| room.should_sleep(|| at)).count()
        };
        assert_eq!(due(WaitStrategy::Adaptive), 3);
        assert_eq!([WaitStrategy::Block, WaitStrategy::Yield, WaitStrategy::Spin].map(due), [0; 3]);
    }

    #[test]
    fn who_finds_nothing_wakes_one_if_nobody_is_at_work_and_seldom_if_somebody_is() {
        let room = Room::new(WaitStrategy::Adaptive, 1024);
        let epoch = room.alarm.epoch;
        let needs = |claimed, must, us| room.alarm.needs_help(claimed, must, epoch + Duration::from_micros(us));
        assert!(needs(0, false, 10_000));
        assert!(!needs(1000, false, 10_001));
        assert!(needs(1010, false, 10_002) && needs(1010, false, 10_003), "hardly anything has come");
        assert!(!needs(5000, false, 10_050));
        assert!(needs(9000, true, 10_051), "it is about to sleep");
        assert!(!needs(9100, false, 10_100));
        assert!(needs(9000 + POSITIONS_BETWEEN_HELPERS, false, 10_101), "many positions ago");
        assert!(!needs(26_000, false, 11_000));
        assert!(needs(27_000, false, 11_200), "long ago");
    }

    #[test]
    fn nobody_is_woken_while_more_than_a_quarter_is_left() {
        let room = Room::new(WaitStrategy::Adaptive, 1024);
        let sleeper = room.threads.listen_in_time();
        let wakes = |level: u64| {
            let key = sleeper.key();
            room.drained(true, || 5000 - level, || 5000);
            sleeper.key() != key
        };
        assert_eq!([257u64, 256, 0].map(wakes), [false, true, true]);
    }
}
