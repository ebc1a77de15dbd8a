//! Waiting for events.
//!
//! **A consumer that sleeps for each event stays registered.** Registering takes a heavy fence, which is a system call
//! and interrupts the current sender. It also slows the next wake-up, which then takes 1.3 times as long as that of a
//! bare futex, instead of 1.0 to 1.1 times. So a consumer that has stopped polling, and is the only waiter of its ring,
//! stays registered when it wakes up. A sender may then notify a consumer that is awake, which costs 3 ns. The
//! registration ends as soon as two events have accumulated, or polling helps.

// This is the standard type in a model, too: only one thread reads and writes it.
use std::sync::atomic::{AtomicBool as OwnBool, Ordering};
use std::time::Instant;

use super::notifier::SharedNotifier;
use super::spin::{AdaptiveSpin, PollOutcome};
use super::{WaitStrategy, cost};
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicBool, AtomicU32, fence};
use crate::primitive::{heavy, light};

/// The waiting of a ring's consumers for events.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) notifier: SharedNotifier,
    /// Whether all registered waiters wait for the same events. If so, one waiter is woken per event; if not, all of
    /// them are woken and check. The waiters of a [`WaitSet`](super::WaitSet) wait for different rings, and those of
    /// most graphs for different consumers.
    interchangeable: AtomicBool,
    /// Whether the only waiter stays registered although it may be awake. Only that waiter writes it; with several
    /// waiters it stays false.
    stays_registered: OwnBool,
    /// The number of interchangeable waiters that poll.
    pollers: CachePadded<AtomicU32>,
    spin: AdaptiveSpin,
}

impl Arrivals {
    /// Waiters with a notifier of their own, or with a set's notifier.
    pub(crate) fn new(strategy: WaitStrategy, capacity: u64, set: Option<SharedNotifier>) -> Self {
        let interchangeable = set.is_none();
        Arrivals {
            notifier: set.unwrap_or_default(),
            interchangeable: AtomicBool::new(interchangeable),
            stays_registered: OwnBool::new(false),
            pollers: CachePadded(AtomicU32::new(0)),
            spin: AdaptiveSpin::new(strategy, capacity),
        }
    }

    /// Wakes waiters for the `events` that have arrived, as [`wake`](Self::wake) does. Calls `fenced` after the light
    /// fence, before any waiter is woken.
    #[inline(always)]
    pub(crate) fn notify(&self, events: usize, fenced: impl FnOnce()) {
        if self.has_waiters(fenced) {
            self.wake(events);
        }
    }

    /// Whether a waiter is registered for the events that have arrived; then the caller must call [`wake`](Self::wake).
    /// Calls `fenced` after the light fence.
    #[inline(always)]
    pub(crate) fn has_waiters(&self, fenced: impl FnOnce()) -> bool {
        let has_waiters = self.notifier.has_waiters();
        fenced();
        has_waiters
    }

    /// Wakes one waiter per event, or all waiters if they are not interchangeable. While an interchangeable waiter
    /// polls, none is woken: the poller finds an event, and [wakes others](Self::pass_on) for further events.
    ///
    /// While this call runs, the first *distinct* waiter may register: a waiter that waits for other events. The single
    /// wake-up could then go to the newcomer, although another waiter needs it. The second check covers this case. If
    /// the heavy fence of the newcomer's registration comes before the light fence here, this call sees that the
    /// waiters are distinct, and wakes all. If it comes later, the newcomer took its key after the first wake-up, which
    /// therefore went to another waiter.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, events: usize) {
        if self.are_interchangeable() {
            // Pairs with the fence in `stop_polling`: the poller that this load sees finds the event when it stops.
            fence(Ordering::SeqCst);
            if self.pollers.load(Ordering::Relaxed) == 0 {
                self.notifier.wake(events);
            }
            light();
            if self.are_interchangeable() {
                return;
            }
        }
        self.notifier.wake(usize::MAX);
    }

    /// Wakes one more waiter, because the caller sees more than one event, or may not take its event.
    pub(crate) fn pass_on(&self) {
        if self.notifier.has_waiters() && self.are_interchangeable() {
            self.wake(1);
        }
    }

    /// Wakes all waiters if they are not interchangeable, for an event that concerns only some of them. Calls `fenced`
    /// as [`notify`](Self::notify) does.
    #[inline(always)]
    pub(crate) fn notify_others(&self, fenced: impl FnOnce()) {
        let has_waiters = self.notifier.has_waiters();
        fenced();
        if has_waiters && !self.are_interchangeable() {
            self.notifier.wake(usize::MAX);
        }
    }

    /// Relaxed: the first distinct waiter clears the flag before its heavy fence, so a thread whose light fence comes
    /// after that heavy fence sees the flag cleared.
    fn are_interchangeable(&self) -> bool {
        self.interchangeable.load(Ordering::Relaxed)
    }

    /// Declares that the waiters are not interchangeable. Must precede the first event.
    pub(crate) fn set_distinct(&self) {
        self.interchangeable.store(false, Ordering::Relaxed);
    }

    /// Declares that from now on the waiters are not interchangeable. Must precede the registration of the first
    /// distinct waiter.
    ///
    /// All waiters check once, which makes up for any [`pass_on`](Self::pass_on) that did nothing because of the flag.
    /// The heavy fence pairs with the light fence of a thread that is waking a single waiter at the same time: either
    /// the second check of that thread sees the flag, or all waiters check after its event has arrived.
    pub(crate) fn become_distinct(&self) {
        self.set_distinct();
        heavy();
        self.notify_all(|| ());
    }

    /// Wakes all waiters, for a change that concerns all of them. Calls `fenced` as [`notify`](Self::notify) does.
    #[inline(always)]
    pub(crate) fn notify_all(&self, fenced: impl FnOnce()) {
        let has_waiters = self.notifier.has_waiters();
        fenced();
        if has_waiters {
            self.notifier.wake(usize::MAX);
        }
    }

    /// Waits until `check` finds something; `None` if `check` still finds nothing when the deadline has passed. Before
    /// and after each sleep, `quick_check` is called instead, which may find only some of the events, but must be
    /// quick. `starved` is called whenever nothing has been found for as long as a wake-up takes, and before a sleep or
    /// the end of the wait. `alone` promises that no other thread ever waits here. `claimed` returns the number of
    /// events that waiters of this kind have taken.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        alone: bool,
        claimed: impl Fn() -> u64,
        starved: impl Fn(),
        check: impl Fn() -> Option<R>,
        quick_check: impl Fn() -> Option<R>,
    ) -> Option<R> {
        let pace = self.spin.start();
        let sleeps_at_once = pace.sleeps_at_once();
        let is_interchangeable = !alone && !sleeps_at_once && self.are_interchangeable();
        let wake_up_ns = u64::from(cost::of_wake_up());
        let mut starved_ns = wake_up_ns;
        if is_interchangeable {
            // Relaxed: a waker that misses this poller wakes another waiter, which is harmless but wasteful.
            self.pollers.fetch_add(1, Ordering::Relaxed);
        }
        let leaves = |leaves: bool| {
            if is_interchangeable {
                if leaves {
                    self.stop_polling();
                } else {
                    self.pollers.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let outcome = pace.poll(deadline, leaves, |pace| {
            let found = check();
            if found.is_none() && pace.spent_ns() >= starved_ns {
                starved_ns = pace.spent_ns() + wake_up_ns;
                starved();
            }
            found
        });
        if is_interchangeable {
            self.stop_polling();
        }
        match outcome {
            PollOutcome::Found(found) => {
                self.unregister();
                // Wakers that saw this poller woke no other waiter, so it checks for their events, too.
                if is_interchangeable { check().or(Some(found)) } else { Some(found) }
            }
            PollOutcome::TimedOut => {
                starved();
                check()
            }
            PollOutcome::GaveUp => {
                starved();
                let began = cost::now_ns();
                if sleeps_at_once {
                    self.spin.sleeps_at_once(began, self.notifier.woken().get());
                }
                let before = claimed();
                // A waiter that no longer polls sleeps for each event. If no other thread waits on the same notifier,
                // the waiter stays registered, which saves a heavy fence per event.
                let found = if alone && self.are_interchangeable() && sleeps_at_once {
                    self.stay_registered();
                    self.notifier.wait_registered(deadline, quick_check)
                } else {
                    self.unregister();
                    self.notifier.wait(deadline, quick_check)
                };
                if !sleeps_at_once {
                    let now = cost::now_ns();
                    self.notifier.woken().learn(began, now);
                    self.spin.slept(now.saturating_sub(began), claimed().saturating_sub(before));
                }
                found
            }
        }
    }

    /// Ends the polling of an interchangeable waiter, which must check once more before it sleeps or leaves.
    fn stop_polling(&self) {
        self.pollers.fetch_sub(1, Ordering::Relaxed);
        // Pairs with the fence in `wake`: the waiter sees the event of each waker that has seen it poll.
        fence(Ordering::SeqCst);
    }

    fn stay_registered(&self) {
        if !self.stays_registered.load(Ordering::Relaxed) {
            self.notifier.stay_registered();
            self.stays_registered.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a registration that outlasted its sleep. Called when several events have come together or polling has
    /// helped, because then the next event need not wake a waiter.
    #[inline]
    pub(crate) fn unregister(&self) {
        if self.stays_registered.load(Ordering::Relaxed) {
            self.stays_registered.store(false, Ordering::Relaxed);
            self.notifier.unregister();
        }
    }

    /// Finds the end of the arrived events, for a consumer that has completed all positions before `from` and may wait.
    /// If events come in small portions, this first pauses, so that more of them accumulate.
    #[inline]
    pub(crate) fn check_again(&self, from: u64, capacity: u64, check: impl FnOnce() -> u64) -> u64 {
        self.spin.let_gather();
        let until = check();
        if until > from {
            self.gathered(until - from, capacity);
        }
        until
    }

    /// Records how many positions of `capacity` had accumulated when the consumer checked.
    pub(crate) fn gathered(&self, positions: u64, capacity: u64) {
        if positions > 1 {
            self.unregister();
        }
        self.spin.gathered(positions, capacity);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    /// Waits, and waits again until one of the waits has slept: on a busy machine the deadline may pass before the
    /// sleep begins. A wait that did not sleep has no effect.
    fn sleep_until_deadline(arrivals: &Arrivals, alone: bool) {
        let has_slept = Cell::new(false);
        while !has_slept.get() {
            let soon = Instant::now() + Duration::from_millis(20);
            let quick_check = || {
                has_slept.set(true);
                None
            };
            assert_eq!(arrivals.wait(Some(soon), alone, || 0, || (), || None::<()>, quick_check), None);
        }
    }

    #[test]
    fn a_consumer_stays_registered_until_two_events_have_gathered() {
        let arrivals = Arrivals::new(WaitStrategy::Block, 1024, None);
        for _ in 0..3 {
            sleep_until_deadline(&arrivals, true);
            assert!(arrivals.notifier.has_waiters_unfenced());
            arrivals.gathered(1, 8);
            assert!(arrivals.notifier.has_waiters_unfenced());
            arrivals.gathered(2, 8);
            assert!(!arrivals.notifier.has_waiters_unfenced());
            arrivals.gathered(2, 8);
        }
    }

    #[test]
    fn a_consumer_that_is_not_alone_is_registered_only_while_it_sleeps() {
        let own = Arrivals::new(WaitStrategy::Block, 1024, None);
        let of_a_set = Arrivals::new(WaitStrategy::Block, 1024, Some(SharedNotifier::default()));
        for (arrivals, alone) in [(own, false), (of_a_set, true)] {
            sleep_until_deadline(&arrivals, alone);
            assert!(!arrivals.notifier.has_waiters_unfenced());
        }
    }

    #[test]
    fn a_consumer_that_polls_again_unregisters() {
        for finds in [false, true] {
            let arrivals = Arrivals::new(WaitStrategy::Adaptive, 1024, None);
            (0..6).for_each(|_| arrivals.spin.slept(u64::MAX, 0));
            sleep_until_deadline(&arrivals, true);
            assert!(arrivals.notifier.has_waiters_unfenced());
            arrivals.spin.slept(0, 0);
            if finds {
                assert_eq!(arrivals.wait(None, true, || 0, || (), || Some(()), || None), Some(()));
            } else {
                sleep_until_deadline(&arrivals, true);
            }
            assert!(!arrivals.notifier.has_waiters_unfenced());
        }
    }
}
