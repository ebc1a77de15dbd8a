//! Asymmetric fences: the cold side pays for both.
//!
//! Two threads that each write one word and then read the other's need a full fence between the write and the read, on
//! both sides; without it both may read the old value. Often one side runs a million times more often than the other.
//! Then the hot side calls [`light`], which only forbids the compiler to reorder, and the cold side calls [`heavy`], a
//! system call that makes every other running thread of the process pass a full fence.
//!
//! | I want | call |
//! | --- | --- |
//! | the hot side's fence | [`light`] |
//! | the cold side's fence | [`heavy`] |
//! | the cold side's fence without waiting for it | [`Fence::ticket`] |
//! | to choose between a short wait and undisturbed cores | [`Fence`] |
//! | to read the page of the machine's barrier daemon | [`barrierd`] |
//! | the same between processes that share memory | [`shared::register`] and [`shared::light`] on the hot side, [`shared::heavy`] on the cold side |
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
//! Of a [`heavy`] fence and any `light` fence of another thread, one comes first. If the light one does, everything
//! written before it is visible after the heavy one; if the heavy one does, everything written before it is visible
//! after the light one. That is the promise of two `fence(SeqCst)`, given to light and heavy fences in pairs; two light
//! fences promise each other nothing.
//!
//! On x86-64 the membarrier back-end promises more: the other threads are *interrupted*. An interrupt never cuts an
//! instruction in two, so each instruction of the hot side lies wholly before the heavy fence, with its store visible
//! after the fence, or wholly after it, seeing everything written before the fence, even when the instruction both
//! reads and writes without a lock prefix. The single-incrementer event count of `millstream-sync` rests on that.
//!
//! # Back-ends
//! For each priority the process takes, once, the first back-end that works here:
//!
//! | name | `light` | `heavy` | works where | priority |
//! | --- | --- | --- | --- | --- |
//! | `barrierd` | compiler fence | reads in the page of a daemon when every core has passed | the daemon [`barrierd`] runs | [`CHEAP`](Fence::CHEAP), second choice of quiet |
//! | `global` | compiler fence | `membarrier(GLOBAL)`: waits until every core was interrupted, switched or idle | Linux ≥ 4.3 without `nohz_full` | [`QUIET`](Fence::QUIET) |
//! | `membarrier` | compiler fence | `membarrier(PRIVATE_EXPEDITED)`: an interrupt to each core that runs this process | Linux ≥ 4.14, unless a sandbox forbids the call | [`FAST`](Fence::FAST), then the others |
//! | `mprotect` | compiler fence | `mprotect` of a page: the same interrupts, as a side effect that nothing promises | x86-64 without `INVLPGB` and Hyper-V | fast, then the others |
//! | `symmetric` | `fence(SeqCst)` | `fence(SeqCst)` | everywhere | all |
//!
//! The environment variable `MILLSTREAM_FENCE`, read once, selects the named back-end for all priorities, if it works
//! here.
//!
//! # Without the standard library
//! Without the feature `std` the crate is `no_std` and knows no operating system: both sides are full fences, unless
//! the program sets a heavy fence of its own, such as an interrupt to all processors. Then it has [`light`], [`heavy`],
//! [`is_asymmetric`], [`Fence::FAST`] with its tickets, and [`set_heavy_fence`], all of which exist with `std`, too.
//!
//! # Source of the idea
//! Linux's membarrier(2) by Mathieu Desnoyers, and Paul Khuong's use of it to move the cost of hazard pointers and
//! epochs to the reclaiming side.

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
