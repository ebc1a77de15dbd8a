//! A lock that a plain store releases, and whose waiters sleep.

#[cfg(not(loom))]
use super::spin::Backoff;
use super::{Lock, erratum, raw_mutex};
use crate::eventcount::{EventCount, SpinPolicy};
use crate::primitive::{AtomicBool, AtomicU32, Ordering, const_fn, heavy, light};

/// A lock whose waiters spin for some two hundred microseconds, with yields, and then sleep on an event count.
///
/// Acquiring a free lock is one locked instruction. Releasing is a store, a [light fence](millstream_fence::light) and
/// a load, whereas other mutexes need a second locked instruction. A waiter that goes to sleep pays for this with a
/// heavy fence, which interrupts the process's other running threads for a microsecond. Acquiring blocks and is an
/// acquire; trying is wait-free; releasing is a release, wait-free while no waiter sleeps. Unfair: any thread that
/// arrives while the lock is free may take it, ahead of sleeping waiters. Sleeping waiters are woken one at a time, to
/// try again.
///
/// # Why no wake-up is lost
/// A waiter that is about to sleep registers as a sleeper, clears the flag `CALLED`, executes a heavy fence, and then
/// checks the lock. A releasing thread frees the lock, executes a light fence, and then reads the sleepers. One of the
/// two fences comes first. If it is the light one, the waiter's check finds the lock free, or taken by a third thread
/// that will release it later. If it is the heavy one, the releasing thread finds a sleeper and `CALLED` clear. It then
/// *calls* a waiter: it sets `CALLED` and increments the event count. The waiter took its snapshot of the count before
/// it cleared the flag, so its wait ends.
///
/// If the releasing thread finds `CALLED` already set, it calls no waiter. The thread that set the flag has incremented
/// the event count or is about to, so a waiter wakes up. There are two cases. The waiter may acquire the lock while it
/// spins. Then it clears the flag before its own release, and that release calls a sleeper if there still is one.
/// Otherwise it clears the flag, executes its heavy fence, and checks the lock. The releasing thread found the flag
/// still set, so the waiter's heavy fence comes after the releasing thread's light fence. The check then finds the lock
/// free, or taken by a thread that releases it later.
#[derive(Debug)]
pub struct Adaptive {
    taken: AtomicBool,
    /// The number of waiters asleep or about to sleep, times [`SLEEPER`]; plus [`CALLED`] if one of them was called and
    /// has not rechecked the lock yet.
    sleepers: AtomicU32,
    calls: EventCount,
}

const CALLED: u32 = 1;
const SLEEPER: u32 = 2;

impl Adaptive {
    const_fn! {
        fn new() -> Self {
            Adaptive { taken: AtomicBool::new(false), sleepers: AtomicU32::new(0), calls: EventCount::new() }
        }
    }

    #[cold]
    #[inline(never)]
    fn call(&self) {
        if self.sleepers.fetch_or(CALLED, Ordering::Relaxed) & CALLED == 0 {
            self.calls.add_waking(1, 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        if self.spin() {
            return;
        }
        self.sleepers.fetch_add(SLEEPER, Ordering::Relaxed);
        loop {
            let key = self.calls.snapshot();
            self.sleepers.fetch_and(!CALLED, Ordering::Relaxed);
            // Pairs with the light fence in `release`.
            heavy();
            if self.try_acquire() {
                break;
            }
            // The wait has no deadline, so only a change of the count ends it.
            let _ = self.calls.wait_with(key, None, SpinPolicy::NONE);
            // As long as this waiter is marked as called and rechecks, no releasing thread calls another waiter.
            if self.spin() {
                break;
            }
        }
        // This thread holds the lock; if other waiters are asleep, the release calls one of them.
        self.sleepers.fetch_and(!CALLED, Ordering::Relaxed);
        self.sleepers.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// Spins until the lock is acquired or the back-off is spent; returns whether the lock was acquired.
    #[cfg(not(loom))]
    fn spin(&self) -> bool {
        let mut backoff = Backoff::new();
        while !backoff.is_spent() {
            backoff.pause();
            if !self.is_taken() && self.try_acquire() {
                return true;
            }
        }
        false
    }

    /// Tries once: no time passes in a model, so further tries gain nothing.
    #[cfg(loom)]
    fn spin(&self) -> bool {
        self.try_acquire()
    }
}

impl Lock for Adaptive {
    #[inline]
    fn acquire(&self) {
        if !self.try_acquire() {
            self.wait();
        }
    }

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire pairs with the release in `release`. A swap would do, but it would write even when it fails.
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        erratum::after_acquisition();
        taken
    }

    /// Frees the lock, and calls one sleeping waiter unless one was called already.
    #[inline]
    unsafe fn release(&self) {
        self.taken.store(false, Ordering::Release);
        // Pairs with the heavy fence in `wait`: this thread sees the sleeper, or the sleeper sees the free lock.
        light();
        let sleepers = self.sleepers.load(Ordering::Relaxed);
        if sleepers != 0 && sleepers & CALLED == 0 {
            self.call();
        }
    }

    fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}

raw_mutex!(Adaptive);
