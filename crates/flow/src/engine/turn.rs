//! A worker's turn: how the worker takes work, runs it, and returns the results.

use std::sync::Arc;

use super::chain::{Chain, run_chain};
use super::claims::NO_STAGE;
use super::crew::post::Post;
use super::crew::turn_slot::{DispatchedBatch, Finished, TurnSlot};
use super::dispatch::Job;
use super::intake::source::{PullEnd, PullOrder};
use super::intake::staging::Staging;
use super::onward::take_children_on;
use super::pace::{TURN_BATCHES, TURN_NS};
use super::run::settlement::{Settlement, retire_early};
use super::run::witness::Track;
use super::state::State;
#[cfg(feature = "fibers")]
use super::threads::fibers::note_unit;
use super::threads::shared::{Locked, Shared};
use super::units::column::Row;
use super::units::pocket::Pocket;

/// The work of one turn.
pub(super) enum Task {
    /// Pull the source.
    Pull(PullOrder),
    /// Run a batch, and the further batches of its turn.
    Batch(DispatchedBatch),
}

/// The state of one worker, between and during its turns.
pub(super) struct Hands<'a> {
    shared: &'a Arc<Shared>,
    post: Post,
    /// The batches that have run in this turn, with their settlements.
    batches: Vec<Finished>,
    /// `Some` if the source was pulled; contains the end of the source, if it has ended.
    pulled: Option<Option<PullEnd>>,
    /// The rows that a pull fills.
    rows: Vec<Row>,
    /// The staging to which a pull pushes the filled rows. Only shared workers pull, so no other worker has a staging.
    /// This saves memory, because a flow may have a hundred thousand fibers.
    staging: Option<Arc<Staging>>,
    pocket: Pocket,
    /// Settlements for reuse.
    settlements: Vec<Settlement>,
    /// The worker's turn as other threads see it; workers of blocking stages have none.
    turn: Option<Arc<TurnSlot>>,
    /// The worker's handle to the flow's witness, if there is one.
    track: Option<Box<dyn Track>>,
    /// The time at which the worker last read the clock.
    now: u64,
}

impl<'a> Hands<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, post: Post) -> Self {
        Hands {
            shared,
            post,
            batches: Vec::new(),
            pulled: None,
            rows: Vec::new(),
            staging: (post == Post::Shared).then(|| Arc::new(Staging::new())),
            pocket: Pocket::default(),
            settlements: Vec::new(),
            turn: (post == Post::Shared).then(Arc::default),
            track: shared.track(post),
            now: shared.now(),
        }
    }

    /// The time at which the worker last read the clock: after its last run, or when it woke.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn read_clock(&mut self) {
        self.now = self.shared.now();
    }

    /// Reports that the worker goes to sleep.
    pub(super) fn rest(&mut self) {
        if let Some(track) = &mut self.track {
            track.rests();
        }
    }

    pub(super) fn turn(&self) -> Option<&Arc<TurnSlot>> {
        self.turn.as_ref()
    }

    /// Locks the state and lends it the worker's pocket.
    #[inline]
    pub(super) fn lock(&mut self) -> Locked<'a> {
        let mut state = self.shared.lock();
        state.swap_pocket(&mut self.pocket);
        state
    }

    /// Takes the worker's pocket out of the state, before it is unlocked.
    #[inline]
    pub(super) fn take_pocket(&mut self, state: &mut State) {
        state.swap_pocket(&mut self.pocket);
    }

    /// Lends the pocket to a state that was locked without it.
    pub(super) fn lend_pocket(&mut self, state: &mut State) {
        state.swap_pocket(&mut self.pocket);
    }

    /// Ends the worker, and returns its rows to the flow.
    pub(super) fn end(mut self) {
        self.shared.lock().units.empty_pocket(&mut self.pocket);
    }

    /// Takes the next work: a pull, a batch, or several batches of a stage if they are short. Several batches share the
    /// cost of a turn, so the worker locks the state less often.
    #[inline]
    pub(super) fn dispatch(&mut self, state: &mut State) -> Option<Task> {
        let now = self.now;
        let stage = match state.choose(self.post, now)? {
            Job::Batch(stage) => stage,
            Job::Pull { in_place } => {
                let staging = self.staging.as_ref()?;
                return state.begin_pull(&mut self.rows, staging, in_place, now).map(Task::Pull);
            }
        };
        let lead = state.dispatch(stage, self.turn.as_ref(), true, now)?;
        if let Some(turn) = lead.turn.as_ref().filter(|_| lead.soon && lead.plain) {
            let (mut turn_ns, mut units) = (state.stages.at(stage).takes_ns(lead.units), lead.units);
            for _ in 1..TURN_BATCHES {
                if turn_ns >= TURN_NS || !state.stages.at(stage).has_more(units, now) {
                    break;
                }
                let Some(batch) = state.dispatch(stage, Some(turn), false, now) else { break };
                turn_ns = turn_ns.saturating_add(state.stages.at(stage).takes_ns(batch.units));
                units += batch.units;
                debug_assert!(batch.turn.is_some(), "a further batch holds no permits, or the turn would end with it");
                turn.add(batch);
            }
        }
        state.grant_behind(stage, now);
        Some(Task::Batch(lead))
    }

    /// Does the work of a turn, without the mutex.
    #[inline]
    pub(super) fn run(&mut self, task: Task) {
        match task {
            Task::Pull(order) => {
                if let Some(track) = &mut self.track {
                    track.begins(self.now);
                }
                let (first_id, room, began_ns) = (order.first.id(), self.rows.len(), self.now);
                let staging = self.staging.as_ref().expect("a worker that pulls has a staging");
                self.pulled = Some(self.shared.source().pull(order, &mut self.rows, staging));
                self.read_clock();
                if let Some(track) = &mut self.track {
                    track.pulled(first_id, (room - self.rows.len()) as u64, began_ns, self.now);
                }
            }
            Task::Batch(lead) => self.run_batches(lead),
        }
    }

    /// Runs the batches of a turn.
    fn run_batches(&mut self, lead: DispatchedBatch) {
        let mut now = self.shared.now();
        if let Some(track) = &mut self.track {
            track.begins(now);
            now = self.shared.now();
        }
        let mut next = Some(lead);
        while let Some(mut batch) = next {
            let mut settlement = self.settlements.pop().unwrap_or_default();
            #[cfg(feature = "fibers")]
            if self.shared.are_fibers(self.post) {
                note_unit(batch.rows.front().map(|row| self.shared.site().stamps().id(row)));
            }
            run_through(self.shared, &mut batch, &mut settlement, self.track.as_deref_mut(), now);
            now = settlement.ended_ns;
            if settlement.to == NO_STAGE && settlement.plain && settlement.exceptions.is_empty() {
                retire_early(&mut batch.rows, &mut settlement, self.shared.site().stamps(), &mut self.pocket);
            }
            let turn = self.turn.as_ref().filter(|_| batch.turn.is_some());
            let finished = (batch, Some(settlement));
            next = match turn {
                Some(turn) => turn.next(finished, &mut self.batches),
                None => {
                    self.batches.push(finished);
                    None
                }
            };
        }
        self.now = now;
    }

    /// Brings back the results of a turn. Returns the end of the source, if it has ended.
    #[inline]
    pub(super) fn settle(&mut self, state: &mut State) -> Option<PullEnd> {
        let now = self.now;
        if let Some(end) = self.pulled.take() {
            state.end_pull(&mut self.rows, end.is_none(), now);
            return end;
        }
        for (batch, settlement) in self.batches.drain(..) {
            match settlement {
                Some(mut settlement) => {
                    state.settle(batch, &mut settlement, now);
                    self.settlements.push(settlement);
                }
                // The timekeeper has already settled the batch, but the worker still counts as busy with it.
                None => state.end_run(&batch),
            }
        }
        state.units.share_surplus();
        None
    }
}

/// Runs a batch through its stage and the open stages that follow. The batch's children go on, too.
fn run_through(
    shared: &Shared,
    batch: &mut DispatchedBatch,
    settlement: &mut Settlement,
    mut track: Option<&mut (dyn Track + 'static)>,
    began_ns: u64,
) {
    let &mut DispatchedBatch { stage, plain, time_each, .. } = batch;
    let turn = batch.turn.as_deref();
    let rows = batch.rows.make_contiguous();
    let chain = Chain { stage, plain, time_each, began_ns };
    run_chain(shared, chain, rows, batch.brood.as_deref_mut(), turn, settlement, track.as_deref_mut());
    if let (Some(brood), Some(turn)) = (batch.brood.as_deref_mut(), turn) {
        take_children_on(shared, rows, brood, settlement, turn, track);
    }
}
