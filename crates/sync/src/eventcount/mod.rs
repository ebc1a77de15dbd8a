//! Event counts: waiters sleep until something changes, and a notification costs as much as a store.
//!
//! An event count is a number that only grows. A waiter takes a [`snapshot`](Count::snapshot), checks the state for
//! which the count stands, and if there is nothing to do, waits until the count differs from the snapshot. After
//! changing that state, the notifier increments the count. The two share no lock, and no wake-up can be lost: a change
//! that the waiter missed came before an increment that ends its wait at once. While no waiter sleeps, an increment
//! makes no system call.
//!
//! # Which one do I want?
//! | who increments | one process | memory shared between processes | increment without waiters |
//! | --- | --- | --- | --- |
//! | any thread | [`EventCount`], [`EventCount64`] | [`SharedEventCount`], [`SharedEventCount64`] | a locked addition |
//! | one thread at a time | [`SpEventCount`], [`SpEventCount64`] | [`SharedSpEventCount`], [`SharedSpEventCount64`] | on x86-64 about a store and a half, elsewhere as below |
//! | one thread at a time, in portable form | [`TwoWordEventCount`], [`TwoWordEventCount64`] | [`SharedTwoWordEventCount`], [`SharedTwoWordEventCount64`] | two loads, a store, a [light fence](millstream_fence::light) |
//!
//! Take 64 bits if the count is also a sequence (then [`value`](Count::value) is the published position, and publishing
//! is the increment), or if a waiter may be kept from running while the count wraps around; otherwise 32 bits suffice.
//! All are [`Count`]s with a [`Kind`] and a [`Place`], and generic code takes a `Count<K>`.
//!
//! An event count does not exclude other threads and does not hand over a value: it tells *that* something changed, not
//! what.
//!
//! # Both sides
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! use millstream_sync::eventcount::SpEventCount;
//!
//! let ready = AtomicBool::new(false);
//! let mut count = SpEventCount::new();
//! let (mut incrementer, count) = count.split(); // the exclusive right to increment
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         loop {
//!             let key = count.snapshot(); // first the snapshot,
//!             if ready.load(Relaxed) {    // then the check,
//!                 break;
//!             }
//!             count.wait(key);            // then the wait
//!         }
//!         // … which is also what this does:
//!         count.wait_for(|| ready.load(Relaxed).then_some(()));
//!     });
//!     ready.store(true, Relaxed); // first the change,
//!     incrementer.increment();    // then the increment
//! });
//! ```
//!
//! In memory that processes share, a count is placed where the memory is mapped, and zeroed memory is a new count:
//! `examples/shared_count.rs` shows it, and [`Shared`] documents the layout.
//!
//! # How it works
//! A flag beside the number says that a waiter sleeps or is about to. A waiter spins for a while, may nap (see
//! [`Patience`]), then sets the flag, and falls asleep in the kernel (futex) only if the number is still the same. A
//! task first adds its waker to a list. An increment that finds the flag wakes the waiters. It remains to show that an
//! increment cannot overlook the flag of a waiter that falls asleep; each kind has its own reason, given in its
//! documentation:
//!
//! - [`Many`]: flag and number are in one word that is changed by atomic read-modify-writes only.
//! - [`TwoWord`]: the incrementer's light fence and the waiter's [heavy fence](millstream_fence::heavy) pair.
//! - `Unlocked` (x86-64): the heavy fence interrupts the incrementer between two instructions, and one
//!   instruction is the whole increment.
//!
//! A waiter that gives up (deadline, dropped future, killed process) leaves at worst the flag, which costs one
//! increment a needless system call. Waiters of a kind with a single incrementer pay for the fence, some 10 µs, each
//! time they go to sleep.
//!
//! # Progress
//! Snapshots are wait-free, and so are increments without waiters; with waiters an increment is a system call, and a
//! short lock if tasks wait. Waiting blocks. A thread that is stopped anywhere in a wait hinders no other thread; a
//! thread that is stopped between its increment and the wake-up delays that wake-up.
//!
//! # Wakers
//! A waker is cloned, woken and dropped outside every lock, so it may use the count it waits for. A waker that panics
//! when an increment wakes it is contained: the panic hook reports it, all other waiters are woken, and the increment
//! returns as usual. A panic of a waker's clone or drop while its own task is polled or dropped belongs to that task.
//!
//! # How it is proven
//! Loom models check [`Many`] and [`TwoWord`] with threads and tasks (`tests/eventcount_loom.rs`), and an enumerated
//! x86-TSO machine checks `Unlocked` (`verify/tso`). Stress tests run with both kinds of fences, between threads and
//! between processes. `verify/README.md` lists the mutations that all of these catch.
//!
//! # Source of the idea
//! Paul Khuong's event counts for Concurrency Kit (`ck_ec`): the flag in the word, the addition without a lock prefix,
//! the two-word form.

pub use count::{Count, Key, Waited};
pub use incrementer::Incrementer;
pub use kind::{Kind, SoleKind};
pub use many::Many;
pub use patience::Patience;
pub use place::{Local, Place, Shared};
pub use two_word::TwoWord;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub use unlocked::Unlocked;
pub use wait_async::WaitAsync;
pub use word::Width;

mod contained;
mod count;
mod incrementer;
mod kind;
mod many;
mod patience;
mod place;
mod quiet;
mod sleep;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod timekeeper;
mod two_word;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod unlocked;
mod wait_async;
mod word;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod x86_64;

/// The best kind for one incrementer on this machine: `Unlocked` on x86-64, otherwise [`TwoWord`].
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub type Sole<W> = Unlocked<W>;
/// The best kind for one incrementer on this machine: `Unlocked` on x86-64, otherwise [`TwoWord`].
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
pub type Sole<W> = TwoWord<W>;

/// Many incrementers, 32 bits.
pub type EventCount = Count<Many<u32>>;
/// Many incrementers, 64 bits.
pub type EventCount64 = Count<Many<u64>>;
/// One incrementer, 32 bits.
pub type SpEventCount = Count<Sole<u32>>;
/// One incrementer, 64 bits.
pub type SpEventCount64 = Count<Sole<u64>>;
/// One incrementer in the portable form, 32 bits.
pub type TwoWordEventCount = Count<TwoWord<u32>>;
/// One incrementer in the portable form, 64 bits.
pub type TwoWordEventCount64 = Count<TwoWord<u64>>;
/// Many incrementers in several processes, 32 bits.
pub type SharedEventCount = Count<Many<u32>, Shared>;
/// Many incrementers in several processes, 64 bits.
pub type SharedEventCount64 = Count<Many<u64>, Shared>;
/// One incrementer, waiters in several processes, 32 bits.
pub type SharedSpEventCount = Count<Sole<u32>, Shared>;
/// One incrementer, waiters in several processes, 64 bits.
pub type SharedSpEventCount64 = Count<Sole<u64>, Shared>;
/// One incrementer in the portable form, waiters in several processes, 32 bits.
pub type SharedTwoWordEventCount = Count<TwoWord<u32>, Shared>;
/// One incrementer in the portable form, waiters in several processes, 64 bits.
pub type SharedTwoWordEventCount64 = Count<TwoWord<u64>, Shared>;
