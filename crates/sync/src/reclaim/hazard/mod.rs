//! Hazard pointers: protect one object at a time, by a store and a second look.
//!
//! A reader says in a slot of its own which object it looks at; who retires an object frees it when no slot names it. A
//! reader that stops holds back what it protects and nothing else: garbage is bounded whatever happens. In exchange
//! every object that is looked at has to be protected by itself. For structures of many small objects that are only passed
//! through, [`epoch`](super::epoch)s cost less.
//!
//! | I want | use |
//! | --- | --- |
//! | to read an object of the process's own structures | [`hazard()`], then [`Hazard::protect`] |
//! | hazards and garbage apart from others' | a [`Domain`] |
//! | to free later | [`retire`], [`Local::retire`] |
//! | to see how much waits | [`stats`], [`Domain::stats`] |
//!
//! ```
//! use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};
//! use millstream_sync::reclaim::hazard::Domain;
//!
//! let domain = Domain::new();
//! let newest = AtomicPtr::new(Box::into_raw(Box::new(String::from("first"))));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let mut hazard = domain.hazard(); // long-lived
//!         for _ in 0..10 {
//!             // SAFETY: what is taken out of `newest` is retired to this domain.
//!             let text = unsafe { hazard.protect(&newest) }.unwrap(); // as long as `text` lives
//!             assert!(*text == "first" || *text == "second");
//!         }
//!     });
//!     let old = newest.swap(Box::into_raw(Box::new(String::from("second"))), AcqRel);
//!     // SAFETY: made by a box, not reachable any more, retired once.
//!     unsafe { domain.local().retire(old) };
//! });
//! // SAFETY: as above.
//! unsafe { domain.local().retire(newest.into_inner()) };
//! ```
//!
//! # How it works, and why it is safe
//! The argument, case by case, stands at the code that it is about (`slot.rs`). `verify/tso` enumerates it on the x86
//! machine, with a table of all interleavings, and `tests/reclaim_loom.rs` on a weak one.
//!
//! # Bounded garbage
//! With `H` slots and a batch of `B`, one [`Local`] keeps at most `T = max(B, 2 H)` objects that gather, as many that wait
//! for a quiet fence, as many that are ready to be freed, and `H` that are protected. When a batch is full and the one
//! before still waits for a quiet fence, it gets a fast one. A local that is dropped leaves what it has to the next one, within the same bound, so
//! a domain keeps at most that for each local there has been at once.
//!
//! Destructors may retire. What they retire adds to the bound until the outermost `retire` or `flush` returns, which frees more
//! than two objects when the destructors make more ready than a batch. A destructor never runs inside of another one of the same local, so a chain of
//! objects that retire each other takes no deep stack, in a thread that ends either.
//!
//! Where every heavy fence is refused (a sandbox was entered that forbids them), nothing is freed and nothing panics.
//!
//! # Source of the idea
//! Maged Michael's hazard pointers (2004), with the amortising threshold of that paper; Paul Khuong's fence on the reclaiming
//! side only.

mod domain;
mod garbage;
mod local;
mod pointer;
#[cfg(feature = "std")]
mod process;
mod shared;
mod slot;
mod stats;

pub use domain::Domain;
pub use local::Local;
pub use pointer::{Hazard, Protected};
#[cfg(feature = "std")]
pub(super) use process::with_hazards;
#[cfg(feature = "std")]
pub use process::{flush, hazard, retire, stats};
pub use stats::Stats;
