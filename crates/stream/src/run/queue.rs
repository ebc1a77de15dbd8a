//! The queue of an edge.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::error::RunError;
use super::spill::Disk;

/// The place of a node's last value. Operators that let values through share the place of their input.
pub(crate) type Shared<T> = Rc<RefCell<Option<T>>>;

/// A queue in front of an actor as the net sees it.
pub(crate) type Inlet = Rc<RefCell<dyn AnyQueue>>;

/// Creates a queue on disk.
pub(crate) type MakeDisk<T> = Rc<dyn Fn() -> Box<dyn Disk<T>>>;

/// Clones a value into a place, reusing the memory of the old value.
pub(crate) fn assign<T: Clone>(place: &mut Option<T>, value: &T) {
    match place {
        Some(place) => place.clone_from(value),
        None => *place = Some(value.clone()),
    }
}

/// The maximum number of values that an unproven queue allocates room for at the start.
const MAX_ROOM_AT_ONCE: u64 = 1024;

/// Values between two actors, oldest first.
pub(crate) struct Queue<T> {
    /// The place from which values enter.
    from: Shared<T>,
    values: VecDeque<T>,
    /// Values that have left, whose memory is reused.
    spare: Vec<T>,
    disk: Option<Box<dyn Disk<T>>>,
}

/// A queue of values of any type.
pub(crate) trait AnyQueue {
    /// Makes room for this many values.
    fn reserve(&mut self, values: u64, proven: bool);

    /// Takes in the value from the place in front of the queue.
    fn enter(&mut self) -> Result<(), RunError>;
}

impl<T> Queue<T> {
    pub(crate) fn new(from: Shared<T>, disk: Option<Box<dyn Disk<T>>>) -> Self {
        Self { from, values: VecDeque::new(), spare: Vec::new(), disk }
    }

    /// Returns the oldest value.
    pub(crate) fn front(&self) -> &T {
        let front = match &self.disk {
            Some(disk) => disk.front(),
            None => self.values.front(),
        };
        front.expect("an actor fires when its queues have values")
    }

    /// Moves the oldest value into `into`. The value there before is kept for its memory.
    pub(crate) fn take(&mut self, into: &mut Option<T>) -> Result<(), RunError> {
        if let Some(disk) = &mut self.disk {
            return disk.take(into);
        }
        let front = self.values.pop_front();
        debug_assert!(front.is_some(), "an actor fires when its queues have values");
        if let Some(spare) = std::mem::replace(into, front) {
            self.spare.push(spare);
        }
        Ok(())
    }

    /// Drops the oldest value.
    pub(crate) fn leave(&mut self) -> Result<(), RunError> {
        match &mut self.disk {
            Some(disk) => disk.leave(),
            None => {
                if let Some(spare) = self.values.pop_front() {
                    self.spare.push(spare);
                }
                Ok(())
            }
        }
    }
}

impl<T: Clone> AnyQueue for Queue<T> {
    fn reserve(&mut self, values: u64, proven: bool) {
        if self.disk.is_none() {
            let values = if proven { values } else { values.min(MAX_ROOM_AT_ONCE) } as usize;
            self.values.reserve_exact(values);
            self.spare.reserve_exact(values);
        }
    }

    fn enter(&mut self) -> Result<(), RunError> {
        let from = self.from.borrow();
        let value = from.as_ref().expect("a value was given");
        if let Some(disk) = &mut self.disk {
            return disk.enter(value);
        }
        match self.spare.pop() {
            Some(mut spare) => {
                spare.clone_from(value);
                self.values.push_back(spare);
            }
            None => self.values.push_back(value.clone()),
        }
        Ok(())
    }
}
