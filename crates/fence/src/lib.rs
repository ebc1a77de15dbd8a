//! Asymmetric fences: one side pays for both.
//!
//! If two threads each write one word and then read the other's word, both need a full fence between the write and the read.
//! Otherwise both may read the old value. Often one side, the *hot* side, runs a million times more often than the other, the
//! *cold* side. The hot side then calls [`light`], which only keeps the compiler from reordering accesses. The cold side calls
//! [`heavy`], a system call that makes every other running thread of the process pass a full fence.
//!
//! | I want | call |
//! | --- | --- |
//! | the hot side's fence | [`light`] |
//! | the cold side's fence | [`heavy`] |
//! | the cold side's fence without waiting for it | [`Fence::ticket`] |
//! | to choose between a short wait and undisturbed cores | [`Fence`] |
//! | to read the page of the machine's barrier daemon | [`barrierd`] |
//! | fences between processes that share memory | [`shared::register`] and [`shared::light`] on the hot side, [`shared::heavy`] on the cold side |
//! | to know whether `light` is free here | [`is_asymmetric`], and [`Fence::describe`] for the reason |
//! | to know what this machine and its kernel offer | [`probe`], or the command `millstream doctor` |
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//!
//! static BUSY: AtomicBool = AtomicBool::new(false);
//! static CLOSED: AtomicBool = AtomicBool::new(false);
//!
//! /// The hot side: may this thread enter?
//! fn enter() -> bool {
//!     BUSY.store(true, Relaxed);
//!     millstream_fence::light();
//!     !CLOSED.load(Relaxed)
//! }
//!
//! /// The cold side: is the section empty, and will it stay so?
//! fn close() -> bool {
//!     CLOSED.store(true, Relaxed);
//!     millstream_fence::heavy();
//!     !BUSY.load(Relaxed)
//! }
//!
//! // Both cannot succeed: one of the two sees the other.
//! let (entered, closed) = std::thread::scope(|scope| {
//!     let hot = scope.spawn(enter);
//!     (close(), hot.join().unwrap())
//! });
//! assert!(!(entered && closed));
//! ```
//!
//! # The promise of a heavy fence
//! A [`heavy`] fence and a `light` fence of another thread are always ordered: one of them comes first. Everything written before
//! the first fence is visible after the second. This is the same promise that two `fence(SeqCst)` make, but it is made only for
//! pairs of a light and a heavy fence. Two light fences promise nothing.
//!
//! On x86-64 the membarrier back-end promises more, because it *interrupts* the other threads, and an interrupt never divides an
//! instruction. Each instruction of the hot side therefore comes completely before or completely after the heavy fence, even if
//! it reads and writes memory without a lock prefix. If it comes before, its store is visible after the fence; if it comes after,
//! it sees everything written before the fence. `InPlaceEventCount` of `millstream-sync` depends on this.
//!
//! # Back-ends
//! For each priority, the process once chooses the first back-end that works on this machine:
//!
//! | name | `light` | `heavy` | works where | priority |
//! | --- | --- | --- | --- | --- |
//! | `barrierd` | compiler fence | waits until a daemon's page shows that every core has passed a barrier | the daemon [`barrierd`] runs | [`CHEAP`](Fence::CHEAP); second choice for quiet |
//! | `global` | compiler fence | `membarrier(GLOBAL)`: waits until every core was interrupted, has switched threads, or was idle | Linux ≥ 4.3 without `nohz_full` | [`QUIET`](Fence::QUIET) |
//! | `membarrier` | compiler fence | `membarrier(PRIVATE_EXPEDITED)`: an interrupt to each core that runs this process | Linux ≥ 4.14, unless a sandbox forbids the call | [`FAST`](Fence::FAST); fallback for the others |
//! | `mprotect` | compiler fence | `mprotect` of a page: the same interrupts, as a side effect that is not documented | x86-64, but neither with `INVLPGB` nor under Hyper-V | fast; fallback for the others |
//! | `symmetric` | `fence(SeqCst)` | `fence(SeqCst)` | everywhere | all |
//!
//! The environment variable `MILLSTREAM_FENCE`, read once, selects the named back-end for all priorities, if it works
//! here.
//!
//! # Without the standard library
//! Without the feature `std` the crate is `no_std` and knows no operating system: both sides are full fences, unless
//! the program sets a heavy fence of its own, such as an interrupt to all processors. The crate then consists of [`light`],
//! [`heavy`], [`is_asymmetric`], [`Fence::FAST`] with its tickets, and [`set_heavy_fence`]. All of these also exist with `std`.
//!
//! # Source of the idea
//! The ideas are those of Linux's membarrier(2) by Mathieu Desnoyers, and of Paul Khuong's use of this call to move the cost of
//! hazard pointers and epochs to the reclaiming side.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
mod backend;
#[cfg(not(feature = "std"))]
mod bare;
#[cfg(feature = "std")]
pub mod barrierd;
#[cfg(feature = "std")]
mod choice;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod cpuid;
#[cfg(feature = "std")]
mod fence;
#[cfg(feature = "std")]
mod global;
#[cfg(feature = "std")]
mod grace;
#[cfg(feature = "std")]
mod membarrier;
#[cfg(feature = "std")]
mod mprotect;
#[cfg(feature = "std")]
pub mod probe;
#[cfg(feature = "std")]
mod server;
#[cfg(feature = "std")]
pub mod shared;
#[cfg(feature = "std")]
mod stand_in;
#[cfg(feature = "std")]
mod symmetric;
#[cfg(feature = "std")]
mod ticket;

#[cfg(not(feature = "std"))]
pub use bare::{Fence, Ticket, heavy, is_asymmetric, light, set_heavy_fence};
#[cfg(feature = "std")]
pub use choice::light;
#[cfg(feature = "std")]
pub use fence::{Fence, Refused, heavy, is_asymmetric, set_heavy_fence};
#[cfg(feature = "std")]
pub use ticket::Ticket;
