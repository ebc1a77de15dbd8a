//! Chains: a batch that goes through several stages on one worker without coming back to the scheduler.
//!
//! A worker serves the stage nearest the exit, so after a batch's stage it would mostly receive the same batch in the
//! next one, since no other batch is nearer. Where that is certain enough the worker goes on at once, and takes the
//! flow's mutex once for the whole chain. The next stage must be *open*: its units need nothing, it does not block, its
//! ceiling lets all workers in, and the batch is not larger than the stage's own batches. The units must hold nothing,
//! and weigh no more than before. A chain lasts about [`CHAIN_NS`] at most; then the scheduler decides afresh, so
//! floors and patience hold, and a unit in a queue is overtaken for no longer than that.
//!
//! A worker may also take several short batches of a stage in one *turn*. The batches it has not begun are still the
//! stage's granted units, and if the turn is held up, the timekeeper takes them back after a timer's tick. The batches
//! that are done by then go on without waiting for the turn.
//!
//! Chains hide nothing: a [`Chain`] says where the worker is, and a thread that takes a snapshot or watches over the
//! flow first brings the stages' counts up to date.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dispatch::RunningBatch;
use super::settle::Settlement;
use super::state::{GrantedBatch, State};

/// A turn or a pull that has taken this long is held up: it was meant to take a twentieth of that, or less.
pub(crate) const TURN_LASTS_NS: u64 = 2_000_000;

/// A chain older than this ends with its present stage.
pub(crate) const CHAIN_NS: u64 = 4_000_000;

/// The position of a worker's turn. A chain belongs to one worker, and its cache lines hold nothing else.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Chain {
    /// The stage that runs. The worker writes it without the flow's mutex, so it is a hint to other threads.
    at: AtomicU16,
    /// One more than the stage whose counts include the worker and its units; 0: no turn. This field and `units` are
    /// used under the mutex only.
    counted: AtomicU16,
    /// Units of the turn that count as running: those of its first batch or, when that is settled, of the batch in
    /// hand.
    units: AtomicU32,
    /// Whether `units` are those of the batch in hand, although its worker has not been told.
    of_one_in_hand: AtomicBool,
    /// The beginning of the turn; used under the mutex only.
    since_ns: AtomicU64,
    turn: Mutex<BatchGroup>,
}

/// The batches in a worker's hands other than the one that runs.
#[derive(Default)]
struct BatchGroup {
    /// Batches that the worker runs next unless the timekeeper takes them back.
    pending: VecDeque<RunningBatch>,
    /// Batches that the worker has run, unless the timekeeper has settled them.
    finished: Vec<Finished>,
    /// The number of units in the batch that left `pending` last.
    in_hand: usize,
}

/// A batch that was run, with its settlement; `None` if that is settled, and only the batch's worker is still to be
/// uncounted.
pub(crate) type Finished = (RunningBatch, Option<Settlement>);

impl BatchGroup {
    /// Takes out the batches that have not begun, and those that await settlement. The turn's first batch stays as a
    /// count, because its worker is busy with the batch in hand.
    fn take_back(&mut self) -> (VecDeque<RunningBatch>, Vec<(RunningBatch, Settlement)>) {
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

impl Chain {
    /// Begins the worker's turn with a batch of this many units.
    pub(crate) fn begin(&self, stage: u16, units: usize, now: u64) {
        self.at.store(stage, Ordering::Relaxed);
        self.counted.store(stage + 1, Ordering::Relaxed);
        self.units.store(units as u32, Ordering::Relaxed);
        self.since_ns.store(now, Ordering::Relaxed);
    }

    fn turn(&self) -> MutexGuard<'_, BatchGroup> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch to the turn.
    pub(crate) fn add(&self, batch: RunningBatch) {
        self.turn().pending.push_back(batch);
    }

    /// Returns the turn's next batch after one that was run. If there is none, adds all batches that were run to
    /// `results`.
    pub(crate) fn next(&self, finished: Finished, results: &mut Vec<Finished>) -> Option<RunningBatch> {
        let mut turn = self.turn();
        let next = turn.pending.pop_front();
        if let Some(batch) = &next {
            turn.finished.push(finished);
            turn.in_hand = batch.units;
            // The turn's lock makes this one step with the removal from `pending`: see `follow_chains`.
            self.go(batch.stage);
        } else {
            results.append(&mut turn.finished);
            results.push(finished);
        }
        next
    }

    /// Notes that the batch goes on to this stage.
    pub(crate) fn go(&self, stage: u16) {
        self.at.store(stage, Ordering::Relaxed);
    }

    /// The stage whose counts include the worker, while it has a turn.
    fn counted(&self) -> Option<u16> {
        self.counted.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Ends the worker's turn. Returns the stage whose counts include it, the number of its units there, and whether
    /// they belong to a batch that does not lead.
    pub(crate) fn end(&self) -> Option<(u16, usize, bool)> {
        let stage = self.counted();
        self.counted.store(0, Ordering::Relaxed);
        let units = self.units.swap(0, Ordering::Relaxed) as usize;
        let of_one_in_hand = self.of_one_in_hand.swap(false, Ordering::Relaxed);
        stage.map(|stage| (stage, units, of_one_in_hand))
    }
}

/// For each stage, the size of the largest batch that may go on to it in a chain; 0: the stage is not open.
#[derive(Debug, Clone)]
pub(crate) struct OpenStages(Arc<[AtomicU32]>);

impl OpenStages {
    pub(crate) fn new(stages: usize) -> Self {
        OpenStages((0..stages).map(|_| AtomicU32::new(0)).collect())
    }

    /// Whether a batch of this many units may go on to `stage`.
    #[inline]
    pub(crate) fn is_open(&self, stage: u16, units: usize) -> bool {
        // Relaxed: a hint that publishes nothing.
        units <= self.0[usize::from(stage)].load(Ordering::Relaxed) as usize
    }

    fn set(&self, stage: u16, units: u32) {
        let entry = &self.0[usize::from(stage)];
        // Other cores read this word all the time, so an equal value is not written again.
        if entry.load(Ordering::Relaxed) != units {
            entry.store(units, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Opens or closes a stage to chains, after its settings or measurements have changed.
    pub(crate) fn update_open_stage(&self, stage: u16) {
        let state = &self.stages[usize::from(stage)];
        let is_open = state.needs_nothing()
            && !state.blocking
            && state.batch.wait.is_zero()
            && state.workers.ceiling >= self.max_threads
            && state.stats.mean_ns > 0;
        let most = if is_open { state.max_batch_in_chain() } else { 0 };
        self.open_stages.set(stage, most as u32);
    }

    /// Brings everything up to date that depends on settings.
    pub(crate) fn follow_settings(&mut self) {
        self.size_batches();
        let floors: usize = self.stages.iter().filter(|stage| !stage.blocking).map(|stage| stage.workers.floor).sum();
        self.max_threads = self.settings.shared_workers + floors;
        (0..self.stages.len() as u16).for_each(|stage| self.update_open_stage(stage));
    }

    /// Takes back the batches that workers would have run next, from turns that had lasted too long at `watched_ns`, so
    /// that other workers can run them. Settles the batches that those turns have finished.
    pub(crate) fn take_turns_back(&mut self, watched_ns: u64, now: u64) {
        for chain in self.chains.clone() {
            let lasts = watched_ns.saturating_sub(chain.since_ns.load(Ordering::Relaxed)) > TURN_LASTS_NS;
            let Some(counted) = chain.counted().filter(|_| lasts) else { continue };
            let (in_hand, (pending, finished)) = {
                let mut turn = chain.turn();
                (turn.in_hand, turn.take_back())
            };
            for RunningBatch { stage, rows, plain, permits, .. } in pending.into_iter().rev() {
                self.stage(stage).in_turns -= rows.len();
                let batch = GrantedBatch {
                    rows,
                    plain,
                    arrivals: Default::default(),
                    permits,
                    held: Default::default(),
                    // The batch has waited long enough to fill.
                    opened_ns: 0,
                };
                self.stage(stage).batches.push_front(batch);
            }
            for (mut batch, mut settlement) in finished {
                self.settle_units(&mut batch, &mut settlement, now);
                if batch.leads {
                    let settled = chain.units.swap(in_hand as u32, Ordering::Relaxed) as usize;
                    chain.of_one_in_hand.store(true, Ordering::Relaxed);
                    let state = self.stage(counted);
                    state.running = state.running + in_hand - settled;
                    let state = self.stage(batch.stage);
                    state.granted -= in_hand;
                    state.in_turns -= in_hand;
                } else {
                    self.end_run(&batch);
                }
            }
        }
    }

    /// Brings the stages' counts of running batches up to date; `flow_on` then grants what that makes possible.
    pub(crate) fn follow_chains(&mut self) {
        for chain in self.chains.clone() {
            let turn = chain.turn();
            // A worker with further batches of the first stage will be back there, so no other worker gets its place.
            let stays = !turn.pending.is_empty();
            let at = chain.at.load(Ordering::Relaxed);
            let Some(counted) = chain.counted().filter(|&counted| counted != at && !stays) else { continue };
            let units = chain.units.load(Ordering::Relaxed) as usize;
            let stage = &mut self.stages[usize::from(counted)];
            stage.busy -= 1;
            stage.running -= units;
            let stage = &mut self.stages[usize::from(at)];
            stage.busy += 1;
            stage.running += units;
            chain.counted.store(at + 1, Ordering::Relaxed);
            self.mark_pump(counted);
        }
    }
}
