//! Mutual-exclusion locks.
//!
//! | I want | use |
//! | --- | --- |
//! | just a lock | [`std::sync::Mutex`]: every reader knows it, it poisons, and it is fast enough |
//! | the cheapest lock and unlock there is, for very short sections that are entered millions of times a second | [`Mutex`], on [`Adaptive`] |
//! | a cheap lock whose waiters never sleep, with never more threads than cores | [`TtasBackoff`] |
//! | first come, first served, with never more threads than cores | [`Ticket`] |
//! | to see the textbook locks at work | [`Tas`], [`Ttas`] |
//!
//! All are [`lock_api::RawMutex`]es; `lock_api::Mutex<Ticket, T>` is a mutex with data inside.
//!
//! ```
//! use millstream_sync::lock::{Mutex, Ticket, lock_api};
//!
//! let balance = Mutex::new(100);
//! *balance.lock() -= 30;
//! assert_eq!(*balance.lock(), 70);
//!
//! let served = lock_api::Mutex::<Ticket, u32>::new(0);
//! *served.lock() += 1;
//! ```
//!
//! # When the standard mutex is the right choice
//! Nearly always. It costs two locked instructions where [`Adaptive`] costs one, a difference of some 4 cycles, which
//! does not matter to a thread that holds the lock for a microsecond. It is poisoned when its holder panics, while
//! these locks are not. And it makes no system call that interrupts other cores. A thread that goes to sleep on an
//! `Adaptive` makes such a call, so an `Adaptive` does not suit a lock that is mostly contended and held for a long
//! time. A lock that only spins is wrong wherever a thread may be preempted while it holds the lock, that is,
//! everywhere except in a real-time set-up. With more threads than cores, the waiters burn their time slices until the
//! holder runs again. All spin locks here yield every now and then, which only mitigates the worst case.
//!
//! # Why one thread at a time holds a lock, even on weakly ordered machines
//! An acquisition is a read-modify-write of one word: of all threads that find the word free, only one takes it,
//! because the modifications of one word are totally ordered. This is true of test-and-test-and-set as well: the test
//! is advice, and a thread that it misleads fails to set the word.
//!
//! Why the section's accesses stay *inside* is a separate question. A weakly ordered machine (ARM, POWER) could perform
//! the section's loads before it takes the word, while another thread is still inside, or perform its last stores after
//! it frees the word. So acquiring is an *acquire*: nothing that follows it in the program is performed before it.
//! Releasing is a *release*: a thread that sees the release sees everything before it. The two pair through the word:
//! the acquiring thread reads the value that the previous holder's release stored, and so sees everything the previous
//! holder wrote. On x86-64, loads are always ordered with loads, and stores with stores. There the orderings only
//! restrain the compiler, and a plain store releases a lock. Code that omits the orderings runs on x86-64 and fails
//! elsewhere, which is why the models in `models.rs` explore weak orderings, too.
//!
//! One old processor violates this guarantee: early Opterons may let a load after a locked instruction read a stale
//! value (erratum 147). On such a processor, all locks here execute a load fence after the instruction.
//!
//! # Source of the idea
//! Nathan Taylor's talk on locks in a shared allocator, for the spin locks; Thomas Anderson, *The performance of spin
//! lock alternatives* (1990), for the back-off; John Mellor-Crummey and Michael Scott (1991) for the ticket lock; Joe
//! Damato for the erratum. The sleeping lock combines an event count with an asymmetric fence.

mod adaptive;
mod erratum;
#[cfg(all(test, loom))]
mod models;
mod spin;
mod tas;
mod ticket;

pub use adaptive::Adaptive;
pub use lock_api;
pub use tas::{Tas, Ttas, TtasBackoff};
pub use ticket::Ticket;

/// A mutex around a `T`, on [`Adaptive`].
#[cfg(not(loom))]
pub type Mutex<T> = lock_api::Mutex<Adaptive, T>;

/// The guard that [`Mutex`]'s `lock` returns.
#[cfg(not(loom))]
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Adaptive, T>;

/// The operations of a lock, behind `lock_api::RawMutex` and in models.
trait Lock: Default + Send + Sync + 'static {
    /// Waits until the lock is acquired. Acquire: everything the previous holder wrote is visible.
    fn acquire(&self);

    /// Takes the lock if it is free, with the same ordering. Wait-free.
    fn try_acquire(&self) -> bool;

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn release(&self);

    /// Whether a thread holds the lock now.
    fn is_taken(&self) -> bool;
}

/// Makes a raw mutex of a [`Lock`] with a function `new`.
macro_rules! raw_mutex {
    ($lock:ty) => {
        // SAFETY: between `acquire` and `release` no other thread acquires the lock, as the models in `models.rs` show.
        #[cfg(not(loom))]
        unsafe impl lock_api::RawMutex for $lock {
            const INIT: Self = Self::new();
            type GuardMarker = lock_api::GuardSend;

            #[inline]
            fn lock(&self) {
                self.acquire();
            }

            #[inline]
            fn try_lock(&self) -> bool {
                self.try_acquire()
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: `RawMutex::unlock` obliges the caller to hold the lock, as `release` requires.
                unsafe { self.release() };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.is_taken()
            }
        }

        impl Default for $lock {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
use raw_mutex;
