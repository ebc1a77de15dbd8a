//! The queue of an edge.

use std::cell::RefCell;
use std::rc::Rc;

use super::error::RunError;
use super::fifo::Fifo;
use super::spill::Disk;

/// The slot for the last value of a node. Operators that only pass or drop values share the slot of their input.
pub(crate) type Shared<T> = Rc<RefCell<Option<T>>>;

/// A queue in front of an actor, for code that does not know the type of its values.
pub(crate) type Inlet = Rc<dyn AnyQueue>;

/// Creates a queue on disk.
pub(crate) type MakeDisk<T> = Rc<dyn Fn() -> Box<dyn Disk<T>>>;

/// Clones a value into a slot, reusing the memory of the old value.
pub(crate) fn assign<T: Clone>(slot: &mut Option<T>, value: &T) {
    match slot {
        Some(slot) => slot.clone_from(value),
        None => *slot = Some(value.clone()),
    }
}

/// The maximum number of values that an unproven queue allocates room for at the start.
const MAX_ROOM_AT_ONCE: u64 = 1024;

/// Values between two actors, oldest first.
pub(crate) struct Queue<T> {
    /// The slot from which values enter.
    from: Shared<T>,
    values: Fifo<T>,
    disk: Option<Box<dyn Disk<T>>>,
}

/// A queue of values of any type.
pub(crate) trait AnyQueue {
    /// Makes room for this many values.
    fn reserve(&self, values: u64, proven: bool);

    /// Adds a clone of the value in the writer's slot.
    fn enter(&self) -> Result<(), Box<RunError>>;
}

impl<T: Clone> Queue<T> {
    pub(crate) fn new(from: Shared<T>, disk: Option<Box<dyn Disk<T>>>) -> Self {
        Self { from, values: Fifo::new(), disk }
    }

    /// Returns the oldest value.
    #[inline]
    pub(crate) fn front(&self) -> &T {
        match &self.disk {
            Some(disk) => disk.front().expect("an actor fires when its queues have values"),
            None => self.values.front(),
        }
    }

    /// Returns the oldest value, which is about to leave. The caller may swap it for another value, whose memory the
    /// queue reuses.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> &mut T {
        match &mut self.disk {
            Some(disk) => disk.front_mut().expect("an actor fires when its queues have values"),
            None => self.values.front_mut(),
        }
    }

    /// Swaps the oldest value with the value in `into`, whose memory the queue then reuses.
    #[inline]
    pub(crate) fn take(&mut self, into: &mut Option<T>) -> Result<(), RunError> {
        match &mut self.disk {
            Some(disk) => disk.take(into),
            None => {
                self.values.take(into);
                Ok(())
            }
        }
    }

    /// Drops the oldest value.
    #[inline]
    pub(crate) fn leave(&mut self) -> Result<(), RunError> {
        match &mut self.disk {
            Some(disk) => disk.leave(),
            None => {
                self.values.leave();
                Ok(())
            }
        }
    }
}

impl<T: Clone> AnyQueue for RefCell<Queue<T>> {
    fn reserve(&self, values: u64, proven: bool) {
        let mut queue = self.borrow_mut();
        if queue.disk.is_none() {
            let room = if proven { values } else { values.min(MAX_ROOM_AT_ONCE) };
            queue.values.reserve(room as usize);
        }
    }

    fn enter(&self) -> Result<(), Box<RunError>> {
        let Queue { from, values, disk } = &mut *self.borrow_mut();
        let from = from.borrow();
        let value = from.as_ref().expect("a value was given");
        match disk {
            Some(disk) => disk.enter(value),
            None => {
                values.enter(value);
                Ok(())
            }
        }
    }
}
