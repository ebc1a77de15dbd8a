//! Memory reclamation without cost to readers: when to free an object that other threads may still use.
//!
//! A lock-free structure unlinks an object while other threads hold its address. Readers announce the objects they use,
//! by plain stores; the reclaimer ensures that it sees these announcements before it frees objects. On most machines
//! that takes a full fence between each reader's store and its next load, some 40 cycles each time. Here readers
//! execute a [light fence](millstream_fence::light), which needs no fence instruction, and the reclaimer executes one
//! heavy fence per thousand objects.
//!
//! # Which one do I want?
//! | I want | use |
//! | --- | --- |
//! | a stack, an unbounded queue | [`Stack`], [`Queue`] |
//! | settings that are read all the time and changed occasionally | [`Snapshot`] |
//! | to build a structure of many small objects, read in short sections | [`epoch`] |
//! | to hold a few objects, perhaps for long, with bounded garbage | [`hazard`] |
//!
//! | | epochs | hazard pointers |
//! | --- | --- | --- |
//! | the reader's stores | two per section, however much it reads | two per object |
//! | a reader that stops holds back | every object retired since it entered | the objects it protects |
//! | garbage of a thread, at most | no bound; [`epoch::Local::make_room`] reports a stall | `3 · max(batch, 2 · hazards) + hazards` objects, see [there](hazard#bounded-garbage) |
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
//! Objects are freed in batches. Each batch needs one fence, of the kind that the [`Settings`] ask for: [`Fence::FAST`]
//! interrupts other cores and takes some 10 µs; [`Fence::QUIET`] takes milliseconds, during which no thread waits: the
//! batch keeps a [`Ticket`](millstream_fence::Ticket). Destructors run on the threads that retire, up to two in each
//! call.
//!
//! # After a fork
//! A child of `fork` has one thread. Objects that other threads had retired are not freed in the child. Guards that
//! other threads had in the process's collector hold back no objects there; guards of any other
//! [`Collector`](epoch::Collector) do, so make a new collector. A hazard of another thread keeps the one object that it
//! protects. (The library does not notice a child made by a bare `clone`.)

#[cfg(feature = "std")]
mod backoff;
#[cfg(feature = "std")]
pub mod epoch;
pub mod hazard;
#[cfg(feature = "std")]
mod queue;
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

/// Defines `shared()`, the state of the process's own collector or domain, and two thread-locals: a pointer to the
/// thread's own record in it, and `AT_EXIT`, whose destructor ends the record with the thread.
#[cfg(feature = "std")]
macro_rules! process_wide {
    ($(#[$attribute:meta])* static $current:ident: $record:ty;) => {
        #[cfg(not(loom))]
        #[inline(always)]
        fn shared() -> &'static Shared {
            static SHARED: Shared = Shared::new($crate::reclaim::Settings::DEFAULT);
            &SHARED
        }

        /// One state for each execution of a model; it is leaked, because a model's threads may end after its statics.
        #[cfg(loom)]
        fn shared() -> &'static Shared {
            loom::lazy_static! {
                static ref SHARED: &'static Shared =
                    Box::leak(Box::new(Shared::new($crate::reclaim::Settings::DEFAULT)));
            }
            *SHARED
        }

        #[cfg(not(loom))]
        thread_local! {
            $(#[$attribute])*
            static $current: Cell<*const $record> = const { Cell::new(ptr::null()) };
            static AT_EXIT: AtExit = const { AtExit(Cell::new(None)) };
        }

        #[cfg(loom)]
        loom::thread_local! {
            static $current: Cell<*const $record> = Cell::new(ptr::null());
            static AT_EXIT: AtExit = AtExit(Cell::new(None));
        }
    };
}
#[cfg(feature = "std")]
use process_wide;

/// Runs destructors when a thread ends, where a panic would abort the process. The panic hook has reported it.
#[cfg(feature = "std")]
fn at_the_end_of_a_thread(free: impl FnOnce()) {
    // The payload is leaked, because its destructor may panic, too.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(free)).map_err(std::mem::forget);
}
