//! Lock-free primitives worth using alone.
//!
//! | I want | module |
//! | --- | --- |
//! | threads or tasks that sleep until something changes, and a notification that costs as much as a store when nobody sleeps | [`eventcount`] |
//! | to free what other threads may still look at; a stack, a queue, a cell for settings | [`reclaim`] |
//! | statistics that threads don't fight over: counters, gauges, extremes, histograms | [`counter`] |
//! | data of which each processor has its own, changed without atomic instructions | [`percpu`] |
//! | a mutex that is left by a plain store; the textbook's spinning locks | [`lock`] |
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::{Acquire, Release}};
//! use millstream_sync::eventcount::EventCount;
//!
//! let (mail, arrivals) = (AtomicU64::new(0), EventCount::new());
//! let letter = std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         mail.store(42, Release);
//!         arrivals.increment(); // wakes who sleeps; with nobody asleep, one atomic addition
//!     });
//!     arrivals.wait_for(|| Some(mail.load(Acquire)).filter(|&letter| letter != 0))
//! });
//! assert_eq!(letter, 42);
//! ```
//!
//! Without the feature `std` the crate is `no_std` and has [`reclaim::hazard`] in domains of one's own; the heavy fence is the one
//! that the program gives to `millstream_fence`, or a full fence on both sides.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(all(feature = "std", not(loom)))]
pub mod counter;
#[cfg(feature = "std")]
pub mod eventcount;
#[cfg(feature = "std")]
pub mod lock;
#[cfg(all(feature = "std", not(loom)))]
pub mod percpu;
mod primitive;
pub mod reclaim;

/// The fences of a model, for models of what is built on this crate.
#[cfg(loom)]
#[doc(hidden)]
pub mod model {
    /// A light one.
    pub fn light() {
        crate::primitive::light();
    }

    /// A heavy one.
    pub fn heavy() {
        crate::primitive::heavy();
    }
}
