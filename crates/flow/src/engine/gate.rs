//! The gate before admission: units that were sent while a worker was about to come by.
//!
//! Admitting one unit at a time would take the flow's mutex once for each. So while the gate is *attended*,
//! [`send`](crate::Submitter::send) only puts a unit here, under a mutex of the gate's own, and the next
//! worker that finishes a batch admits all that have come. The gate is attended while at least one shared
//! worker has a batch that will end within [`SOON_NS`] by the slowest recent unit of its stage, or has just
//! been woken. If it takes longer after all, the timekeeper comes by (see `watch`). In a flow of longer units
//! the gate is never used: there the mutex costs nothing.
//!
//! No unit is left behind. The sender puts its unit here and *then* looks whether the gate is still attended;
//! a worker that ends the attendance says so and *then* looks here. Whichever of the two took the gate's
//! mutex last sees what the other wrote before: the worker the unit, or the sender the end of the attendance,
//! and then the sender admits the unit itself.
//!
//! The gate holds at most [`STAGED_MOST`] units and a sixteenth of the byte budget; beyond that a sender
//! waits for admission.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::admit::Candidate;
use super::column::Row;
use super::state::State;
use crate::exit::Entry;

/// The most units that wait before the gate.
pub(crate) const STAGED_MOST: usize = 1024;

/// A worker whose batch ends within this attends the gate.
pub(crate) const SOON_NS: u64 = 200_000;

/// The gate, its payload type hidden.
pub(crate) trait Gate: Send + Sync {
    /// Admits units in the order they came, as long as there is room. Looks without the gate's mutex first,
    /// unless `surely`.
    fn admit_staged(&self, state: &mut State, now: u64, surely: bool);
    /// Admits all units, room or not, when a flow is abandoned: they are counted as left.
    fn admit_all(&self, state: &mut State, now: u64);
    /// Lets nothing in any more.
    fn close(&self);
    /// Tells the gate the byte budget.
    fn set_memory(&self, bytes: u64);
    fn is_empty(&self) -> bool;
}

pub(crate) struct TypedGate<In> {
    pub(crate) entry: Arc<Entry<In>>,
    line: Mutex<Line<In>>,
    /// The line's length, written under its mutex. Read without it, it may be stale; whoever depends on it
    /// reads it with the flow's mutex, after somebody else who had both.
    length: AtomicUsize,
}

struct Line<In> {
    staged: VecDeque<(Candidate, In)>,
    bytes: u64,
    bytes_most: u64,
    closed: bool,
}

/// What became of a unit that was brought to the gate.
pub(crate) enum Staged<In> {
    /// It waits here.
    Here,
    /// There is no place for it.
    Full(Candidate, In),
    Closed(In),
}

impl<In> TypedGate<In> {
    pub(crate) fn new(entry: Arc<Entry<In>>, memory_cap: u64) -> Self {
        let line = Line { staged: VecDeque::new(), bytes: 0, bytes_most: memory_cap / 16, closed: false };
        TypedGate { entry, line: Mutex::new(line), length: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Line<In>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stage(&self, candidate: Candidate, unit: In) -> Staged<In> {
        let mut line = self.lock();
        if line.closed {
            return Staged::Closed(unit);
        }
        let bytes = line.bytes.saturating_add(candidate.bytes);
        if line.staged.len() >= STAGED_MOST || bytes > line.bytes_most {
            return Staged::Full(candidate, unit);
        }
        line.bytes = bytes;
        line.staged.push_back((candidate, unit));
        self.length.store(line.staged.len(), Ordering::Relaxed);
        Staged::Here
    }

    /// Puts a unit into a row of its own. Returns whether it is plain.
    pub(crate) fn admit_one(
        &self,
        state: &mut State,
        candidate: Candidate,
        unit: In,
        run: &mut VecDeque<Row>,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) -> bool {
        state.admit(candidate, run, now, |row| {
            place(row);
            // SAFETY: a flow has one gate, so the entry's column and the row are of the same flow.
            *unsafe { self.entry.column.cell(row) } = Some(unit);
        })
    }
}

impl<In: Send> Gate for TypedGate<In> {
    fn admit_staged(&self, state: &mut State, now: u64, surely: bool) {
        if !surely && self.is_empty() {
            return;
        }
        let mut line = self.lock();
        if line.staged.is_empty() {
            return;
        }
        // Taken out under the gate's mutex, admitted after: senders should not wait for that.
        let (mut units, mut bytes) = (0, 0);
        if state.has_room_for_all(line.staged.len(), line.bytes) {
            (units, bytes) = (line.staged.len(), line.bytes);
        } else {
            for (candidate, _) in &line.staged {
                if !state.has_room_beside(units, bytes, candidate.bytes) {
                    break;
                }
                units += 1;
                bytes += candidate.bytes;
            }
        }
        let all = units == line.staged.len();
        let mut taken: VecDeque<(Candidate, In)> =
            if all { std::mem::take(&mut line.staged) } else { line.staged.drain(..units).collect() };
        line.bytes -= bytes;
        self.length.store(line.staged.len(), Ordering::Relaxed);
        drop(line);
        let mut run = state.pocket.spares.take();
        let mut plain = true;
        for (candidate, unit) in taken.drain(..) {
            plain &= self.admit_one(state, candidate, unit, &mut run, now, |_| ());
        }
        state.enter(run, plain, now);
        if all {
            // Gives the line its memory back.
            let mut line = self.lock();
            if line.staged.capacity() == 0 {
                line.staged = taken;
            }
        }
    }

    fn admit_all(&self, state: &mut State, now: u64) {
        let staged = std::mem::take(&mut self.lock().staged);
        self.length.store(0, Ordering::Relaxed);
        let mut run = state.pocket.spares.take();
        for (candidate, unit) in staged {
            self.admit_one(state, candidate, unit, &mut run, now, |_| ());
        }
        state.enter(run, false, now);
    }

    fn close(&self) {
        self.lock().closed = true;
    }

    fn set_memory(&self, bytes: u64) {
        self.lock().bytes_most = bytes / 16;
    }

    fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }
}
