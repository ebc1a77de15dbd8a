//! The consuming end of a shared ring.

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

/// The consuming end of a shared ring. A ring has one consumer at a time.
pub struct Consumer<T: Plain> {
    pub(super) segment: Segment<T>,
    /// All positions before this hold events.
    limit: u64,
}

impl<T: Plain> Consumer<T> {
    /// Attaches as the consumer of the ring in `file`; an empty file becomes a ring. The consumer starts with the first
    /// event that no earlier consumer has consumed.
    ///
    /// Blocks while another process attaches. An earlier consumer may have been killed [at any
    /// step](super#how-it-behaves) of waking the producer after it made room. If the producer still sleeps, this call
    /// wakes it, or the producer wakes at its next check, within a second.
    ///
    /// # Errors
    /// If another consumer is attached, the file has other contents, the ring would exceed the largest possible memory,
    /// or the operating system refuses an operation; see [how the file is opened](super#the-file).
    ///
    /// # Panics
    /// If `slots` is not a power of two.
    #[cfg(not(loom))]
    pub fn attach(file: &File, slots: usize) -> Result<Self, AttachError> {
        let segment = Segment::attach(file, slots, Role::Consumer)?;
        Ok(Consumer::of(segment))
    }

    pub(super) fn of(segment: Segment<T>) -> Self {
        // An earlier consumer may have made room without waking the producer.
        segment.header().room.0.wake();
        Consumer { segment, limit: 0 }
    }

    /// Handles the next event, waiting for it as long as necessary. The event is consumed when `handle` returns.
    pub fn handle<R>(&mut self, handle: impl FnOnce(&T) -> R) -> R {
        if self.ready() == 0 {
            self.wait(None);
        }
        self.take(handle)
    }

    /// Handles the next event if there is one; `None` if not. Never waits.
    pub fn try_handle<R>(&mut self, handle: impl FnOnce(&T) -> R) -> Option<R> {
        (self.ready() > 0).then(|| self.take(handle))
    }

    /// Handles the next event, waiting for it until `deadline`; `None` if none arrived.
    pub fn handle_deadline<R>(&mut self, deadline: Instant, handle: impl FnOnce(&T) -> R) -> Option<R> {
        (self.ready() > 0 || self.wait(Some(deadline))).then(|| self.take(handle))
    }

    /// Waits for at least one event, then handles the available events, at most `most`; returns their number. More
    /// events may have arrived before the call returns.
    ///
    /// The events are consumed together, when `handle` has returned from the last one. A consumer that crashes before
    /// that, or whose `handle` panics, sees all of them again. In return, all of them together cost a single wake-up,
    /// and their slots become free at the same time.
    ///
    /// ```
    /// use millstream_ring::shared::{Consumer, Producer};
    ///
    /// # let file = tempfile::tempfile()?;
    /// let mut producer = Producer::<u64>::attach(&file, 1024)?;
    /// let mut consumer = Consumer::<u64>::attach(&file, 1024)?;
    /// producer.send_all(&[1, 2, 3]);
    /// let mut sum = 0;
    /// assert_eq!(consumer.handle_many(64, |event| sum += event), 3);
    /// assert_eq!(sum, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn handle_many(&mut self, most: usize, handle: impl FnMut(&T)) -> usize {
        if most > 0 && self.ready() == 0 {
            self.wait(None);
        }
        self.take_many(most, handle)
    }

    /// Handles the available events, at most `most`; returns their number. Never waits. Otherwise like
    /// [`handle_many`](Self::handle_many).
    pub fn try_handle_many(&mut self, most: usize, handle: impl FnMut(&T)) -> usize {
        self.take_many(most, handle)
    }

    /// Waits until `deadline` for at least one event, then handles the available events, at most `most`; returns their
    /// number, 0 if none arrived. Otherwise like [`handle_many`](Self::handle_many).
    pub fn handle_many_deadline(&mut self, most: usize, deadline: Instant, handle: impl FnMut(&T)) -> usize {
        if most > 0 && self.ready() == 0 {
            self.wait(Some(deadline));
        }
        self.take_many(most, handle)
    }

    /// The position of the next event, which is the number of events consumed since the ring was created.
    #[must_use]
    pub fn position(&self) -> u64 {
        // Relaxed: only the consumer writes it.
        self.segment.header().consumed.0.load(Ordering::Relaxed)
    }

    /// The number of available events.
    pub(super) fn ready(&mut self) -> u64 {
        let next = self.position();
        if self.limit <= next {
            // Acquire pairs with the producer's release: the events are written.
            self.limit = self.segment.header().published.0.load(Ordering::Acquire);
        }
        self.limit.saturating_sub(next)
    }

    fn take<R>(&mut self, handle: impl FnOnce(&T) -> R) -> R {
        let next = self.position();
        let result = self.read(next, handle);
        self.consume(next + 1);
        result
    }

    fn take_many(&mut self, most: usize, mut handle: impl FnMut(&T)) -> usize {
        let next = self.position();
        let taken = self.ready().min(most as u64);
        if taken > 0 {
            (next..next + taken).for_each(|position| self.read(position, &mut handle));
            self.consume(next + taken);
        }
        taken as usize
    }

    /// Calls `handle` with the event at `position`, which must be available.
    pub(super) fn read<R>(&self, position: u64, handle: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the slot holds an event that the producer does not touch until this consumer has consumed it, and
        // every bit pattern is a valid event.
        self.segment.slot(position).with(|event| handle(unsafe { &*event }))
    }

    /// Frees the slots of all events before `end`, and wakes the producer.
    pub(super) fn consume(&mut self, end: u64) {
        self.store(end);
        self.segment.header().room.0.wake();
    }

    /// Frees the slots of all events before `end`, without waking the producer.
    pub(super) fn store(&mut self, end: u64) {
        // Release pairs with the producer's acquire: this consumer's reads of the slots happen before the producer's
        // next writes.
        self.segment.header().consumed.0.store(end, Ordering::Release);
    }

    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> bool {
        let next = self.position();
        let header = self.segment.header();
        let ready = || (header.published.0.load(Ordering::Acquire) > next).then_some(());
        header.arrivals.0.sleep(deadline, ready).is_some() && self.ready() > 0
    }
}

impl<T: Plain> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("position", &self.position()).finish_non_exhaustive()
    }
}
