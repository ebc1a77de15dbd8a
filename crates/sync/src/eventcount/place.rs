//! The places of an event count: one process, or memory shared between processes.

use std::time::Duration;

use super::sleep::Queue;
use super::tasks::Tasks;
use crate::primitive::{AtomicU32, Ordering, fence, heavy, light};

/// Where a count lives: [`Local`] or [`Shared`].
///
/// Sealed: the proofs of the kinds depend on the fences of each place.
pub trait Place: sealed::Place {}

/// A place in one process, whose threads and tasks wait.
#[derive(Debug, Default)]
pub struct Local {
    pub(super) tasks: Tasks,
    queue: Queue,
}

/// A place in memory that several processes map: threads of all of them wait; tasks cannot.
///
/// A count in this place holds no pointers, and zeroed memory is a new count. The layout is the kind's one or two
/// words, then a `u32` that is 1 if the sole incrementer's process registered for heavy fences and 0 otherwise. Any
/// process may be killed at any moment: a waiter leaves at worst a flag, which costs the next increment one system
/// call. An incrementer may die before it wakes its waiters, so here no thread sleeps for longer than a second without
/// checking the count.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Shared {
    /// Whether the incrementer's process registered for heavy fences: 1 or 0.
    registered: AtomicU32,
    queue: Queue,
}

/// How an increment can overlook a flag that is set concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlooks {
    /// It overlooks no flag.
    Nothing,
    /// Its load of the flag is reordered before its store of the value.
    Reordered,
    /// Its store overwrites the flag.
    Overwritten,
}

/// When a waiter that set the flag knows that the next increment will see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// At once, if the count is still the same.
    Now,
    /// After a second in which the count does not change.
    InTime,
}

impl Place for Local {}
impl Place for Shared {}

pub(super) mod sealed {
    use super::{Certainty, Duration, Overlooks, Queue};

    pub trait Place: Default + Send + Sync + 'static {
        #[cfg(not(loom))]
        const EMPTY: Self;
        /// Whether other processes sleep here.
        const SHARED: bool;
        /// Longest sleep without a check of the count, if there is a limit.
        const LONGEST_SLEEP: Option<Duration>;

        fn queue(&self) -> &Queue;

        /// Wakes at most `most` tasks and returns how many it woke.
        fn wake_tasks(&self, most: usize) -> usize;

        /// Prepares the place for a new sole incrementer, before its first increment.
        fn attach(&self);

        /// The incrementer's fence between its store of the value and its load of the flag.
        fn light();

        /// Passes the waiter's fence, if the kind needs one, between setting the flag and checking the count again.
        fn confirm(&self, overlooks: Overlooks) -> Certainty;
    }
}

impl sealed::Place for Local {
    #[cfg(not(loom))]
    const EMPTY: Self = Local { tasks: Tasks::new(), queue: Queue };
    const SHARED: bool = false;
    const LONGEST_SLEEP: Option<Duration> = None;

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn wake_tasks(&self, most: usize) -> usize {
        self.tasks.wake(most)
    }

    fn attach(&self) {}

    #[inline(always)]
    fn light() {
        light();
    }

    fn confirm(&self, overlooks: Overlooks) -> Certainty {
        if overlooks == Overlooks::Nothing {
            return Certainty::Now;
        }
        heavy();
        // Symmetric fences order stores and loads, but they do not keep an unlocked addition in one piece: only an
        // interrupt does.
        if overlooks == Overlooks::Overwritten && !interrupts() { Certainty::InTime } else { Certainty::Now }
    }
}

impl sealed::Place for Shared {
    #[cfg(not(loom))]
    const EMPTY: Self = Shared { registered: AtomicU32::new(0), queue: Queue };
    const SHARED: bool = true;
    /// A process may be killed between its increment and the wake-up, and no other process knows of the waiters it
    /// left.
    const LONGEST_SLEEP: Option<Duration> = Some(Duration::from_secs(1));

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn wake_tasks(&self, _most: usize) -> usize {
        0
    }

    fn attach(&self) {
        let registered = shared::register();
        // The swap is a full barrier. It comes after an earlier waiter's flag and load of this word, or before both: a
        // waiter that still read the former incrementer's registration set its flag before our first increment.
        self.registered.swap(registered.into(), Ordering::SeqCst);
    }

    #[inline(always)]
    fn light() {
        shared::light();
    }

    fn confirm(&self, overlooks: Overlooks) -> Certainty {
        if overlooks == Overlooks::Nothing {
            return Certainty::Now;
        }
        // Separates the flag from the load of `registered`, and pairs with the full fence of an unregistered
        // incrementer.
        fence(Ordering::SeqCst);
        if self.registered.load(Ordering::SeqCst) == 0 {
            // There is no incrementer yet, or one with full fences. Those order, but keep no addition in one piece.
            return if overlooks == Overlooks::Overwritten { Certainty::InTime } else { Certainty::Now };
        }
        if shared::heavy() { Certainty::Now } else { Certainty::InTime }
    }
}

/// Whether a heavy fence interrupts the other threads.
fn interrupts() -> bool {
    #[cfg(loom)]
    let interrupts = true;
    #[cfg(not(loom))]
    let interrupts = millstream_fence::is_asymmetric();
    interrupts
}

/// The fences between processes; in a loom model, where there is only one process, full fences.
mod shared {
    #[cfg(not(loom))]
    pub(super) use millstream_fence::shared::light;

    #[cfg(loom)]
    pub(super) use crate::primitive::light;

    pub(super) fn register() -> bool {
        cfg!(not(loom)) && millstream_fence::shared::register().is_ok()
    }

    pub(super) fn heavy() -> bool {
        millstream_fence::shared::heavy().is_ok()
    }
}
