//! The scope of an event count: the threads and tasks of one process, or the threads of several.

use std::time::Duration;

use super::sleep::Queue;
use super::tasks::Tasks;
use crate::primitive::{AtomicU32, Ordering, fence, heavy, light};

/// The threads that may wait for a count: those of one process ([`Private`]) or of several ([`Shared`]).
pub trait Scope: Default + Send + Sync + 'static {
    #[cfg(not(loom))]
    const EMPTY: Self;
    /// Whether threads of other processes may sleep on the count.
    const SHARED: bool;
    /// The longest sleep without a check of the count, if there is a limit.
    const MAX_SLEEP: Option<Duration>;

    fn queue(&self) -> &Queue;

    /// Wakes at most `most` tasks and returns how many it woke.
    fn wake_tasks(&self, most: usize) -> usize;

    /// Prepares the scope for a new single incrementer, before its first increment.
    fn attach(&self);

    /// The incrementer's fence between its store of the value and its load of the flag.
    fn light();

    /// Executes the waiter's fence, if the kind needs one, between setting the flag and checking the count again.
    fn confirm(&self, overlooks: Overlooks) -> Certainty;
}

/// The threads and tasks of one process.
#[derive(Debug, Default)]
pub struct Private {
    pub(super) tasks: Tasks,
    queue: Queue,
}

/// The threads of all processes that map the count's memory; tasks cannot wait. The module's documentation describes
/// the layout, and what a killed process leaves behind.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Shared {
    /// 1 if the single incrementer's process registered for heavy fences, else 0.
    registered: AtomicU32,
    queue: Queue,
}

/// How an increment can overlook a flag that is set concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlooks {
    /// An increment overlooks no flag.
    Nothing,
    /// The load of the flag may be reordered before the store of the value.
    Reordered,
    /// The store of the value may overwrite the flag.
    Overwritten,
}

/// The moment from which a waiter that set the flag may rely on the next increment to see the flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// At once, if the count is still the same.
    Now,
    /// After a second without a change of the count.
    InTime,
}

impl Scope for Private {
    #[cfg(not(loom))]
    const EMPTY: Self = Private { tasks: Tasks::new(), queue: Queue };
    const SHARED: bool = false;
    const MAX_SLEEP: Option<Duration> = None;

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
        // Symmetric fences order stores and loads, but a waiter can still set the flag in the middle of an unlocked
        // addition. An interrupt always comes before or after the addition.
        if overlooks == Overlooks::Overwritten && !interrupts() { Certainty::InTime } else { Certainty::Now }
    }
}

impl Scope for Shared {
    #[cfg(not(loom))]
    const EMPTY: Self = Shared { registered: AtomicU32::new(0), queue: Queue };
    const SHARED: bool = true;
    /// A process may be killed between its increment and the wake-up, and no other process knows which waiters it has
    /// not woken.
    const MAX_SLEEP: Option<Duration> = Some(Duration::from_secs(1));

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn wake_tasks(&self, _most: usize) -> usize {
        0
    }

    fn attach(&self) {
        let registered = between_processes::register();
        // The swap is a full fence: a waiter that still loads the previous incrementer's registration has set its flag
        // before the swap, and so before our first increment.
        self.registered.swap(registered.into(), Ordering::SeqCst);
    }

    #[inline(always)]
    fn light() {
        between_processes::light();
    }

    fn confirm(&self, overlooks: Overlooks) -> Certainty {
        if overlooks == Overlooks::Nothing {
            return Certainty::Now;
        }
        // Separates the flag from the load of `registered`, and pairs with the full fence of an unregistered
        // incrementer.
        fence(Ordering::SeqCst);
        if self.registered.load(Ordering::SeqCst) == 0 {
            // There is no incrementer yet, or one with full fences. Full fences order accesses, but do not make an
            // unlocked addition indivisible.
            return if overlooks == Overlooks::Overwritten { Certainty::InTime } else { Certainty::Now };
        }
        if between_processes::heavy() { Certainty::Now } else { Certainty::InTime }
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
mod between_processes {
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
