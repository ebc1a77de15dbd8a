//! Test-and-set locks, which differ in how a thread waits.

use super::spin::{Backoff, Checks};
use super::{Lock, erratum, raw_mutex};
use crate::primitive::{AtomicBool, Ordering, const_fn};

/// A word that is set while a thread holds the lock.
#[derive(Debug)]
struct Flag(AtomicBool);

impl Flag {
    #[inline]
    fn try_set(&self) -> bool {
        // Acquire pairs with the release in `clear`.
        let was_clear = !self.0.swap(true, Ordering::Acquire);
        erratum::after_acquisition();
        was_clear
    }

    #[inline]
    fn clear(&self) {
        #[cfg(not(loom))]
        self.0.store(false, Ordering::Release);
        // A failed swap has read `true`, so it comes before this store in the word's modification order. Loom does not
        // know that, and could order it after a plain store.
        #[cfg(loom)]
        self.0.swap(false, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        // Relaxed: the result is a hint; only `try_set` acquires.
        self.0.load(Ordering::Relaxed)
    }
}

/// Defines a lock on a flag; `$wait` acquires the lock after a first try that failed.
macro_rules! test_and_set {
    ($(#[$attribute:meta])* $lock:ident, $wait:ident) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $lock(Flag);

        impl $lock {
            const_fn! {
                fn new() -> Self {
                    $lock(Flag(AtomicBool::new(false)))
                }
            }
        }

        impl Lock for $lock {
            #[inline]
            fn acquire(&self) {
                if !self.0.try_set() {
                    $wait(&self.0);
                }
            }

            #[inline]
            fn try_acquire(&self) -> bool {
                self.0.try_set()
            }

            #[inline]
            unsafe fn release(&self) {
                self.0.clear();
            }

            fn is_taken(&self) -> bool {
                self.0.is_set()
            }
        }

        raw_mutex!($lock);
    };
}

test_and_set! {
    /// The test-and-set lock: tries to take the lock, again and again.
    ///
    /// Every try writes, so while a thread waits, the cache line moves between the cores all the time, even away from
    /// the holder. Acquiring blocks, by spinning with yields, and costs one locked instruction if the lock is free;
    /// trying is wait-free; releasing is wait-free, one store. Acquiring is an acquire, releasing a release. Unfair.
    Tas, retry
}

test_and_set! {
    /// The test-and-test-and-set lock: tries to take the lock only when it looks free.
    ///
    /// Waiting threads only read, so all caches may share the line until the lock is released. Then all waiting threads
    /// try at once. Otherwise like [`Tas`].
    Ttas, test_and_retry
}

test_and_set! {
    /// Test-and-test-and-set with bounded exponential back-off: checks the lock less and less often while it is taken.
    ///
    /// Each check that finds the lock taken makes the next pause four times as long, up to some ten microseconds; from
    /// then on the waiter yields as well. So the holder works undisturbed, and the threads that have waited longest
    /// pause longest: very unfair. Otherwise like [`Ttas`].
    TtasBackoff, back_off_and_retry
}

fn retry(flag: &Flag) {
    let mut checks = Checks::new();
    loop {
        checks.pause();
        if flag.try_set() {
            return;
        }
    }
}

fn test_and_retry(flag: &Flag) {
    loop {
        let mut checks = Checks::new();
        while flag.is_set() {
            checks.pause();
        }
        // The test decides nothing: another thread may have been faster.
        if flag.try_set() {
            return;
        }
    }
}

#[cold]
fn back_off_and_retry(flag: &Flag) {
    let mut backoff = Backoff::new();
    while flag.is_set() || !flag.try_set() {
        backoff.pause();
    }
}
