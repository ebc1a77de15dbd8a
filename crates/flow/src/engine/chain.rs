//! Chains: a batch that goes through several stages on one worker without coming back to the scheduler.
//!
//! A worker serves the stage nearest the exit, so after a batch's stage it would mostly be given the same batch
//! in the next one: nobody else is nearer. Where that is certain enough it goes on at once, and the flow's
//! mutex is taken once for the whole chain. The next stage must be *open*: its units need nothing, it does not
//! block, its ceiling lets all workers in, and the batch is not larger than the stage's own batches. And the
//! units must hold nothing, and weigh no more than before. A chain lasts about [`CHAIN_NS`] at most; then the scheduler decides anew, so floors
//! and patience hold, and a unit in a queue is overtaken for no longer than that.
//!
//! A worker may also take several short batches of a stage in one *turn*. Those it has not begun are still the
//! stage's granted units, and if the turn is held up, they are taken back after a timer's tick. Those that are done
//! by then go on without waiting for it.
//!
//! Nothing is hidden by it: a [`Chain`] says where the worker is, and whoever looks at the flow, or watches over
//! it, brings the stages' counts up to date first.

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

/// Where a worker's turn is. It belongs to one worker; nobody else's data lie in its cache lines.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Chain {
    /// The stage that runs. Written by the worker without the flow's mutex; a hint for those who look.
    at: AtomicU16,
    /// One more than the stage whose counts have the worker and its units; 0: no turn. This and `units` are used under the mutex only.
    counted: AtomicU16,
    /// Units of the turn that count as running: of its first batch or, when that is settled, of the one in hand.
    units: AtomicU32,
    /// Whether they are of the one in hand, which its worker does not know.
    of_one_in_hand: AtomicBool,
    /// When the turn began; used under the mutex only.
    since_ns: AtomicU64,
    turn: Mutex<Turn>,
}

/// What else than the batch that runs is in a worker's hands.
#[derive(Default)]
struct Turn {
    /// Batches that the worker runs next unless somebody takes them back.
    pending: VecDeque<RunningBatch>,
    /// Those it has run, unless somebody has settled them.
    finished: Vec<Finished>,
    /// Units of the last one that was pending and is not any more.
    in_hand: usize,
}

/// A batch that was run, and what became of it; `None` if that is settled, and only its worker is to be counted.
pub(crate) type Finished = (RunningBatch, Option<Settlement>);

impl Turn {
    /// Takes out what is not begun, and what is to be settled. The turn's first batch stays as a count: its worker is busy with the one in
    /// hand.
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
    /// The worker's turn begins with a batch of so many units.
    pub(crate) fn begin(&self, stage: u16, units: usize, now: u64) {
        self.at.store(stage, Ordering::Relaxed);
        self.counted.store(stage + 1, Ordering::Relaxed);
        self.units.store(units as u32, Ordering::Relaxed);
        self.since_ns.store(now, Ordering::Relaxed);
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch to the turn.
    pub(crate) fn add(&self, batch: RunningBatch) {
        self.turn().pending.push_back(batch);
    }

    /// The turn's next batch after one that was run. If there is none, all that were run are added to `results`.
    pub(crate) fn next(&self, finished: Finished, results: &mut Vec<Finished>) -> Option<RunningBatch> {
        let mut turn = self.turn();
        let next = turn.pending.pop_front();
        if let Some(batch) = &next {
            turn.finished.push(finished);
            turn.in_hand = batch.units;
            // Together with its leaving the pending ones: see `follow_chains`.
            self.go(batch.stage);
        } else {
            results.append(&mut turn.finished);
            results.push(finished);
        }
        next
    }

    /// The batch goes on to this stage.
    pub(crate) fn go(&self, stage: u16) {
        self.at.store(stage, Ordering::Relaxed);
    }

    /// The stage whose counts have the worker, while it has a turn.
    fn counted(&self) -> Option<u16> {
        self.counted.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The worker's turn is over. Returns the stage whose counts have it, how many of its units, and whether they are of a batch
    /// that does not lead.
    pub(crate) fn end(&self) -> Option<(u16, usize, bool)> {
        let stage = self.counted();
        self.counted.store(0, Ordering::Relaxed);
        let units = self.units.swap(0, Ordering::Relaxed) as usize;
        let of_one_in_hand = self.of_one_in_hand.swap(false, Ordering::Relaxed);
        stage.map(|stage| (stage, units, of_one_in_hand))
    }
}

/// For each stage, the largest batch that may go on to it in a chain; 0: it is not open.
#[derive(Debug, Clone)]
pub(crate) struct Roads(Arc<[AtomicU32]>);

impl Roads {
    pub(crate) fn new(stages: usize) -> Self {
        Roads((0..stages).map(|_| AtomicU32::new(0)).collect())
    }

    /// Whether a batch of so many units may go on to `stage`.
    #[inline]
    pub(crate) fn is_open(&self, stage: u16, units: usize) -> bool {
        // Relaxed: a hint that publishes nothing.
        units <= self.0[usize::from(stage)].load(Ordering::Relaxed) as usize
    }

    fn set(&self, stage: u16, units: u32) {
        let road = &self.0[usize::from(stage)];
        // Other cores read it all the time.
        if road.load(Ordering::Relaxed) != units {
            road.store(units, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Opens or closes the road to a stage, after what it depends on has changed.
    pub(crate) fn update_road(&self, stage: u16) {
        let state = &self.stages[usize::from(stage)];
        let is_open = state.needs_nothing()
            && !state.blocking
            && state.batch.wait.is_zero()
            && state.workers.ceiling >= self.threads_most
            && state.stats.mean_ns > 0;
        let most = if is_open { state.batch_most_in_chain() } else { 0 };
        self.roads.set(stage, most as u32);
    }

    /// Brings up to date what depends on settings, after one has changed.
    pub(crate) fn follow_settings(&mut self) {
        self.size_batches();
        let floors: usize = self.stages.iter().filter(|stage| !stage.blocking).map(|stage| stage.workers.floor).sum();
        self.threads_most = self.settings.shared_workers + floors;
        (0..self.stages.len() as u16).for_each(|stage| self.update_road(stage));
    }

    /// Takes back what workers would have run next, from turns that lasted at `watched_ns`: others can run it. And what they have run goes on.
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
                    // It has waited long enough to fill.
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

    /// Brings the stages' counts of running batches up to date; what that allows is left to `flow_on`.
    pub(crate) fn follow_chains(&mut self) {
        for chain in self.chains.clone() {
            let turn = chain.turn();
            // While it has further batches of the first stage it will be back there, and nobody gets its place.
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
