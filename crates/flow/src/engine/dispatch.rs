//! Dispatch: the choice of the next job for a free worker.

use std::collections::VecDeque;
use std::sync::Arc;

use super::claims::GrantList;
use super::crew::notes::{BatchNote, UnitNote};
use super::crew::post::Post;
use super::crew::turn_slot::{DispatchedBatch, NoteId, TakenBack, TurnSlot};
use super::pace::PATIENCE_NS;
use super::stages::batch::TakenBatch;
use super::state::State;
use super::units::column::Row;

/// The next job of a free thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Run the first granted batch of this stage.
    Batch(u16),
    /// Pull the source, in the slot of a shared worker (`in_place`) or in addition to the shared workers.
    Pull { in_place: bool },
}

impl State {
    /// Chooses the next job of a free thread of this post.
    #[inline]
    pub(super) fn choose(&self, post: Post, now: u64) -> Option<Job> {
        if !self.life.dispatches() {
            return None;
        }
        match post {
            Post::Stage(stage) => self.stages.at(stage).can_dispatch(now).then_some(Job::Batch(stage)),
            Post::Shared => self.choose_shared(now),
        }
    }

    fn choose_shared(&self, now: u64) -> Option<Job> {
        let taken = self.stages.busy_beyond_floors() + self.intake.pulls_in_place();
        let spare = taken < self.crew.shared_workers();
        let choice = self.stages.choose(spare, now);
        // Splitting adds new work, as a pull does. So a stage that splits is served before stages nearer the exit if
        // the workers could run out of work meanwhile, unless another stage has priority.
        let has_priority = !spare || choice.below_floor || choice.passed_over_ns > PATIENCE_NS;
        let has_room = |nth| self.intake.budget().is_half_free(nth);
        let ahead = || self.stages.choose_split(self.crew.shared_workers(), has_room, now);
        let stage = if has_priority { choice.stage } else { ahead().or(choice.stage) };
        let batch = stage.map(Job::Batch);
        let Some(source) = self.intake.source().filter(|_| !choice.below_floor) else { return batch };
        let pull = Job::Pull { in_place: spare };
        // If no slot is free, an additional thread pulls the source, but only after a while in which no worker came to
        // pull it. If the source waited for busy workers, it would starve the stages that have threads of their own.
        if !spare {
            return (self.crew.is_stalled() && self.wants_more() && self.can_pull()).then_some(pull);
        }
        let is_pressing = self.runs_low() || source.not_pulled_for(now) > choice.passed_over_ns;
        if batch.is_none() || is_pressing { self.can_pull().then_some(pull).or(batch) } else { batch }
    }

    /// Whether the workers could run out of work before the next pull: all stages together have fewer units than one
    /// batch of the entry stage for each worker.
    fn runs_low(&self) -> bool {
        let batch = self.stages.at(self.intake.entry()).batch_target();
        self.stages.could_run() < self.crew.shared_workers() * batch
    }

    /// The time that one worker would need for all units that could run now. If the source can be pulled, this includes
    /// the units that the source is assumed to have.
    pub(super) fn backlog_ns(&self) -> u64 {
        let (backlog, in_flow) = self.stages.backlog_ns();
        let source = self.intake.source().filter(|_| self.can_pull());
        backlog.saturating_add(source.map_or(0, |source| source.backlog_ns(in_flow)))
    }

    /// Gives the stage's first batch to a worker. `leads` says that the worker is free. Otherwise, the worker already
    /// has batches of this stage and runs one more in the same turn; such a batch counts as granted until it is
    /// settled.
    pub(super) fn dispatch(
        &mut self,
        stage: u16,
        turn: Option<&Arc<TurnSlot>>,
        leads: bool,
        now: u64,
    ) -> Option<DispatchedBatch> {
        let state = self.stages.at_mut(stage);
        let TakenBatch { mut rows, plain, permits, soon, time_each } = state.take_batch(leads, now)?;
        let units = rows.len();
        let splits = state.splits();
        // A batch that may go on in a chain must hold nothing. It is settled only at the chain's end, so it would hold
        // its permits through stages that do not need them.
        let turn = turn.filter(|_| permits.is_empty()).cloned();
        if leads {
            if !state.is_blocking() {
                self.crew.begin(soon);
            }
            if let Some(turn) = &turn {
                turn.begin(stage, units, now);
            }
        }
        if soon {
            self.crew.watch(&mut self.timers, now);
        }
        let note = (!soon).then(|| self.note_units(stage, &rows, plain, &permits, turn.clone(), now));
        let brood = splits.map(|nth| Box::new(self.take_brood(stage, nth, &mut rows, now)));
        Some(DispatchedBatch { stage, rows, units, plain, permits, brood, turn, leads, note, soon, time_each })
    }

    /// Notes the units of a batch that is expected to run long, before a worker takes over their rows.
    fn note_units(
        &mut self,
        stage: u16,
        rows: &VecDeque<Row>,
        plain: bool,
        permits: &GrantList,
        turn: Option<Arc<TurnSlot>>,
        now: u64,
    ) -> NoteId {
        let mut note = BatchNote::new(stage, turn, permits.clone(), now);
        for row in rows {
            let stamp = self.units.stamp(row);
            let (id, admitted_ns) = (stamp.id(), stamp.admitted_ns());
            if plain {
                note.add_plain(id, admitted_ns);
                continue;
            }
            let record = self.units.look(row);
            note.add(UnitNote {
                id,
                admitted_ns,
                bytes: record.bytes(),
                attempts: record.attempts(),
                parent: record.parent().map(|parent| parent.id),
                held: record.held().iter().copied().collect(),
            });
        }
        self.crew.notes_mut().note(note)
    }

    /// Grants further units of the stage's queue after a worker has taken batches. A turn may take more units than its
    /// worker has seats. The surplus units take no seats (see `free_seats`), so other units of the queue may now be
    /// granted. This worker grants them at once, instead of leaving them to another thread.
    #[inline]
    pub(super) fn grant_behind(&mut self, stage: u16, now: u64) {
        if self.stages.at(stage).has_waiting() {
            self.stages.mark(stage);
            self.grant_all(now);
        }
    }

    /// For each turn that had lasted too long at `watched_ns`, takes back the batches that have not begun, so that
    /// other workers can run them. Also settles the batches that these turns have finished.
    pub(super) fn take_turns_back(&mut self, watched_ns: u64, now: u64) {
        for worker in 0..self.crew.turns() {
            let Some((turn, taken)) = self.crew.take_turn_back(worker, watched_ns) else { continue };
            let TakenBack { counted, units_in_hand, pending, finished } = taken;
            // Each batch goes to the front, so the last batch is put back first.
            for DispatchedBatch { stage, rows, plain, permits, note, .. } in pending.into_iter().rev() {
                note.into_iter().for_each(|note| self.crew.notes_mut().forget(note));
                self.stages.at_mut(stage).take_back(rows, plain, permits);
            }
            for (mut batch, mut settlement) in finished {
                self.settle_units(&mut batch, &mut settlement, now);
                if batch.leads {
                    // The worker stays busy. From now on, the units that it has in hand count as running.
                    let settled = turn.count_one_in_hand(units_in_hand);
                    self.stages.at_mut(counted).exchange_running(settled, units_in_hand);
                    self.stages.at_mut(batch.stage).end_in_turn(units_in_hand);
                } else {
                    self.end_run(&batch);
                }
            }
        }
    }

    /// Updates the stages' counts of running batches, because turns have moved on to other stages. A later `grant_all`
    /// then grants units to the seats that this frees.
    pub(super) fn follow_turns(&mut self) {
        for moved in self.crew.moves() {
            self.stages.move_work(moved.from, moved.to, moved.units);
        }
    }
}
