//! The source between pulls. The slot lends it to the worker that pulls, so the source runs and ends without a lock.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_sync::eventcount::EventCount;

use crate::contain::contain;
use crate::engine::intake::source::{PullEnd, PullOrder, Source, SourceEnd};
use crate::engine::intake::staging::Staging;
use crate::engine::units::column::Row;

/// The listener for the end of the source.
type TellEnd = Box<dyn FnOnce(SourceEnd) + Send>;

/// The slot for the flow's source; empty if submitters send the units.
#[derive(Default)]
pub(crate) struct SourceSlot {
    slot: Mutex<Slot>,
    /// The event count that changes when the source is no longer lent.
    back: EventCount,
    /// The listener for the end of the source, until it is called.
    listener: Mutex<Option<TellEnd>>,
    /// The payload of the source's panic, until a caller takes it.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Default)]
struct Slot {
    source: Option<Box<dyn Source>>,
    is_lent: bool,
}

impl SourceSlot {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, source: Box<dyn Source>, listener: TellEnd) {
        self.slot().source = Some(source);
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Pulls units. Returns the end of the source, if it has ended.
    pub(crate) fn pull(&self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> Option<PullEnd> {
        let Some(mut source) = self.lend() else { return Some(PullEnd::Closed) };
        let end = match catch_unwind(AssertUnwindSafe(|| source.pull(order, rows, staging))) {
            Ok(true) => {
                source.give_back();
                return None;
            }
            Ok(false) => PullEnd::Exhausted,
            Err(panic) => {
                // The source is still lent, so `take_back` waits until the panic is stored.
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                PullEnd::Panicked
            }
        };
        drop(source);
        Some(end)
    }

    /// Takes the payload of the source's panic, if it panicked and no listener took the payload.
    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells the listener how the source ended, unless it has already been told.
    pub(super) fn tell_end(&self, end: PullEnd) {
        let Some(ended) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let end = match end {
            PullEnd::Exhausted => SourceEnd::Exhausted,
            PullEnd::Closed => SourceEnd::Closed,
            PullEnd::Panicked => SourceEnd::Panicked(self.take_panic().expect("the pull stored its panic")),
        };
        contain(|| ended(end));
    }

    /// Waits for a pull in progress, and drops the source. No worker uses it afterwards.
    pub(crate) fn detach(&self) {
        let source = self.take_back();
        contain(|| drop(source));
    }

    /// Lends the source for one pull. Returns `None` if it was taken back.
    fn lend(&self) -> Option<Lent<'_>> {
        let mut slot = self.slot();
        let source = slot.source.take()?;
        slot.is_lent = true;
        Some(Lent { slot: self, source: Some(source) })
    }

    /// Waits for a pull in progress, and takes the source unless it has ended.
    fn take_back(&self) -> Option<Box<dyn Source>> {
        loop {
            let key = self.back.snapshot();
            let mut slot = self.slot();
            if !slot.is_lent {
                return slot.source.take();
            }
            drop(slot);
            self.back.wait(key);
        }
    }
}

/// A source that is being pulled.
struct Lent<'a> {
    slot: &'a SourceSlot,
    source: Option<Box<dyn Source>>,
}

impl Lent<'_> {
    fn pull(&mut self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> bool {
        self.source.as_mut().is_some_and(|source| source.pull(order, rows, staging))
    }

    /// Returns the source for the next pull.
    fn give_back(mut self) {
        self.slot.slot().source = self.source.take();
    }
}

impl Drop for Lent<'_> {
    /// Ends the source, unless it was returned for the next pull.
    fn drop(&mut self) {
        let source = self.source.take();
        contain(|| drop(source));
        self.slot.slot().is_lent = false;
        self.slot.back.increment();
    }
}
