//! Notes of the units that workers have in hand.
//!
//! A worker owns the rows of its batch, so no other thread can read the units' numbers there. The scheduler therefore
//! keeps a note of each batch that is expected to run long, until the batch is settled. The cost of a note is small
//! compared to such a run. Batches that end soon have no note.

use std::sync::Arc;

use super::turn_slot::{NoteId, TurnSlot};
use crate::engine::claims::GrantList;

/// A unit that a worker has in hand, as it was when the batch was dispatched.
#[derive(Debug, Clone)]
pub(crate) struct UnitNote {
    pub(crate) id: u64,
    pub(crate) admitted_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) attempts: u32,
    pub(crate) parent: Option<u64>,
    pub(crate) held: GrantList,
}

/// Plain units with consecutive numbers that were admitted together.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u64,
    units: u64,
    admitted_ns: u64,
}

/// A batch that a worker has in hand.
pub(crate) struct BatchNote {
    /// The stage in which the batch was dispatched.
    stage: u16,
    /// The turn of the batch's worker, if the batch may go on to further stages.
    turn: Option<Arc<TurnSlot>>,
    since_ns: u64,
    /// The grants that the batch holds for its units.
    held: GrantList,
    plain: Vec<Range>,
    others: Vec<UnitNote>,
}

impl BatchNote {
    pub(crate) fn new(stage: u16, turn: Option<Arc<TurnSlot>>, held: GrantList, since_ns: u64) -> Self {
        BatchNote { stage, turn, since_ns, held, plain: Vec::new(), others: Vec::new() }
    }

    /// Notes a plain unit.
    pub(crate) fn add_plain(&mut self, id: u64, admitted_ns: u64) {
        match self.plain.last_mut().filter(|last| last.first + last.units == id && last.admitted_ns == admitted_ns) {
            Some(last) => last.units += 1,
            None => self.plain.push(Range { first: id, units: 1, admitted_ns }),
        }
    }

    pub(crate) fn add(&mut self, unit: UnitNote) {
        self.others.push(unit);
    }

    /// The stage that runs the batch.
    pub(crate) fn stage(&self) -> u16 {
        self.turn.as_ref().map_or(self.stage, |turn| turn.at())
    }

    /// The time at which the batch was dispatched.
    pub(crate) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The grants that the batch holds for its units.
    pub(crate) fn held(&self) -> &GrantList {
        &self.held
    }

    /// The number of units in the batch.
    pub(crate) fn len(&self) -> u64 {
        self.plain.iter().map(|range| range.units).sum::<u64>() + self.others.len() as u64
    }

    /// The units, each as it was when the batch was dispatched.
    pub(crate) fn units(&self) -> impl Iterator<Item = UnitNote> {
        let plain = self.plain.iter().flat_map(|range| {
            let unit = |id| UnitNote {
                id,
                admitted_ns: range.admitted_ns,
                bytes: 0,
                attempts: 0,
                parent: None,
                held: GrantList::new(),
            };
            (range.first..range.first + range.units).map(unit)
        });
        plain.chain(self.others.iter().cloned())
    }

    /// The unit with this number, if the batch has it.
    pub(crate) fn unit(&self, id: u64) -> Option<UnitNote> {
        let has = |range: &Range| (range.first..range.first + range.units).contains(&id);
        match self.plain.iter().any(has) || self.others.iter().any(|unit| unit.id == id) {
            true => self.units().find(|unit| unit.id == id),
            false => None,
        }
    }
}

/// The notes of batches in hand.
#[derive(Default)]
pub(crate) struct BatchNotes {
    notes: Vec<Option<BatchNote>>,
    free: Vec<NoteId>,
}

impl BatchNotes {
    pub(crate) fn note(&mut self, batch: BatchNote) -> NoteId {
        match self.free.pop() {
            Some(id) => {
                self.notes[id as usize] = Some(batch);
                id
            }
            None => {
                self.notes.push(Some(batch));
                (self.notes.len() - 1) as NoteId
            }
        }
    }

    pub(crate) fn forget(&mut self, note: NoteId) {
        self.notes[note as usize] = None;
        self.free.push(note);
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &BatchNote> {
        self.notes.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_knows_each_of_its_units_and_is_forgotten_with_its_batch() {
        let mut notes = BatchNotes::default();
        let mut batch = BatchNote::new(3, None, GrantList::new(), 9);
        [7, 8, 9, 20].into_iter().for_each(|id| batch.add_plain(id, 5));
        batch.add_plain(21, 6);
        assert_eq!((batch.plain.len(), batch.len(), batch.stage()), (3, 5, 3));
        assert_eq!(batch.units().map(|unit| unit.id).collect::<Vec<_>>(), [7, 8, 9, 20, 21]);
        assert!(batch.unit(8).is_some_and(|unit| unit.admitted_ns == 5) && batch.unit(10).is_none());
        let note = notes.note(batch);
        assert_eq!(notes.batches().count(), 1);
        notes.forget(note);
        assert_eq!(notes.batches().count(), 0);
        assert_eq!(notes.note(BatchNote::new(0, None, GrantList::new(), 0)), note, "numbers are used again");
    }
}
