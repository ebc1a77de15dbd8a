//! Memory reclamation whose readers pay nothing: when may an object be freed that others may still look at?
//!
//! A lock-free structure unlinks an object while other threads hold its address. Readers say what they look at, by plain
//! stores; who frees first makes sure that it sees what they said. On most machines that takes a full fence between each
//! reader's store and its next load, some 40 cycles, each time. Here readers pass a [light
//! fence](millstream_fence::light), which is no instruction, and who frees passes a heavy one, once for a thousand
//! objects.
//!
//! # Which one do I want?
//! | I want | use |
//! | --- | --- |
//! | a stack, an unbounded queue | [`Stack`], [`Queue`] |
//! | settings that are read all the time and changed now and then | [`Snapshot`] |
//! | to build a structure of many small objects, read in short sections | [`epoch`] |
//! | to hold few objects, perhaps for long, with bounded garbage | [`hazard`] |
//!
//! | | epochs | hazard pointers |
//! | --- | --- | --- |
//! | the reader writes | two words for a section, whatever it reads | a word for each object |
//! | a reader that stops holds back | everything retired since it entered | what it protects |
//! | garbage of a thread, at most | no bound; [`epoch::Local::make_room`] declares a stall | `3 · max(batch, 2 · hazards) + hazards` objects, see [there](hazard#bounded-garbage) |
//!
//! ```
//! use millstream_sync::reclaim::Snapshot;
//!
//! let limit = Snapshot::new(10_u32);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| assert!([10, 20].contains(&*limit.read())));
//!     limit.set(20);
//! });
//! ```
//!
//! # The reclaiming side
//! Objects are freed in batches. Each batch needs one fence, of the kind that the [`Settings`] ask for:
//! [`Fence::FAST`] interrupts other cores and takes some 10 µs; [`Fence::QUIET`] takes milliseconds, which nobody waits for:
//! the batch keeps a [`Ticket`](millstream_fence::Ticket). Destructors run two at a time, on a thread that retires.
//!
//! # After a fork
//! A child of `fork` has one thread. What other threads had retired is not freed in the child. Guards that they had in the process's collector hold
//! back nothing there; those of a [`Collector`](epoch::Collector) of one's own do, so make a new one. A hazard of another thread keeps the one object that
//! it protects. (A child that is made by a bare `clone` is not noticed.)

#[cfg(feature = "std")]
mod backoff;
#[cfg(feature = "std")]
pub mod epoch;
pub mod hazard;
#[cfg(feature = "std")]
mod orphans;
#[cfg(feature = "std")]
mod queue;
mod ready;
pub(crate) mod registry;
mod retired;
#[cfg(feature = "std")]
mod scheme;
mod settings;
#[cfg(feature = "std")]
mod snapshot;
#[cfg(feature = "std")]
mod stack;

pub use millstream_fence::Fence;
#[cfg(feature = "std")]
pub use queue::Queue;
#[cfg(feature = "std")]
pub use scheme::{Epochs, Hazards, Scheme};
pub use settings::Settings;
#[cfg(feature = "std")]
pub use snapshot::{Reading, Snapshot};
#[cfg(feature = "std")]
pub use stack::Stack;
