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

#[cfg(not(loom))]
pub mod counter;
pub mod eventcount;
pub mod lock;
#[cfg(not(loom))]
pub mod percpu;
mod primitive;
pub mod reclaim;
