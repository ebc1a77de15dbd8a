//! The counterpart of a mapped file for models: the same header and slots, in ordinary memory. It can also simulate
//! that processes are killed.

use loom::sync::Arc;

use super::header::Header;
use super::sleep::Sleeper;
use super::{Consumer, Plain, Producer};
use crate::primitive::UnsafeCell;

pub(super) struct Segment<T>(Arc<Memory<T>>);

struct Memory<T> {
    header: Header,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: as in the mapped file, the protocol decides which side may touch which slot; loom checks it.
unsafe impl<T: Plain> Sync for Memory<T> {}
// SAFETY: the values are plain data, which may move between threads.
unsafe impl<T: Plain> Send for Memory<T> {}

impl<T: Plain> Segment<T> {
    pub(super) fn header(&self) -> &Header {
        &self.0.header
    }

    pub(super) fn slots(&self) -> u64 {
        self.0.slots.len() as u64
    }

    pub(super) fn slot(&self, position: u64) -> &UnsafeCell<T> {
        &self.0.slots[(position & (self.slots() - 1)) as usize]
    }
}

/// The counterpart of the file. The model itself must ensure that each role has one holder.
pub(crate) struct Ring<T>(Arc<Memory<T>>);

impl<T: Plain + Default> Ring<T> {
    pub(crate) fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| UnsafeCell::new(T::default())).collect();
        Ring(Arc::new(Memory { header: Header::new(), slots }))
    }

    pub(crate) fn producer(&self) -> Producer<T> {
        Producer::of(Segment(Arc::clone(&self.0)))
    }

    pub(crate) fn consumer(&self) -> Consumer<T> {
        Consumer::of(Segment(Arc::clone(&self.0)))
    }
}

/// The moment at which a process is killed, after it has stored its position and before it has woken the other side.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Killed {
    BeforeItWakes,
    BetweenTheStepsOfTheWake,
}

impl Killed {
    fn wake(self, sleeper: &Sleeper) {
        match self {
            Killed::BeforeItWakes => (),
            Killed::BetweenTheStepsOfTheWake => sleeper.wake_and_be_killed(),
        }
    }
}

impl<T: Plain> Producer<T> {
    /// Sends an event, and is killed before it wakes the other side. There must be room.
    pub(crate) fn send_and_be_killed(mut self, event: T, killed: Killed) {
        assert_eq!(self.store(&[event]), 1, "there is no room");
        killed.wake(&self.segment.header().arrivals.0);
    }
}

impl<T: Plain> Consumer<T> {
    /// Handles an event, and is killed before it wakes the other side. There must be an event.
    pub(crate) fn handle_and_be_killed<R>(mut self, handle: impl FnOnce(&T) -> R, killed: Killed) -> R {
        assert!(self.ready() > 0, "there is no event");
        let result = self.read(self.position(), handle);
        self.store(self.position() + 1);
        killed.wake(&self.segment.header().room.0);
        result
    }
}
