//! A lock that is a store to leave, and whose waiters sleep.

#[cfg(not(loom))]
use super::spin::Backoff;
use super::{const_new, erratum, raw_mutex};
use crate::eventcount::{EventCount, Patience};
use crate::primitive::{AtomicBool, AtomicU32, Ordering, heavy, light};

/// Spins for some two hundred microseconds, with yields, then sleeps on an event count.
///
/// Taking is one locked instruction if it is free. Freeing is a store, a [light fence](millstream_fence::light) and a load: no locked
/// instruction, where other mutexes have a second one. Who goes to sleep pays for it with a heavy fence, which interrupts
/// the process's other running threads for a microsecond. Blocking; unfair: whoever comes when it is free may take it, also before threads that
/// sleep, and of those that sleep one at a time is awake and tries again.
///
/// # Why no wake-up is lost
/// A thread that is about to sleep is counted among the sleepers, says that nobody was called, passes a heavy fence, and then looks at the
/// lock. A thread that leaves frees the lock, passes a light fence, and then looks at the sleepers. Of such a pair of fences
/// one comes first. If it is the light one, the look at the lock finds it free, or taken by a third one that will leave later. If it is the heavy
/// one, the leaving thread finds a sleeper that was not called, and calls: it increments the event count. The sleeper took its
/// snapshot of that before it said that nobody was called, so its wait ends.
///
/// If the leaving thread finds that somebody was called already, it calls nobody. Whoever said so has incremented the event count or is about to, so
/// someone wakes up; until he looks at the lock, or has it and says when leaving that nobody is called, he has not passed his heavy fence,
/// which comes after our light one: he will find the lock free, or taken by one that leaves later.
#[derive(Debug)]
pub struct Adaptive {
    taken: AtomicBool,
    /// How many sleep or are about to, times [`SLEEPER`]; and [`CALLED`] if one of them was called and has not looked yet.
    sleepers: AtomicU32,
    calls: EventCount,
}

const CALLED: u32 = 1;
const SLEEPER: u32 = 2;

impl Adaptive {
    const_new!(Adaptive { taken: AtomicBool::new(false), sleepers: AtomicU32::new(0), calls: EventCount::new() });

    /// Waits until it is taken. Acquire: what the last holder did is visible.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            self.wait();
        }
    }

    /// Takes it if it is free. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Acquire pairs with the release in `release`. A swap would do, but it would write when it fails.
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        erratum::after_acquisition();
        taken
    }

    /// Frees it, and calls one of those that sleep, if none was called.
    ///
    /// # Safety
    /// The caller has taken it.
    #[inline]
    pub unsafe fn release(&self) {
        self.taken.store(false, Ordering::Release);
        light();
        let sleepers = self.sleepers.load(Ordering::Relaxed);
        if sleepers != 0 && sleepers & CALLED == 0 {
            self.call();
        }
    }

    /// Whether somebody has it now.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn call(&self) {
        if self.sleepers.fetch_or(CALLED, Ordering::Relaxed) & CALLED == 0 {
            self.calls.increment_waking_one();
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
            heavy();
            if self.try_acquire() {
                break;
            }
            // Without a deadline only a change ends it.
            let _ = self.calls.wait_patiently(key, None, &Patience::NONE);
            // As long as we are called and look, nobody else is.
            if self.spin() {
                break;
            }
        }
        // We have the lock, and if others sleep we call one of them when we leave.
        self.sleepers.fetch_and(!CALLED, Ordering::Relaxed);
        self.sleepers.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// Whether it was taken before patience ran out.
    #[cfg(not(loom))]
    fn spin(&self) -> bool {
        let mut backoff = Backoff::new();
        while !backoff.is_out_of_patience() {
            backoff.pause();
            if !self.is_taken() && self.try_acquire() {
                return true;
            }
        }
        false
    }

    /// In a model no time passes by looking again: one look.
    #[cfg(loom)]
    fn spin(&self) -> bool {
        self.try_acquire()
    }
}

raw_mutex!(Adaptive);
