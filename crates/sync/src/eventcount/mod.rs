//! Event counts: waiters sleep until something changes, and a notification costs as much as a store.
//!
//! An event count is a number that only grows. A waiter takes a [`snapshot`](Count::snapshot), checks the state whose
//! changes the count announces, and, if there is nothing to do, waits until the count differs from the snapshot. After
//! changing that state, the notifier increments the count. The two share no lock, and no wake-up can be lost: a change
//! that the waiter missed is followed by an increment, which ends the wait at once. While no waiter sleeps, an
//! increment makes no system call.
//!
//! # Which one do I want?
//! | incrementers | waiters in one process | waiters in several processes | increment without waiters |
//! | --- | --- | --- | --- |
//! | any thread | [`EventCount`], [`EventCount64`] | [`SharedEventCount`], [`SharedEventCount64`] | a locked addition |
//! | one thread at a time | [`SpEventCount`], [`SpEventCount64`] | [`SharedSpEventCount`], [`SharedSpEventCount64`] | a store, two loads, a [light fence](millstream_fence::light) |
//! | one thread at a time, x86-64 | `InPlaceEventCount`, `InPlaceEventCount64` | | an addition to memory: one to four cycles, by processor |
//!
//! Use 64 bits if the count is also a sequence: then [`value`](Count::value) is the published position, and an
//! increment publishes. Also use 64 bits if a waiter may be kept from running while the count wraps around. With 32
//! bits, a waiter that does not run during exactly 2³¹ or 2³² increments (a few seconds of nothing but increments)
//! finds the count unchanged and waits for one more increment.
//!
//! An event count is not a lock, and it does not carry a value: it tells *that* something changed, not what.
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
//! # Memory shared between processes
//! A shared count contains no pointers, so each process may map it at any address. Zeroed memory is a new count
//! (`examples/shared_count.rs`). Threads of all processes can wait for the count; tasks cannot. The layout begins with
//! the count's word. In a count with one incrementer, the next field is a `u32` that is 1 while there may be waiters.
//! The last field is a `u32` that is 1 if the single incrementer's process registered for heavy fences, else 0.
//!
//! Any process may be killed at any moment. At worst, a killed waiter leaves the flag set, which costs the next
//! increment one system call. A killed incrementer may leave sleepers that it has not woken, so a thread that waits for
//! a shared count checks it once a second.
//!
//! # How it works
//! A flag next to the number says that a waiter is asleep or about to fall asleep. A waiter spins for a while, may nap
//! (see [`SpinPolicy`]), then sets the flag, and falls asleep in the kernel (futex) only if the number is still the
//! same. A task first adds its waker to a list. An increment that finds the flag wakes the waiters. An increment must
//! not overlook the flag of a waiter that is falling asleep. Each kind of count ensures this in its own way, explained
//! next to its code:
//!
//! - `many.rs`: flag and number are in one word that is changed by atomic read-modify-writes only.
//! - `unlocked.rs` (one incrementer, in place, x86-64): the waiter's [heavy fence](millstream_fence::heavy) interrupts
//!   the incrementer between two instructions, and the whole increment is one instruction.
//! - `two_word.rs` (one incrementer): the incrementer's light fence pairs with the waiter's heavy fence.
//!
//! At worst, a waiter that gives up (deadline, dropped future, killed process) leaves the flag set. Waiters for a count
//! with a single incrementer pay for the fence, some 10 µs, each time they go to sleep.
//!
//! # Progress
//! Snapshots are wait-free, and so are increments without waiters; with waiters an increment makes a system call, and
//! briefly takes a lock if tasks are waiting. Waiting blocks. A thread that is stopped anywhere in a wait does not hold
//! up any other thread; a thread that is stopped between its increment and the wake-up delays that wake-up.
//!
//! # Wakers
//! A waker is cloned, woken and dropped outside every lock, so it may use the count it waits for. A waker that panics
//! when an increment wakes it is contained: the panic hook reports it, all other waiters are woken, and the increment
//! returns as usual. If a waker's clone or drop panics while its own task is polled or dropped, the panic propagates
//! there.
//!
//! # How it is proven
//! Loom models check the counts of many incrementers and the two-word form for one, with threads and tasks
//! (`tests/eventcount_loom.rs`), and an enumeration of all executions of an x86-TSO machine checks the form in place
//! (`verify/tso`). Stress tests run with both kinds of fences, between threads and between processes.
//! `verify/README.md` lists mutations, each with the test that catches it.
//!
//! # Source of the idea
//! Paul Khuong's event counts for Concurrency Kit (`ck_ec`): the flag in the word, the addition without a lock prefix,
//! the two-word form.

pub use count::{Count, Key, Waited};
pub use incrementer::Incrementer;
pub use spin_policy::SpinPolicy;
pub use wait_async::WaitAsync;

mod count;
mod incrementer;
mod kind;
mod many;
mod quiet;
mod scope;
mod sleep;
mod spin_policy;
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

/// The parameters of [`Count`], for the tests and benchmarks of this workspace, which run every kind of count on every
/// machine. The aliases below name every combination that is useful to a program.
#[doc(hidden)]
pub mod parameters {
    pub use super::kind::{Kind, SoleKind};
    pub use super::many::Many;
    pub use super::scope::Shared;
    pub use super::two_word::TwoWord;

    /// The kind with one incrementer and one word. Other machines use two words instead.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    pub type InPlace<W> = super::unlocked::Unlocked<W>;
    /// The kind with one incrementer and one word. Other machines use two words instead.
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    pub type InPlace<W> = TwoWord<W>;
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
use parameters::InPlace;
use parameters::{Many, Shared, TwoWord};

/// Many incrementers, 32 bits, waiters in one process.
pub type EventCount = Count<Many<u32>>;
/// Many incrementers, 64 bits, waiters in one process.
pub type EventCount64 = Count<Many<u64>>;
/// One incrementer, 32 bits, waiters in one process.
pub type SpEventCount = Count<TwoWord<u32>>;
/// One incrementer, 64 bits, waiters in one process.
pub type SpEventCount64 = Count<TwoWord<u64>>;
/// Many incrementers, 32 bits, waiters in several processes.
pub type SharedEventCount = Count<Many<u32>, Shared>;
/// Many incrementers, 64 bits, waiters in several processes.
pub type SharedEventCount64 = Count<Many<u64>, Shared>;
/// One incrementer, 32 bits, waiters in several processes.
pub type SharedSpEventCount = Count<TwoWord<u32>, Shared>;
/// One incrementer, 64 bits, waiters in several processes.
pub type SharedSpEventCount64 = Count<TwoWord<u64>, Shared>;
/// One incrementer, 32 bits of which one is the flag, waiters in one process; x86-64 only. An increment is one addition
/// to memory, which on some processors waits for the store of the previous increment.
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub type InPlaceEventCount = Count<InPlace<u32>>;
/// One incrementer, 64 bits of which one is the flag, waiters in one process; x86-64 only. See [`InPlaceEventCount`].
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub type InPlaceEventCount64 = Count<InPlace<u64>>;
