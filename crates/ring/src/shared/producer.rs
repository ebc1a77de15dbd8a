//! The producing end of a shared ring.

use std::fmt;
#[cfg(not(loom))]
use std::fs::File;
use std::time::Instant;

#[cfg(not(loom))]
use super::AttachError;
#[cfg(not(loom))]
use super::role::Role;
use super::{Plain, Segment};
use crate::primitive::atomic::Ordering;

/// The producing end of a shared ring. A ring has one producer at a time.
pub struct Producer<T: Plain> {
    pub(super) segment: Segment<T>,
    /// All positions before this are free.
    limit: u64,
}

impl<T: Plain> Producer<T> {
    /// Attaches as the producer of the ring in `file`; an empty file becomes a ring.
    ///
    /// Blocks while another process attaches. An earlier producer may have been killed [at any
    /// step](super#how-it-behaves) of waking the consumer after it sent an event. If the consumer still sleeps, this
    /// call wakes it, or the consumer wakes at its next check, within a second.
    ///
    /// # Errors
    /// If another producer is attached, the file has other contents, the ring would exceed the largest possible memory,
    /// or the operating system refuses an operation; see [how the file is opened](super#the-file).
    ///
    /// # Panics
    /// If `slots` is not a power of two.
    #[cfg(not(loom))]
    pub fn attach(file: &File, slots: usize) -> Result<Self, AttachError> {
        let segment = Segment::attach(file, slots, Role::Producer)?;
        Ok(Producer::of(segment))
    }

    pub(super) fn of(segment: Segment<T>) -> Self {
        // An earlier producer may have published without waking the consumer.
        segment.header().arrivals.0.wake();
        Producer { segment, limit: 0 }
    }

    /// Sends an event, waiting for room as long as necessary.
    pub fn send(&mut self, event: T) {
        self.send_all(&[event]);
    }

    /// Sends an event if there is room; returns whether it did. Never waits.
    pub fn try_send(&mut self, event: T) -> bool {
        self.free() > 0 && self.publish(&[event]) == 1
    }

    /// Sends an event, waiting for room until `deadline`; returns whether it did.
    pub fn send_deadline(&mut self, event: T, deadline: Instant) -> bool {
        (self.free() > 0 || self.wait(Some(deadline))) && self.publish(&[event]) == 1
    }

    /// Sends all events in order, waiting for room. As many events as there is room for are sent together, with one
    /// wake-up for all of them.
    pub fn send_all(&mut self, mut events: &[T]) {
        while !events.is_empty() {
            if self.free() == 0 {
                self.wait(None);
            }
            let sent = self.publish(events);
            events = &events[sent..];
        }
    }

    /// The position of the next event, which is the number of events sent since the ring was created.
    #[must_use]
    pub fn position(&self) -> u64 {
        // Relaxed: only the producer writes it.
        self.segment.header().published.0.load(Ordering::Relaxed)
    }

    /// The number of free slots.
    pub(super) fn free(&mut self) -> u64 {
        let next = self.position();
        if self.limit <= next {
            // Acquire pairs with the consumer's release: its reads of these slots happen before the next writes to
            // them.
            self.limit = self.segment.header().consumed.0.load(Ordering::Acquire) + self.segment.slots();
        }
        self.limit - next
    }

    /// Sends as many of the events as there is room for, and wakes the consumer; returns their number.
    fn publish(&mut self, events: &[T]) -> usize {
        let sent = self.store(events);
        self.segment.header().arrivals.0.wake();
        sent
    }

    /// Writes and publishes as many of the events as there is room for, without waking the consumer; returns their
    /// number.
    pub(super) fn store(&mut self, events: &[T]) -> usize {
        let (first, free) = (self.position(), self.free());
        let sent = events.len().min(free as usize);
        for (position, event) in (first..).zip(&events[..sent]) {
            // SAFETY: the slot is free, and this is the only producer.
            self.segment.slot(position).with_mut(|slot| unsafe { slot.write(*event) });
        }
        self.release(first + sent as u64);
        sent
    }

    /// Makes all events before `end` visible to the consumer, without waking it.
    pub(super) fn release(&mut self, end: u64) {
        // Release pairs with the consumer's acquire, which sees the events.
        self.segment.header().published.0.store(end, Ordering::Release);
    }

    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> bool {
        let (next, slots) = (self.position(), self.segment.slots());
        let header = self.segment.header();
        let room = || (header.consumed.0.load(Ordering::Acquire) + slots > next).then_some(());
        header.room.0.sleep(deadline, room).is_some()
    }
}

impl<T: Plain> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("position", &self.position()).finish_non_exhaustive()
    }
}
