//! Waiting for room in a full ring.
//!
//! Waking a producer costs the consumer as much as hundreds of events, and as long as others keep the ring
//! filled, nothing is gained by it. So the consumer looks at the level only after each quarter of the ring
//! (`due` is the position of the next look), and wakes one sleeper if less than a quarter is left.
//!
//! **Nobody is forgotten.** A consumer may take less than a quarter and then stop for good; others may keep the ring
//! full for ever; who was woken may need but one slot of many. So each sleep is bounded: by 1 ms at first, then as long
//! as all sleeps before together, never more than 50 ms, times the number of sleepers. All sleepers of a ring
//! together so wake up at most once in a millisecond at first and 20 times a second in the long run. Who
//! has slept once in vain is *urgent*: the next completion wakes the producer that has slept longest.
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
use crate::primitive::atomic::{AtomicBool, AtomicU64, Ordering};

/// Looks after which a producer takes what room there is.
const GATHERING_LOOKS: u32 = 20;
const NAP_FIRST: Duration = Duration::from_millis(1);
const NAP_LONGEST: Duration = Duration::from_millis(50);
/// So many positions lie between two naps that are taken although yielding would do: some 0.5 ms, for a nap of a few µs.
const POSITIONS_BETWEEN_NAPS: u64 = 1 << 17;

#[derive(Debug)]
pub(crate) struct Room {
    threads: Bell,
    /// Tasks have no timer of their own, so each completion wakes them all.
    tasks: Bell,
    alarm: Padded<Alarm>,
    /// What a producer waits for, while it may hope that there will be more soon.
    portion: u64,
    temper: Temper,
}

/// When consumers should wake a sleeping producer, and when a producer should sleep. All of it is advice, as sleeps are
/// bounded: the bell orders what matters.
#[derive(Debug)]
struct Alarm {
    /// The consumers' position at which to look at the level.
    due: AtomicU64,
    /// Somebody has slept in vain.
    urgent: AtomicBool,
    /// The consumers' position from which on the next producer that finds the ring full sleeps at once.
    nap_due: AtomicU64,
}

impl Room {
    pub(crate) fn new(strategy: WaitStrategy, capacity: u64) -> Self {
        Room {
            threads: Bell::new(),
            tasks: Bell::new(),
            alarm: Padded(Alarm {
                due: AtomicU64::new(u64::MAX),
                urgent: AtomicBool::new(false),
                nap_due: AtomicU64::new(POSITIONS_BETWEEN_NAPS),
            }),
            portion: (capacity / 4).max(1),
            temper: Temper::new(strategy),
        }
    }

    /// A consumer has completed positions. All before `completed()` are free again, or about so; producers have
    /// claimed up to `claimed()`. Calls `fenced` after the light fence, before anybody is woken.
    #[inline(always)]
    pub(crate) fn freed(&self, fenced: impl FnOnce(), completed: impl FnOnce() -> u64, claimed: impl FnOnce() -> u64) {
        // Tasks are counted here, too.
        let heard = self.threads.is_heard();
        fenced();
        if heard {
            self.wake_due(completed, claimed);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_due(&self, completed: impl FnOnce() -> u64, claimed: impl FnOnce() -> u64) {
        if self.tasks.is_heard() {
            self.tasks.wake(usize::MAX);
        }
        if self.alarm.urgent.load(Ordering::Relaxed) {
            self.alarm.urgent.store(false, Ordering::Relaxed);
            self.threads.wake(1);
            return;
        }
        let completed = completed();
        if self.alarm.due.load(Ordering::Relaxed) <= completed {
            self.alarm.due.store(completed + self.portion, Ordering::Relaxed);
            if claimed().saturating_sub(completed) <= self.portion {
                self.threads.wake(1);
            }
        }
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
        let looked = if self.nap_is_due(&completed) {
            Looked::InVain
        } else {
            let pace = self.temper.start();
            pace.look(deadline, |pace| look(if pace.looks() <= GATHERING_LOOKS { self.portion } else { 1 }))
        };
        match looked {
            Looked::Found(found) => Some(found),
            Looked::TimedOut => look(1),
            Looked::InVain => {
                let began = Instant::now();
                let found = self.sleep(began, deadline, completed, look);
                self.temper.slept_since(began);
                found
            }
        }
    }

    /// Whether this wait should begin with sleep.
    fn nap_is_due(&self, completed: impl Fn() -> u64) -> bool {
        let completed = completed();
        let is_due = self.temper.is_adaptive() && self.alarm.nap_due.load(Ordering::Relaxed) <= completed;
        if is_due {
            self.alarm.nap_due.store(completed + POSITIONS_BETWEEN_NAPS, Ordering::Relaxed);
        }
        is_due
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
        self.alarm.due.fetch_min(completed() + self.portion, Ordering::Relaxed);
        loop {
            let key = listening.key();
            if let Some(found) = look(1) {
                return Some(found);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            let nap = began.elapsed().clamp(NAP_FIRST, NAP_LONGEST) * listening.listeners();
            let until = Instant::now() + nap;
            let end = deadline.map_or(until, |deadline| deadline.min(until));
            if listening.sleep(key, Some(end)) == Waited::TimedOut {
                self.alarm.urgent.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Waits as a task until `look` finds something.
    pub(crate) async fn wait_async<R>(&self, look: impl FnMut() -> Option<R>) -> R {
        // Without a fence of its own: the one that the tasks' bell has before its first look comes after both.
        let _counted = self.threads.listen_in_time();
        self.tasks.wait_async(look).await
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn naps_are_rare_and_only_for_those_who_leave_it_to_us() {
        let due = |strategy| {
            let room = Room::new(strategy, 8);
            (0..4 * POSITIONS_BETWEEN_NAPS).step_by(100).filter(|&at| room.nap_is_due(|| at)).count()
        };
        assert_eq!(due(WaitStrategy::Adaptive), 3);
        assert_eq!([WaitStrategy::Block, WaitStrategy::Yield, WaitStrategy::Spin].map(due), [0; 3]);
    }
}
