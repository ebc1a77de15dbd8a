//! What a model has for a mapped file: the same words and slots, in memory of its own.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use millstream_sync::eventcount::SharedEventCount;

use super::header::{Header, Line, Sleeper};
use super::{Consumer, Plain, Producer};
use crate::primitive::UnsafeCell;

pub(super) struct Segment<T>(Arc<Memory<T>>);

struct Memory<T> {
    header: Header,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: as of the mapped file: the protocol says who may touch which slot, and loom watches it.
unsafe impl<T: Plain> Sync for Memory<T> {}
// SAFETY: the values are plain.
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

/// Both ends of a ring, and a second consumer for when the first has crashed.
pub(crate) fn ring<T: Plain + Default>(slots: usize) -> (Producer<T>, [Consumer<T>; 2]) {
    let sleeper = || Line(Sleeper { asleep: AtomicU32::new(0), count: SharedEventCount::new() });
    let [published, consumed] = [(); 2].map(|()| Line(AtomicU64::new(0)));
    let header = Header { published, consumed, arrivals: sleeper(), room: sleeper() };
    let slots = (0..slots).map(|_| UnsafeCell::new(T::default())).collect();
    let memory = Arc::new(Memory { header, slots });
    let segment = || Segment(Arc::clone(&memory));
    (Producer::of(segment()), [(); 2].map(|()| Consumer::of(segment())))
}
