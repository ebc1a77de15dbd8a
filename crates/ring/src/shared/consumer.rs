//! The process that reads.

use std::fmt;
#[cfg(not(loom))]
use std::fs::File;
use std::time::Instant;

#[cfg(not(loom))]
use super::AttachError;
#[cfg(not(loom))]
use super::segment::Role;
use super::{Plain, Segment};
use crate::primitive::atomic::Ordering;

/// The consuming end of a shared ring; one at a time.
pub struct Consumer<T: Plain> {
    segment: Segment<T>,
    /// All positions before this hold events.
    limit: u64,
}

impl<T: Plain> Consumer<T> {
    /// Takes the consumer's place at the ring in `file`, which is made if the file is empty. It starts with the first event
    /// that no consumer before it is through with.
    ///
    /// # Errors
    /// When another consumer is attached, the file holds something else, or the system refuses.
    ///
    /// # Panics
    /// When `slots` is not a power of two.
    #[cfg(not(loom))]
    pub fn attach(file: &File, slots: usize) -> Result<Self, AttachError> {
        let segment = Segment::attach(file, slots, Role::Consumer)?;
        Ok(Consumer::of(segment))
    }

    pub(super) fn of(segment: Segment<T>) -> Self {
        Consumer { segment, limit: 0 }
    }

    /// Handles the next event, waiting for it as long as it takes. It is consumed when `handle` returns.
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

    /// Handles the next event, waiting for it until `deadline`; `None` if none came.
    pub fn handle_deadline<R>(&mut self, deadline: Instant, handle: impl FnOnce(&T) -> R) -> Option<R> {
        (self.ready() > 0 || self.wait(Some(deadline))).then(|| self.take(handle))
    }

    /// The position of the next event: how many were consumed since the ring was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        // Relaxed: only we write it.
        self.segment.header().consumed.0.load(Ordering::Relaxed)
    }

    /// How many events are there.
    fn ready(&mut self) -> u64 {
        let next = self.position();
        if self.limit <= next {
            // Acquire pairs with the producer's release: the events are written.
            self.limit = self.segment.header().published.0.load(Ordering::Acquire);
        }
        self.limit.saturating_sub(next)
    }

    fn take<R>(&mut self, handle: impl FnOnce(&T) -> R) -> R {
        let next = self.position();
        // SAFETY: the slot holds an event that the producer does not touch before we are through with it, and
        // every pattern of bits is a valid one.
        let result = self.segment.slot(next).with(|event| handle(unsafe { &*event }));
        let header = self.segment.header();
        // Release pairs with the producer's acquire: we do not read the slot any more.
        header.consumed.0.store(next + 1, Ordering::Release);
        header.room.0.wake();
        result
    }

    fn wait(&mut self, deadline: Option<Instant>) -> bool {
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
