//! A thread that sleeps, is woken, and sleeps again: on an event count or on a bare futex.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use millstream_sync::eventcount::parameters::Kind;
use millstream_sync::eventcount::{Count, SpinPolicy};

use super::clock;

/// An object on which a thread sleeps.
pub trait Bed: Default + Send + Sync {
    /// Sleeps until the count differs from `seen`.
    fn sleep(&self, seen: u64);
    /// Increments the count and wakes the sleeper. Only one thread calls this.
    fn wake(&self);
}

/// A [`Bed`] built on an event count.
pub struct Counted<K: Kind>(Count<K>);

impl<K: Kind> Default for Counted<K> {
    fn default() -> Self {
        Self(Count::new())
    }
}

impl<K: Kind> Bed for Counted<K> {
    fn sleep(&self, seen: u64) {
        let _ = self.0.wait_with(self.0.key_of(seen), None, SpinPolicy::NONE);
    }

    fn wake(&self) {
        // SAFETY: only one thread calls `wake`, so no two increments run at the same time.
        unsafe { self.0.add_waking_unchecked(1, usize::MAX) }
    }
}

/// A bare futex: each wake is a system call.
#[derive(Default)]
pub struct BareFutex(AtomicU32);

impl Bed for BareFutex {
    fn sleep(&self, seen: u64) {
        while self.0.load(Ordering::Acquire) == seen as u32 {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            let forever = ptr::null::<libc::timespec>();
            // SAFETY: the word outlives the call, because `self` is borrowed.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wait, seen as u32, forever) };
        }
    }

    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel uses the address of a wake only as a key, and does not read memory through it.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wake, i32::MAX) };
    }
}

/// The times of a series of wakes.
pub struct Wakes {
    /// Duration of each of the waker's calls.
    pub calls: Vec<u64>,
    /// Delay from the beginning of each call until the sleeper ran.
    pub latencies: Vec<u64>,
}

/// The pause before a wake, in which the sleeper falls asleep.
const BEDTIME: Duration = Duration::from_micros(60);

/// Wakes a sleeper `times` times.
#[must_use]
pub fn wakes<B: Bed>(times: u64) -> Wakes {
    let (bed, ran) = (B::default(), AtomicU64::new(0));
    let about_to_sleep = AtomicU64::new(0);
    let mut wakes = Wakes { calls: Vec::new(), latencies: Vec::new() };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..times {
                about_to_sleep.store(round + 1, Ordering::Release);
                bed.sleep(round);
                ran.store(clock::now(), Ordering::Relaxed);
            }
            about_to_sleep.store(times + 1, Ordering::Release);
        });
        let until = |round| {
            while about_to_sleep.load(Ordering::Acquire) < round {
                thread::yield_now();
            }
        };
        for round in 0..times {
            until(round + 1);
            thread::sleep(BEDTIME);
            let before = clock::now();
            bed.wake();
            wakes.calls.push(clock::now() - before);
            until(round + 2);
            wakes.latencies.push(ran.load(Ordering::Relaxed).saturating_sub(before));
        }
    });
    wakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_sync::eventcount::parameters::{InPlace, Many};

    #[test]
    fn every_wake_wakes_the_sleeper_once() {
        for wakes in [wakes::<BareFutex>(50), wakes::<Counted<Many<u32>>>(50), wakes::<Counted<InPlace<u64>>>(50)] {
            assert_eq!((wakes.calls.len(), wakes.latencies.len()), (50, 50));
            assert!(wakes.latencies.iter().all(|&latency| latency > 0), "a sleeper ran before it was woken");
        }
    }
}
