//! Where an event count lives: in one process, or in memory shared between processes.

use std::time::Duration;

use super::sleep::Queue;
use super::tasks::Tasks;
use crate::primitive::{AtomicU32, Ordering, fence, heavy, light};

/// Where a count lives: [`Local`] or [`Shared`].
///
/// Sealed: the waiters' certainty depends on it.
pub trait Place: sealed::Place {}

/// In one process: threads and tasks of it wait.
#[derive(Debug, Default)]
pub struct Local {
    pub(super) tasks: Tasks,
    queue: Queue,
}

/// In memory that several processes map: threads of all of them wait; tasks cannot.
///
/// A count in this place holds no pointers, and zeroed memory is a new one. The layout is the kind's one or two
/// words, then a `u32` that is 1 if the sole incrementer's process registered for heavy fences and 0 otherwise.
/// Any process may be killed at any moment: a waiter leaves at worst a flag, which costs the next increment one
/// system call; an incrementer may leave waiters that it did not wake, so here no thread sleeps longer than a
/// second without looking at the count.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Shared {
    /// Whether the incrementer's process registered for heavy fences: 1 or 0.
    registered: AtomicU32,
    queue: Queue,
}

/// How an increment can overlook a flag that is set at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlooks {
    /// It cannot.
    Nothing,
    /// Its look at the flag is reordered before its store of the value.
    Reordered,
    /// Its store overwrites the flag.
    Overwritten,
}

/// When a waiter that set the flag knows that the next increment will see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Now, if the count is still the same.
    Now,
    /// If nothing changes for a second.
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
        /// Nobody sleeps longer than this without a look.
        const LONGEST_SLEEP: Option<Duration>;

        fn queue(&self) -> &Queue;

        /// Wakes at most `most` tasks and tells how many.
        fn wake_tasks(&self, most: usize) -> usize;

        /// Called by a new sole incrementer, before its first increment.
        fn attach(&self);

        /// The incrementer's fence between its store and its look at the flag.
        fn light();

        /// What a waiter does between setting the flag and looking at the count again.
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
        // A light fence that is a full one orders stores and loads, but it does not keep an unlocked addition
        // in one piece: only an interrupt does.
        if overlooks == Overlooks::Overwritten && !interrupts() { Certainty::InTime } else { Certainty::Now }
    }
}

impl sealed::Place for Shared {
    #[cfg(not(loom))]
    const EMPTY: Self = Shared { registered: AtomicU32::new(0), queue: Queue };
    const SHARED: bool = true;
    /// A process may be killed between its increment and the wake, and nobody else knows of those it did not wake.
    const LONGEST_SLEEP: Option<Duration> = Some(Duration::from_secs(1));

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn wake_tasks(&self, _most: usize) -> usize {
        0
    }

    fn attach(&self) {
        let registered = shared::register();
        // A swap, so that it comes after an earlier waiter's flag and look at this word, or before both: a waiter
        // that still read the former incrementer's registration set its flag before our first increment.
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
        // Between the flag and the look at `registered`; also the fence that pairs with an unregistered
        // incrementer's.
        fence(Ordering::SeqCst);
        if self.registered.load(Ordering::SeqCst) == 0 {
            // Nobody increments yet, or by full fences. Those order, but keep no addition in one piece.
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

/// The fences between processes; in a loom model, where all is one process, full ones.
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
