//! Locks: who comes in waits until the other one has left.
//!
//! | I want | take |
//! | --- | --- |
//! | a lock, and nothing else about it to know | [`std::sync::Mutex`]: it is known to everybody, poisons, and is fast enough |
//! | the cheapest way in and out that I can get, for very short sections that are taken millions of times a second | [`Mutex`], on [`Adaptive`] |
//! | the same in memory that I must not sleep on, with never more threads than cores | [`TtasBackoff`] |
//! | first come, first served, with never more threads than cores | [`Ticket`] |
//! | to see what the textbooks say | [`Tas`], [`Ttas`] |
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
//! Nearly always. It costs two locked instructions where [`Adaptive`] costs one, some 4 cycles; whoever holds it for a microsecond will
//! not notice. It poisons itself when its holder panics, which these do not. And it makes no system call that interrupts other cores: a
//! thread that goes to sleep on an `Adaptive` does, so this is not for locks that are mostly contended and held for long. A lock
//! that only spins is wrong wherever a thread may be preempted while it holds it, which is everywhere but in a real-time set-up: with more
//! threads than cores the others burn their time slices until it runs again. All that spin here yield every now and then, which mends the
//! worst of it, and no more.
//!
//! # Why they exclude, and on weak machines, too
//! An acquisition is a read-modify-write of one word: of all that find it free only one makes it taken, since those are totally
//! ordered for each word. That holds for Test-and-Test-and-Set as well: the test without set is advice, and who was misled by it fails in the set.
//!
//! That the section stays *inside* is another matter. A machine that reorders (ARM, POWER) could carry out the section's loads before the
//! word is taken, when another thread is still inside, or its last stores after the word is free. So taking is an *acquire*: nothing that
//! comes after it in the program is carried out before. Freeing is a *release*: everything before it is visible when it is. The pair
//! meets in the word: who takes it reads what the last holder's release stored, and so sees all that he did. x86-64 orders loads with loads and stores
//! with stores by itself; there the orderings only keep the compiler in check, and a plain store frees a lock. Code that forgot them runs on x86-64
//! and fails elsewhere, which is why the models in `tests/lock_loom.rs` explore both.
//!
//! One old processor breaks its promise: early Opterons may let a load behind a locked instruction read too old a value (erratum 147). All locks
//! here put a load fence there if they find themselves on one.
//!
//! # Source of the idea
//! Nathan Taylor's talk on locks in a shared allocator, for the spinning ones; Thomas Anderson, *The performance of spin lock alternatives*
//! (1990), for the back-off; John Mellor-Crummey and Michael Scott (1991) for the ticket lock; Joe Damato for the erratum; the sleeping
//! one is an event count and an asymmetric fence put together.

mod adaptive;
mod erratum;
mod spin;
mod tas;
mod ticket;
mod ttas;
mod ttas_backoff;

pub use adaptive::Adaptive;
pub use lock_api;
pub use tas::Tas;
pub use ticket::Ticket;
pub use ttas::Ttas;
pub use ttas_backoff::TtasBackoff;

/// A mutex that holds a `T`, on [`Adaptive`].
#[cfg(not(loom))]
pub type Mutex<T> = lock_api::Mutex<Adaptive, T>;

/// What [`Mutex`]'s lock returns.
#[cfg(not(loom))]
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Adaptive, T>;

/// Makes a type with `new`, `acquire`, `try_acquire`, `release` and `is_taken` a raw mutex.
macro_rules! raw_mutex {
    ($lock:ty) => {
        // SAFETY: what is acquired is nobody else's until it is released: the models in `tests/lock_loom.rs`.
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
                // SAFETY: the caller's promise.
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

/// A lock's `new`: `const`, but in models, whose atomics can't be made at compile time.
macro_rules! const_new {
    ($new:expr) => {
        /// Free.
        #[cfg(not(loom))]
        #[must_use]
        pub const fn new() -> Self {
            $new
        }

        /// Free.
        #[cfg(loom)]
        #[must_use]
        pub fn new() -> Self {
            $new
        }
    };
}
use const_new;
