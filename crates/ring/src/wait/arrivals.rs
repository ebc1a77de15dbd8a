//! Waiting for events.
//!
//! **Who sleeps for each event goes on listening.** To be heard takes a heavy fence, which interrupts whoever sends at that moment, takes
//! a system call of its own, and makes the wake-up after it slower: 1.3 times as long as a bare futex takes, instead of 1.0 to 1.1. So
//! a consumer that has given up looking, and is the only one who waits for its ring, does not stop listening when it wakes up. Who sends
//! then rings a bell that nobody may need, 3 ns. As soon as two events have gathered, or looking helps, this is over.

// The standard one in a model, too: one thread reads and writes it.
use std::sync::atomic::{AtomicBool as OwnBool, Ordering};
use std::time::Instant;

use super::WaitStrategy;
use super::bell::SharedBell;
use super::pace::{Looked, Temper};
use crate::primitive::atomic::AtomicBool;
use crate::primitive::{heavy, light};

/// Where consumers wait for what they follow.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) bell: SharedBell,
    /// Whether whoever listens to the bell waits for the same: then one waiter is woken for one event. In a
    /// [`WaitSet`](super::WaitSet) they wait for different rings, in most graphs for different consumers, and all have to look.
    alike: AtomicBool,
    /// Whether the only waiter listens although it may be awake. Written by that one alone; where there are several it stays false.
    listens_on: OwnBool,
    temper: Temper,
}

impl Arrivals {
    /// Waiters on a bell of their own, or on that of a set.
    pub(crate) fn new(strategy: WaitStrategy, set: Option<SharedBell>) -> Self {
        let alike = set.is_none();
        Arrivals {
            bell: set.unwrap_or_default(),
            alike: AtomicBool::new(alike),
            listens_on: OwnBool::new(false),
            temper: Temper::new(strategy),
        }
    }

    /// `events` have come, each for one waiter. Calls `fenced` after the light fence, before any waiter is woken.
    #[inline(always)]
    pub(crate) fn came(&self, events: usize, fenced: impl FnOnce()) {
        if self.are_heard(fenced) {
            self.wake(events);
        }
    }

    /// Whether a waiter listens for what has come. Calls `fenced` after the light fence. If so, the caller is to
    /// [`wake`](Self::wake).
    #[inline(always)]
    pub(crate) fn are_heard(&self, fenced: impl FnOnce()) -> bool {
        let heard = self.bell.is_heard();
        fenced();
        heard
    }

    /// Wakes one waiter for each event; all of them, if they do not wait for the same.
    ///
    /// The first who differs may come while this is under way, and be woken instead of who could go on. Hence the second look. If the heavy fence
    /// with which the newcomer begins to listen comes before the light one here, this sees that it differs, and wakes all. If it comes after, the
    /// newcomer's key is younger than the first wake-up, which so was not taken by it.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, events: usize) {
        if self.are_alike() {
            self.bell.wake(events);
            light();
            if self.are_alike() {
                return;
            }
        }
        self.bell.wake(usize::MAX);
    }

    /// Wakes one more waiter: the one that was woken sees more than one event, or may leave an event to others.
    pub(crate) fn pass_on(&self) {
        if self.bell.is_heard() && self.are_alike() {
            self.wake(1);
        }
    }

    /// Something has come to those who do not wait for the same as all others. Calls `fenced` as [`came`](Self::came).
    #[inline(always)]
    pub(crate) fn came_to_others(&self, fenced: impl FnOnce()) {
        let heard = self.bell.is_heard();
        fenced();
        if heard && !self.are_alike() {
            self.bell.wake(usize::MAX);
        }
    }

    /// Relaxed: whoever is the first to differ has said so before its heavy fence, so who comes by after that sees it.
    fn are_alike(&self) -> bool {
        self.alike.load(Ordering::Relaxed)
    }

    /// Not all who will listen wait for the same. To be called before anything comes.
    pub(crate) fn differ(&self) {
        self.alike.store(false, Ordering::Relaxed);
    }

    /// From here on not all who listen wait for the same. To be called before the first who differs listens.
    ///
    /// All look once: who has [passed nothing on](Self::pass_on) because of this is made up for. The fence is for whoever wakes one meanwhile: either
    /// its second look sees this, or all look after its event has come.
    pub(crate) fn begin_to_differ(&self) {
        self.differ();
        heavy();
        self.changed(|| ());
    }

    /// Something has changed that concerns all. Calls `fenced` as [`came`](Self::came).
    #[inline(always)]
    pub(crate) fn changed(&self, fenced: impl FnOnce()) {
        let heard = self.bell.is_heard();
        fenced();
        if heard {
            self.bell.wake(usize::MAX);
        }
    }

    /// Waits until `look` finds something; `None` when the deadline has passed and it still does not. Who sleeps calls `glance` instead, before
    /// and after: it need not find all, but soon. Calls `in_vain` when there is nothing after the first pauses, and, with `true`, before it sleeps or gives up.
    /// Nobody else waits here at any time if the caller is `alone`.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        alone: bool,
        in_vain: impl Fn(bool),
        look: impl Fn() -> Option<R>,
        glance: impl Fn() -> Option<R>,
    ) -> Option<R> {
        let pace = self.temper.start();
        let sleeps_at_once = pace.sleeps_at_once();
        let looked = pace.look(deadline, |pace| {
            let found = look();
            if found.is_none() && pace.yields_next() {
                in_vain(false);
            }
            found
        });
        match looked {
            Looked::Found(found) => {
                self.listen_no_more();
                Some(found)
            }
            Looked::TimedOut => {
                in_vain(true);
                None
            }
            Looked::InVain => {
                in_vain(true);
                let began = self.temper.times_sleep().then(Instant::now);
                let found = if alone && self.are_alike() && sleeps_at_once {
                    self.listen_on();
                    self.bell.wait_heard(deadline, glance)
                } else {
                    self.listen_no_more();
                    self.bell.wait(deadline, glance)
                };
                if let Some(began) = began {
                    self.temper.slept_since(began);
                }
                found
            }
        }
    }

    fn listen_on(&self) {
        if !self.listens_on.load(Ordering::Relaxed) {
            self.bell.listen_on();
            self.listens_on.store(true, Ordering::Relaxed);
        }
    }

    /// Several events have come together: the next one need not wake anybody.
    #[inline]
    pub(crate) fn listen_no_more(&self) {
        if self.listens_on.load(Ordering::Relaxed) {
            self.listens_on.store(false, Ordering::Relaxed);
            self.bell.listen_no_more();
        }
    }

    /// Looks where what has come ends, for a consumer that is through with all before `from` and may wait; first lets events gather,
    /// if they come in small portions.
    #[inline]
    pub(crate) fn look_again(&self, from: u64, capacity: u64, look: impl FnOnce() -> u64) -> u64 {
        self.temper.let_gather();
        let until = look();
        if until > from {
            self.gathered(until - from, capacity);
        }
        until
    }

    /// Tells how many positions of `capacity` had gathered when somebody looked.
    pub(crate) fn gathered(&self, positions: u64, capacity: u64) {
        if positions > 1 {
            self.listen_no_more();
        }
        self.temper.gathered(positions, capacity);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    /// Looks and sleeps. Where the machine is busy, the time may be over before the sleep begins; that changes
    /// nothing, and so it waits again.
    fn wait_in_vain(arrivals: &Arrivals, alone: bool) {
        let has_slept = Cell::new(false);
        while !has_slept.get() {
            let soon = Instant::now() + Duration::from_millis(20);
            let glance = || {
                has_slept.set(true);
                None
            };
            assert_eq!(arrivals.wait(Some(soon), alone, |_| (), || None::<()>, glance), None);
        }
    }

    /// A sleep that has not begun yet is short, however busy the machine is.
    fn in_an_hour() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn who_sleeps_for_each_event_goes_on_listening_until_two_have_gathered() {
        let arrivals = Arrivals::new(WaitStrategy::Block, None);
        for _ in 0..3 {
            wait_in_vain(&arrivals, true);
            assert!(arrivals.bell.has_listeners());
            arrivals.gathered(1, 8);
            assert!(arrivals.bell.has_listeners());
            arrivals.gathered(2, 8);
            assert!(!arrivals.bell.has_listeners());
            arrivals.gathered(2, 8);
        }
    }

    #[test]
    fn who_is_not_the_only_one_listens_only_while_it_sleeps() {
        let own = Arrivals::new(WaitStrategy::Block, None);
        let of_a_set = Arrivals::new(WaitStrategy::Block, Some(SharedBell::default()));
        for (arrivals, alone) in [(own, false), (of_a_set, true)] {
            wait_in_vain(&arrivals, alone);
            assert!(!arrivals.bell.has_listeners());
        }
    }

    #[test]
    fn who_looks_again_stops_listening_whether_it_finds_something_or_sleeps() {
        for finds in [false, true] {
            let arrivals = Arrivals::new(WaitStrategy::Adaptive, None);
            let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
            (0..6).for_each(|_| arrivals.temper.slept_since(long_ago));
            wait_in_vain(&arrivals, true);
            assert!(arrivals.bell.has_listeners());
            arrivals.temper.slept_since(in_an_hour());
            if finds {
                assert_eq!(arrivals.wait(None, true, |_| (), || Some(()), || None), Some(()));
            } else {
                wait_in_vain(&arrivals, true);
            }
            assert!(!arrivals.bell.has_listeners());
        }
    }
}
