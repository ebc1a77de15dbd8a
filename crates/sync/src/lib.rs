//! Lock-free primitives worth using on their own.
//!
//! | I want | module |
//! | --- | --- |
//! | threads or tasks that sleep until something changes, and a notification that costs as much as a store while no waiter sleeps | [`eventcount`] |
//! | to free objects that other threads may still use; a stack, a queue, a cell for settings | [`reclaim`] |
//! | statistics that threads do not contend for: counters, gauges, minima and maxima, histograms | [`counter`] |
//! | per-CPU data, changed without atomic instructions | [`percpu`] |
//! | a mutex that a plain store unlocks; the textbook spin locks | [`lock`] |
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::{Acquire, Release}};
//! use millstream_sync::eventcount::EventCount;
//!
//! let (mail, arrivals) = (AtomicU64::new(0), EventCount::new());
//! let letter = std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         mail.store(42, Release);
//!         arrivals.increment(); // wakes sleeping waiters; without any, one atomic addition
//!     });
//!     arrivals.wait_for(|| Some(mail.load(Acquire)).filter(|&letter| letter != 0))
//! });
//! assert_eq!(letter, 42);
//! ```
//!
//! Without the feature `std` the crate is `no_std` and consists of [`reclaim::hazard`] with the caller's own domains.
//! The heavy fence is then the one that the program sets in `millstream_fence`. If it sets none, both sides use full
//! fences.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(all(feature = "std", not(loom)))]
pub mod counter;
#[cfg(feature = "std")]
pub mod eventcount;
// Under loom, only the locks' own models need this module.
#[cfg(all(feature = "std", any(test, not(loom))))]
pub mod lock;
#[cfg(all(feature = "std", not(loom)))]
pub mod percpu;
mod primitive;
pub mod reclaim;

/// The model's fences, for models of code built on this crate.
#[cfg(loom)]
#[doc(hidden)]
pub mod model {
    pub use crate::primitive::asymmetric::{heavy, light};
}
