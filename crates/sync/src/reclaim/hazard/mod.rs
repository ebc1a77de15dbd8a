//! Hazard pointers: a store and a second load protect one object at a time.
//!
//! A reader announces in its own slot which object it uses; the thread that retired an object frees it when no slot
//! names it. A reader that stops holds back only the objects it protects: garbage is bounded in every case. In exchange
//! every object must be protected individually before it is read. For structures of many small objects that readers
//! only pass through, [`epoch`](super::epoch)s cost less.
//!
//! | I want | use |
//! | --- | --- |
//! | to read an object of the process's own structures | [`hazard()`], then [`Hazard::protect`] |
//! | hazards and garbage of a structure of my own | a [`Domain`] |
//! | to free later | [`retire`], [`Local::retire`] |
//! | to see how much garbage waits | [`stats`], [`Domain::stats`] |
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
//!             // SAFETY: every object taken out of `newest` is retired to this domain.
//!             let text = unsafe { hazard.protect(&newest) }.unwrap(); // as long as `text` lives
//!             assert!(*text == "first" || *text == "second");
//!         }
//!     });
//!     let old = newest.swap(Box::into_raw(Box::new(String::from("second"))), AcqRel);
//!     // SAFETY: the object comes from a box, is unreachable now, and is retired once.
//!     unsafe { domain.local().retire(old) };
//! });
//! // SAFETY: the object comes from a box, is unreachable now, and is retired once.
//! unsafe { domain.local().retire(newest.into_inner()) };
//! ```
//!
//! # How it works, and why it is safe
//! `slot.rs` has the argument, case by case, next to the code. `verify/tso` checks it on the x86 machine, with a table
//! of all interleavings, and `tests/reclaim_loom.rs` on a weakly ordered one.
//!
//! # Bounded garbage
//! With `H` slots and a batch of `B`, let `T = max(B, 2 H)`. One [`Local`] keeps at most `T` objects in the batch being
//! filled, `T` that wait for a quiet fence, `T` that are ready to be freed, and `H` that are protected. When a batch is
//! full while the previous batch still waits for a quiet fence, the previous batch gets a fast fence. A dropped local
//! leaves its garbage to the next local, within the same bound. So the bound of a domain is that of one local times the
//! largest number of locals at one time.
//!
//! Destructors may retire. Their objects add to the bound until the outermost `retire` or `flush` returns; that call
//! frees more than two objects if the destructors make more than a batch ready. A destructor never runs inside another
//! destructor of the same local, so a chain of objects that retire each other causes no deep recursion, not even in a
//! thread that ends.
//!
//! Where every heavy fence is refused (a sandbox entered later forbids them), no object is freed and no call panics.
//!
//! # Source of the idea
//! Maged Michael's hazard pointers (2004), with the amortising threshold of that paper. The asymmetric fence, on the
//! reclaiming side only, is Paul Khuong's idea.

#[cfg(feature = "std")]
mod default_domain;
mod domain;
mod garbage;
mod pointer;
mod slot;

#[cfg(feature = "std")]
pub(super) use default_domain::with_hazards;
#[cfg(feature = "std")]
pub use default_domain::{flush, hazard, retire, stats};
pub use domain::{Domain, Stats};
pub use garbage::Local;
pub use pointer::{Hazard, Protected};
