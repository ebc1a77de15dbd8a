//! Epochs: entering and leaving take two stores, however many objects are read in between.
//!
//! A reader [pins](pin) its thread and then follows shared pointers by plain loads. A writer unlinks an object and
//! [retires](Guard::retire) it; the object is freed when every reader pinned at that time has left. Epochs suit short
//! reading sections; a reader that stops while it is pinned holds back every object retired from then on (see
//! [`Stats::behind`] and [`Local::make_room`]). If readers may stop for a long time, or hold a few objects for a long
//! time, use [`hazard`](super::hazard) pointers.
//!
//! | I want | use |
//! | --- | --- |
//! | to read the process's own structures | [`pin`] |
//! | readers and garbage of a structure of my own | a [`Collector`], a [`Local`] for each thread |
//! | to free later | [`Guard::retire`], [`Guard::retire_with`], [`Guard::defer`] |
//! | a long reading section that holds nothing back | [`Guard::refresh`] between steps |
//! | a bound on garbage | [`Local::make_room`] before unlinking |
//! | to see whether a reader holds garbage back | [`stats`], [`Collector::stats`] |
//!
//! ```
//! use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};
//! use millstream_sync::reclaim::epoch::Collector;
//!
//! let collector = Collector::new();
//! let newest = AtomicPtr::new(Box::into_raw(Box::new(String::from("first"))));
//! std::thread::scope(|scope| {
//!     let local = collector.local();
//!     scope.spawn(move || {
//!         let old = newest.swap(Box::into_raw(Box::new(String::from("second"))), AcqRel);
//!         let guard = local.pin();
//!         // SAFETY: the objects come from boxes, are unreachable now, and each is retired once.
//!         unsafe {
//!             guard.retire(old);
//!             guard.retire(newest.into_inner());
//!         }
//!     });
//! });
//! ```
//!
//! # How it works, and why it is safe
//! A thread's whole state is one word: the epoch in which it entered, or none. `participant.rs` has the argument, case
//! by case, next to the code; `verify/tso` checks it on the x86 machine, by enumeration, and `tests/reclaim_loom.rs` on
//! a weakly ordered one.
//!
//! # Bounded garbage
//! Published ways to bound an epoch scheme's garbage make the reader pay. Neutralising a stalled reader by a signal
//! (Brown, "Reclaiming memory for lock-free data structures", 2015) needs code that can be abandoned at any
//! instruction, and code with destructors cannot be abandoned. Ejecting the reader (Kang and Jung, "A marriage of
//! pointer- and epoch-based reclamation", 2020) and falling back to hazard pointers while a reader is stalled (Balmau,
//! Guerraoui, Herlihy and Zablotchi, "Fast and robust memory reclamation for concurrent data structures", 2016) need a
//! hazard pointer for each object, written all the time. Intervals of birth and death (Wen, Izraelevitz, Cai, Beadle
//! and Scott, "Interval-based memory reclamation", 2018) need a header in each object and a comparison for each load.
//! Here a load stays a load, and the *stall is reported*: a writer that has a limit asks for room before it unlinks. If
//! there is no room, the writer learns by how many epochs the oldest reader is behind. To protect individual objects,
//! use [`hazard`](super::hazard), where objects are retired in the same way.
//!
//! # Source of the idea
//! Keir Fraser's epochs (2004). The single grace period over a published 64-bit epoch is that of user-space RCU
//! (Desnoyers, McKenney, Stern, Dagenais and Walpole, 2012) without its phases, because the number does not wrap. The
//! asymmetric fence, on the reclaiming side only, is Paul Khuong's idea.

mod collector;
mod default_collector;
mod garbage;
mod guard;
mod member;
mod participant;

pub use collector::{Collector, Stats};
pub use default_collector::{flush, pin, stats};
pub use guard::Guard;
pub use member::{Local, Stalled};
