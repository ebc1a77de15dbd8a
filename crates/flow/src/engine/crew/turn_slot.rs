//! A worker's turn: the batches that it runs without returning to the scheduler, and the stage that it has reached.
//!
//! # Chains
//! A *chain* is a batch that goes through several stages on one worker. A worker serves the stage nearest the exit. So
//! a worker that returned a batch to the scheduler after one stage would usually receive the same batch for the next
//! stage. If this is likely, the worker keeps the batch and goes on, so it takes the flow's mutex only once for the
//! whole chain.
//!
//! The next stage must be *open*: its units need nothing and have been timed, and it neither blocks nor splits its
//! units. Its batches must not wait to fill, and its ceiling must admit all workers. The batch must not be larger than
//! the size that the flow sets for the stage's batches. If the flow sets no size, the batch may take about half of
//! [`CHAIN_NS`](crate::engine::pace::CHAIN_NS) in the stage. The batch's units must hold nothing, and must not weigh
//! more than the bytes already charged to them. A chain lasts about `CHAIN_NS` at most. Then the scheduler decides
//! again, and respects floors and patience. So a chain passes over the units in queues for a limited time only.
//!
//! # Several batches
//! A worker may also take several short batches of a stage in one turn. The batches that it has not begun still count
//! as granted units of the stage. If the turn takes longer than [`TURN_LASTS_NS`](crate::engine::pace::TURN_LASTS_NS),
//! the timekeeper takes these batches back at the end of its watch. The timekeeper also settles the batches that are
//! done by then, so they do not wait for the end of the turn.
//!
//! # What other threads see
//! A worker's [`TurnSlot`] says which stage the worker has reached. A thread that takes a snapshot or watches the flow
//! first updates the stages' counts from the slots. So the counts show each turn in the stage that its worker has
//! reached.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::claims::GrantList;
use crate::engine::pace::TURN_LASTS_NS;
use crate::engine::run::brood::Brood;
use crate::engine::run::settlement::Settlement;
use crate::engine::units::column::Row;

/// The number of a batch's note (see `notes`), valid until the batch is settled.
pub(crate) type NoteId = u32;

/// A batch that a worker has taken: it waits in the worker's turn, runs, or was run and awaits settlement.
pub(crate) struct DispatchedBatch {
    pub(crate) stage: u16,
    pub(crate) rows: VecDeque<Row>,
    pub(crate) units: usize,
    /// All its units are plain (see `Record`).
    pub(crate) plain: bool,
    pub(crate) permits: GrantList,
    /// The room for the children of its units, if the stage splits them.
    pub(crate) brood: Option<Box<Brood>>,
    /// The turn of its worker, if the batch may go on to further stages or share the turn with further batches.
    pub(crate) turn: Option<Arc<TurnSlot>>,
    /// The batch is the first of its worker's turn, and counts as one busy worker.
    pub(crate) leads: bool,
    /// The note of its units, if the batch is expected to run long.
    pub(crate) note: Option<NoteId>,
    /// The batch will end soon, and its worker will then admit the units at the gate.
    pub(crate) soon: bool,
    /// The worker times each unit. If unset, it times the batch as a whole, because the units are so short that reading
    /// the clock for each of them would cost too much.
    pub(crate) time_each: bool,
}

impl DispatchedBatch {
    /// A copy of the batch without its rows, permits and note. It is used only to count the batch.
    fn count(&self) -> Self {
        let (rows, permits) = (VecDeque::new(), GrantList::new());
        DispatchedBatch { rows, permits, brood: None, note: None, turn: self.turn.clone(), ..*self }
    }
}

/// The turns of one worker, one after the other, as other threads see them: the stage that the worker has reached, and
/// the batches that it has not begun. The slot's cache lines contain nothing else.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct TurnSlot {
    /// The stage that the worker runs. The worker writes this field without the flow's mutex, so other threads take it
    /// as a hint.
    at: AtomicU16,
    /// The number of the stage whose counts include the worker and its units, plus one; 0 if the worker has no turn.
    /// This field and `units` are used under the mutex only.
    counted: AtomicU16,
    /// The number of the turn's units that count as running. These are the units of the first batch or, once the first
    /// batch is settled, of the batch in hand.
    units: AtomicU32,
    /// Whether `units` counts the batch in hand; used under the mutex only.
    of_one_in_hand: AtomicBool,
    /// The beginning of the turn; used under the mutex only.
    since_ns: AtomicU64,
    batches: Mutex<Batches>,
}

/// The batches of a worker's turn, except the batch that runs.
#[derive(Default)]
struct Batches {
    /// Batches that the worker runs next, unless the timekeeper takes them back.
    pending: VecDeque<DispatchedBatch>,
    /// Batches that the worker has run and that the timekeeper has not settled.
    finished: Vec<Finished>,
    /// The number of units in the batch that left `pending` last.
    units_in_hand: usize,
}

/// A batch that was run, with its settlement. The settlement is `None` if the batch is already settled; such a batch is
/// stored only because its worker still counts as busy.
pub(crate) type Finished = (DispatchedBatch, Option<Settlement>);

impl Batches {
    /// Takes out the batches that have not begun, and the batches that await settlement. The turn's first batch stays
    /// as a count, because the worker is still busy with the batch in hand.
    fn take_back(&mut self) -> (VecDeque<DispatchedBatch>, Vec<(DispatchedBatch, Settlement)>) {
        let mut unsettled = Vec::new();
        for (batch, settlement) in std::mem::take(&mut self.finished) {
            if batch.leads {
                self.finished.push((batch.count(), None));
            }
            unsettled.extend(settlement.map(|settlement| (batch, settlement)));
        }
        (std::mem::take(&mut self.pending), unsettled)
    }
}

impl TurnSlot {
    /// Begins the worker's turn with a batch of this many units.
    pub(crate) fn begin(&self, stage: u16, units: usize, now: u64) {
        self.at.store(stage, Ordering::Relaxed);
        self.counted.store(stage + 1, Ordering::Relaxed);
        self.units.store(units as u32, Ordering::Relaxed);
        self.since_ns.store(now, Ordering::Relaxed);
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch to the turn.
    pub(crate) fn add(&self, batch: DispatchedBatch) {
        self.batches().pending.push_back(batch);
    }

    /// Stores a batch that was run, and returns the turn's next batch. If there is no next batch, moves all batches
    /// that were run to `results`.
    pub(crate) fn next(&self, finished: Finished, results: &mut Vec<Finished>) -> Option<DispatchedBatch> {
        let mut batches = self.batches();
        let next = batches.pending.pop_front();
        if let Some(batch) = &next {
            batches.finished.push(finished);
            batches.units_in_hand = batch.units;
            // Under the lock, this store and the removal from `pending` are one step for `follow`.
            self.go(batch.stage);
        } else {
            results.append(&mut batches.finished);
            results.push(finished);
        }
        next
    }

    /// The stage that the worker runs; the value may be slightly out of date.
    pub(super) fn at(&self) -> u16 {
        self.at.load(Ordering::Relaxed)
    }

    /// Notes that the batch goes on to this stage.
    pub(crate) fn go(&self, stage: u16) {
        self.at.store(stage, Ordering::Relaxed);
    }

    /// The stage whose counts include the worker; `None` if the worker has no turn.
    pub(crate) fn counted(&self) -> Option<u16> {
        self.counted.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Ends the worker's turn. Returns the stage whose counts include the worker, and the number of units that count as
    /// running there. The flag says whether these units belong to a batch that does not lead.
    pub(crate) fn end(&self) -> Option<(u16, usize, bool)> {
        let stage = self.counted();
        self.counted.store(0, Ordering::Relaxed);
        let units = self.units.swap(0, Ordering::Relaxed) as usize;
        let of_one_in_hand = self.of_one_in_hand.swap(false, Ordering::Relaxed);
        stage.map(|stage| (stage, units, of_one_in_hand))
    }

    /// If the turn had lasted too long at `watched_ns`, removes from it the batches that have not begun and the batches
    /// that await settlement.
    pub(super) fn take_back(&self, watched_ns: u64) -> Option<TakenBack> {
        let lasts = watched_ns.saturating_sub(self.since_ns.load(Ordering::Relaxed)) > TURN_LASTS_NS;
        let counted = self.counted().filter(|_| lasts)?;
        let mut batches = self.batches();
        let (units_in_hand, (pending, finished)) = (batches.units_in_hand, batches.take_back());
        Some(TakenBack { counted, units_in_hand, pending, finished })
    }

    /// Counts the batch in hand as running, because the turn's first batch is settled. Returns the number of units that
    /// counted as running before.
    pub(crate) fn count_one_in_hand(&self, units: usize) -> usize {
        self.of_one_in_hand.store(true, Ordering::Relaxed);
        self.units.swap(units as u32, Ordering::Relaxed) as usize
    }

    /// Updates the stage whose counts include the worker. If the stage has changed, returns the former stage, the
    /// current stage and the number of units.
    pub(super) fn follow(&self) -> Option<Move> {
        let batches = self.batches();
        // A worker with further batches of the stage in which the turn began will return to that stage, so it still
        // counts there.
        let stays = !batches.pending.is_empty();
        let to = self.at.load(Ordering::Relaxed);
        let from = self.counted().filter(|&counted| counted != to && !stays)?;
        self.counted.store(to + 1, Ordering::Relaxed);
        Some(Move { from, to, units: self.units.load(Ordering::Relaxed) as usize })
    }
}

/// The batches that were taken from a turn.
pub(crate) struct TakenBack {
    /// The stage whose counts include the turn's worker.
    pub(crate) counted: u16,
    /// The number of units in the batch that the worker runs.
    pub(crate) units_in_hand: usize,
    /// Batches that have not begun, in the order in which the worker would have run them.
    pub(crate) pending: VecDeque<DispatchedBatch>,
    /// Batches that were run and await settlement.
    pub(crate) finished: Vec<(DispatchedBatch, Settlement)>,
}

/// The move of a worker and its units from one stage to another.
pub(crate) struct Move {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) units: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(stage: u16, rows: std::ops::Range<u32>, leads: bool) -> DispatchedBatch {
        // SAFETY: each test makes one row of each number.
        let rows: VecDeque<Row> = rows.map(|number| unsafe { Row::new(number) }).collect();
        let (units, permits) = (rows.len(), GrantList::new());
        DispatchedBatch {
            stage,
            rows,
            units,
            plain: true,
            permits,
            brood: None,
            turn: None,
            leads,
            note: None,
            soon: true,
            time_each: false,
        }
    }

    #[test]
    fn a_worker_is_followed_to_the_stage_that_it_has_reached() {
        let turn = TurnSlot::default();
        assert!(turn.follow().is_none(), "it has no turn");
        turn.begin(1, 8, 0);
        assert!(turn.follow().is_none());
        turn.go(2);
        let moved = turn.follow().unwrap();
        assert_eq!((moved.from, moved.to, moved.units), (1, 2, 8));
        assert!(turn.follow().is_none());
        assert_eq!(turn.end(), Some((2, 8, false)));
    }

    #[test]
    fn a_turn_that_takes_too_long_loses_its_batches_except_the_one_in_hand() {
        let turn = TurnSlot::default();
        turn.begin(1, 2, 0);
        turn.add(batch(1, 2..4, false));
        turn.add(batch(1, 4..7, false));
        let mut results = Vec::new();
        let in_hand = turn.next((batch(1, 0..2, true), Some(Settlement::default())), &mut results).unwrap();
        assert!(in_hand.units == 2 && results.is_empty());
        assert!(turn.take_back(TURN_LASTS_NS).is_none(), "it has not lasted too long yet");
        let taken = turn.take_back(TURN_LASTS_NS + 1).unwrap();
        assert_eq!((taken.units_in_hand, taken.pending.len(), taken.finished.len()), (2, 1, 1));
        assert_eq!(turn.count_one_in_hand(taken.units_in_hand), 2);
        assert!(turn.next((in_hand, Some(Settlement::default())), &mut results).is_none());
        assert!(
            results[0].1.is_none() && results[1].1.is_some(),
            "the first batch is settled, and stays only as a count"
        );
        assert_eq!(turn.end(), Some((1, 2, true)));
    }
}
