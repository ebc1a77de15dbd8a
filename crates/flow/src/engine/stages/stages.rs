//! All stages of a flow: which queues may be granted, and which stage a worker serves next.
//!
//! A worker takes a granted batch of the stage *nearest the exit*. This choice finishes units, releases what they hold,
//! and keeps a unit's data on the core that touched it last. Two rules limit this preference:
//! - A stage below its **floor** of workers comes first. Workers up to the floor do not count as shared workers, so if
//!   all shared workers are busy in other stages, a further thread runs the stage.
//! - A stage whose granted batch has been passed over for [`PATIENCE_NS`] comes before all stages that have reached
//!   their floor. Of several such stages, the stage that has been passed over longest comes first. So no stage starves
//!   another of CPU time.
//!
//! A blocking stage has threads of its own, as many as its ceiling, and occupies no slot of a shared worker.

use std::collections::VecDeque;
use std::sync::Arc;

use super::open::OpenStages;
use super::stage::{StageSetup, StageState};
use crate::engine::pace::PATIENCE_NS;
use crate::engine::settings::Workers;
use crate::engine::units::column::Row;
use crate::engine::units::pocket::Spares;
use crate::engine::units::walk::{See, Walk};

pub(crate) struct Stages {
    list: Vec<StageState>,
    /// The stages by their distance to the exit, nearest first.
    order: Box<[u16]>,
    blocking: Arc<[u16]>,
    /// The stages that split units and do not block, nearest to the exit first.
    splitting: Box<[u16]>,
    /// At least one stage lets its batches wait to fill up.
    has_batch_waits: bool,
    /// The stages whose queues may now be granted.
    marked: Vec<u16>,
    /// The number of stages that lack a worker.
    lacking_workers: usize,
    open: OpenStages,
    /// The maximum number of threads that may run non-blocking stages.
    max_threads: usize,
}

/// The choice of a batch for a shared worker.
pub(crate) struct Choice {
    pub(crate) stage: Option<u16>,
    /// The stage is below its floor, so it occupies no slot of a shared worker.
    pub(crate) below_floor: bool,
    /// The longest time for which a granted batch has been passed over, if it exceeds [`PATIENCE_NS`]; otherwise
    /// `PATIENCE_NS`.
    pub(crate) passed_over_ns: u64,
}

impl Stages {
    pub(crate) fn new(setups: Vec<StageSetup>, order: Vec<u16>, workers: &[Workers]) -> Self {
        let stages = (0..).zip(setups).zip(workers);
        let list: Vec<_> = stages.map(|((number, setup), &workers)| StageState::new(setup, number, workers)).collect();
        let splits = |&stage: &u16| {
            let state = &list[usize::from(stage)];
            state.splits().is_some() && !state.is_blocking()
        };
        Stages {
            splitting: order.iter().copied().filter(splits).collect(),
            order: order.into(),
            blocking: (0..).zip(&list).filter(|(_, stage)| stage.is_blocking()).map(|(number, _)| number).collect(),
            has_batch_waits: list.iter().any(StageState::waits_for_batches),
            marked: Vec::new(),
            lacking_workers: 0,
            open: OpenStages::new(list.len()),
            max_threads: 1,
            list,
        }
    }

    #[inline]
    pub(crate) fn at(&self, stage: u16) -> &StageState {
        &self.list[usize::from(stage)]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, stage: u16) -> &mut StageState {
        &mut self.list[usize::from(stage)]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &StageState> {
        self.list.iter()
    }

    /// Passes to `see` the units in the queues and the granted units, stage by stage.
    pub(crate) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        self.list.iter().for_each(|stage| stage.walk(walk, see));
    }

    pub(crate) fn blocking(&self) -> &[u16] {
        &self.blocking
    }

    /// The number of stages that split units.
    pub(crate) fn splitting(&self) -> u64 {
        self.list.iter().filter(|stage| stage.splits().is_some()).count() as u64
    }

    /// The stages that a batch may go on to in a chain.
    pub(crate) fn open_stages(&self) -> OpenStages {
        self.open.clone()
    }

    /// Whether the age of a batch matters for its dispatch.
    #[inline]
    pub(crate) fn batches_may_wait(&self) -> bool {
        self.has_batch_waits
    }
}

// ---- queues to grant ----------------------------------------------------------------------------------

impl Stages {
    /// Puts a unit at the end of a stage's queue.
    pub(crate) fn enqueue(&mut self, row: Row, stage: u16, now: u64) {
        self.at_mut(stage).push(row, now);
        self.mark(stage);
    }

    /// Puts units that arrive together at the end of a stage's queue.
    #[inline]
    pub(crate) fn enqueue_all(&mut self, rows: VecDeque<Row>, plain: bool, stage: u16, spares: &mut Spares, now: u64) {
        if rows.is_empty() {
            spares.keep(rows);
        } else {
            self.at_mut(stage).push_all(rows, plain, spares, now);
            self.mark(stage);
        }
    }

    /// Marks the stage's queue, which may now be granted.
    #[inline]
    pub(crate) fn mark(&mut self, stage: u16) {
        if !std::mem::replace(&mut self.at_mut(stage).is_marked, true) {
            self.marked.push(stage);
        }
    }

    /// Takes a marked queue.
    #[inline]
    pub(crate) fn next_marked(&mut self) -> Option<u16> {
        let stage = self.marked.pop()?;
        self.at_mut(stage).is_marked = false;
        Some(stage)
    }

    /// The number of workers that run the stage now or could begin to run it. These are the workers in the stage, the
    /// free part of its floor, and the shared workers that no stage keeps busy.
    pub(crate) fn workers_for(&self, stage: u16, shared_workers: usize) -> usize {
        self.at(stage).workers_beside(self.idle_workers(shared_workers))
    }

    /// The number of shared workers that no stage keeps busy. A worker that pulls the source counts as idle, because it
    /// returns soon. So a flow in which no stage runs has seats in every stage.
    fn idle_workers(&self, shared_workers: usize) -> usize {
        shared_workers.saturating_sub(self.busy_beyond_floors())
    }

    /// The number of shared workers that stages keep busy. Workers up to a stage's floor do not count.
    pub(crate) fn busy_beyond_floors(&self) -> usize {
        self.list.iter().map(StageState::busy_beyond_floor).sum()
    }

    /// Notes that the stage lacks workers, unless `workers` reaches the stage's ceiling. `workers` is the number of
    /// workers that run the stage or could begin to run it.
    pub(crate) fn note_lack_of_workers(&mut self, stage: u16, workers: usize) {
        let state = &mut self.list[usize::from(stage)];
        if workers < state.workers().ceiling && !std::mem::replace(&mut state.lacks_worker, true) {
            self.lacking_workers += 1;
        }
    }

    /// Marks the queues of stages that lacked workers and now have seats. Returns whether any queue is marked.
    #[inline]
    pub(crate) fn seat_again(&mut self, shared_workers: usize) -> bool {
        if self.lacking_workers == 0 {
            return false;
        }
        // The number of idle workers is computed once for all stages, so several stages may be granted units for the
        // same idle worker. That worker then serves the stage that `choose` prefers.
        let idle = self.idle_workers(shared_workers);
        for stage in 0..self.list.len() as u16 {
            let state = self.at_mut(stage);
            if state.lacks_worker && state.has_seat(state.workers_beside(idle)) {
                state.lacks_worker = false;
                self.lacking_workers -= 1;
                self.mark(stage);
            }
        }
        !self.marked.is_empty()
    }
}

// ---- dispatch -----------------------------------------------------------------------------------------

impl Stages {
    /// Chooses the stage whose batch a free shared worker runs next. Without a `spare` worker, only a stage below its
    /// floor is eligible.
    pub(crate) fn choose(&self, spare: bool, now: u64) -> Choice {
        let mut nearest = None;
        let mut overdue = None;
        let mut passed_over_ns = PATIENCE_NS;
        for &stage in &self.order {
            let state = self.at(stage);
            if state.is_blocking() || !state.can_dispatch(now) {
                continue;
            }
            if state.busy() < state.workers().floor {
                return Choice { stage: Some(stage), below_floor: true, passed_over_ns };
            }
            if spare {
                nearest = nearest.or(Some(stage));
                let passed_over = now.saturating_sub(state.passed_over_since());
                if passed_over > passed_over_ns {
                    passed_over_ns = passed_over;
                    overdue = Some(stage);
                }
            }
        }
        Choice { stage: overdue.or(nearest), below_floor: false, passed_over_ns }
    }

    /// The number of units that could run once a worker is free and their needs are met.
    #[inline]
    pub(crate) fn could_run(&self) -> usize {
        self.list.iter().map(StageState::could_run).sum()
    }

    /// Whether the non-blocking stages have fewer batches than there are workers. Batches that still wait for a need
    /// count, too. A stage that splits is left out, because a unit to be split is work for one worker only.
    fn run_low(&self, workers: usize) -> bool {
        let stages = self.list.iter().filter(|stage| !stage.is_blocking() && stage.splits().is_none());
        stages.map(|stage| stage.could_run().div_ceil(stage.batch_target())).sum::<usize>() < workers
    }

    /// The stage in which a worker should split a unit before it runs work nearer the exit, because the workers could
    /// run out of work meanwhile. `has_room` says whether there is ample room for children of the `nth` stage that
    /// splits.
    pub(crate) fn choose_split(&self, workers: usize, has_room: impl Fn(u64) -> bool, now: u64) -> Option<u16> {
        let may_split = |&&stage: &&u16| {
            let state = self.at(stage);
            state.can_dispatch(now) && state.splits().is_some_and(&has_room)
        };
        self.splitting.iter().find(may_split).copied().filter(|_| self.run_low(workers))
    }

    /// Returns two amounts of work, each as the time that a single worker would need. The first covers everything that
    /// could run now in non-blocking stages, including the children that units to be split are expected to produce
    /// next. The second covers one more unit that goes through all these stages.
    pub(crate) fn backlog_ns(&self) -> (u64, u64) {
        let (mut backlog, mut children, mut in_flow, mut in_splits) = (0_u64, 0_u64, 0_u64, 0_u64);
        for stage in self.list.iter().filter(|stage| !stage.is_blocking()) {
            let (each, could_run) = (stage.unit_ns(), stage.could_run() as u64);
            backlog = backlog.saturating_add(each.saturating_mul(could_run));
            in_flow = in_flow.saturating_add(each);
            if stage.splits().is_some() {
                children = children.saturating_add(stage.next_brood().saturating_mul(could_run));
                in_splits = in_splits.saturating_add(each);
            }
        }
        let of_children = children.saturating_mul(in_flow - in_splits.min(in_flow));
        (backlog.saturating_add(of_children), in_flow)
    }

    /// Moves a worker and its units from the counts of one stage to the counts of another.
    pub(crate) fn move_work(&mut self, from: u16, to: u16, units: usize) {
        self.at_mut(from).end_work(units);
        self.at_mut(to).begin_work(units);
        self.mark(from);
    }

    /// The number of workers that run stages' code.
    pub(crate) fn busy(&self) -> usize {
        self.list.iter().map(StageState::busy).sum()
    }

    /// Whether no unit is granted or runs.
    pub(crate) fn nothing_is_granted_or_runs(&self) -> bool {
        !self.list.iter().any(StageState::has_granted_or_running)
    }

    /// Whether no unit runs or could run now.
    pub(crate) fn nothing_moves(&self, now: u64) -> bool {
        !self.list.iter().any(|stage| stage.moves(now))
    }

    /// Moves to `remaining` all units that no worker has taken.
    pub(crate) fn empty(&mut self, remaining: &mut Vec<Row>) {
        self.list.iter_mut().for_each(|stage| stage.empty(remaining));
    }
}

// ---- settings -----------------------------------------------------------------------------------------

impl Stages {
    /// Adopts new bounds of workers, and marks all queues, because they may now be granted.
    pub(crate) fn follow(&mut self, workers: &[Workers]) {
        for (stage, &workers) in (0..self.list.len() as u16).zip(workers) {
            self.at_mut(stage).set_workers(workers);
            self.mark(stage);
        }
    }

    /// Sizes batches, turns and chains after the settings or the source have changed. `by_needs` returns the number of
    /// batches of a stage that can run at once, as limited by the stage's needs.
    pub(crate) fn resize(
        &mut self,
        has_source: bool,
        in_flight: u64,
        shared_workers: usize,
        by_needs: impl Fn(&StageState) -> usize,
    ) {
        let in_flight = usize::try_from(in_flight).unwrap_or(usize::MAX);
        for stage in &mut self.list {
            let Workers { floor, ceiling, .. } = stage.workers();
            // Workers up to a stage's floor come in addition to the shared workers.
            let workers = if stage.is_blocking() { by_needs(stage) } else { shared_workers + floor };
            stage.size_batches(has_source, in_flight / ceiling.min(workers).max(1));
        }
        let floors = self.list.iter().filter(|stage| !stage.is_blocking()).map(|stage| stage.workers().floor);
        self.max_threads = shared_workers + floors.sum::<usize>();
        (0..self.list.len() as u16).for_each(|stage| self.update_open(stage));
    }

    /// Opens or closes a stage to chains, after its settings or measurements have changed.
    #[inline]
    pub(crate) fn update_open(&self, stage: u16) {
        let state = self.at(stage);
        self.open.set(stage, state.max_batch_in_chain(self.max_threads) as u32, state.unit_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claims::{GrantList, Wants};
    use crate::engine::timers::Timers;
    use crate::policy::Batch;

    /// Stages in sequence, the last stage nearest to the exit, with batches of two units.
    fn line(floors: &[usize]) -> Stages {
        line_with_splits(floors, &[])
    }

    /// Like [`line`], but the stages in `splits` split their units.
    fn line_with_splits(floors: &[usize], splits: &[usize]) -> Stages {
        let setup = |number: usize| StageSetup {
            name: number.to_string().into(),
            blocking: false,
            dynamic: false,
            wants: Wants::new(),
            permits: Wants::new(),
            places: [].into(),
            batch: Batch::of(2),
            splits: splits.contains(&number).then_some(1),
            groups: None,
            resources: 0,
        };
        let workers: Vec<_> =
            floors.iter().map(|&floor| Workers { floor, ceiling: 4, follows_shared: false }).collect();
        let order = (0..floors.len() as u16).rev().collect();
        Stages::new((0..floors.len()).map(setup).collect(), order, &workers)
    }

    /// Puts units into the stage's queue and grants them.
    fn grant(stages: &mut Stages, stage: u16, rows: std::ops::Range<u32>, now: u64) {
        let (mut spares, mut timers) = (Spares::default(), Timers::default());
        // SAFETY: each test makes one row of each number.
        let rows: VecDeque<Row> = rows.map(|number| unsafe { Row::new(number) }).collect();
        let units = rows.len();
        stages.enqueue_all(rows, true, stage, &mut spares, now);
        let mut granted = 0;
        while granted < units {
            granted += stages.at_mut(stage).fill_batch(units, &mut spares, &mut timers, now);
        }
    }

    #[test]
    fn the_stage_nearest_the_exit_is_served_first() {
        let mut stages = line(&[0, 0, 0]);
        assert!(stages.choose(true, 0).stage.is_none());
        grant(&mut stages, 0, 0..2, 0);
        grant(&mut stages, 1, 2..4, 0);
        assert_eq!(stages.choose(true, 1).stage, Some(1));
        assert_eq!(stages.choose(false, 1).stage, None, "no worker is spare");
    }

    #[test]
    fn a_stage_below_its_floor_is_served_without_a_spare_worker() {
        let mut stages = line(&[1, 0]);
        grant(&mut stages, 0, 0..4, 0);
        grant(&mut stages, 1, 4..6, 0);
        let choice = stages.choose(false, 1);
        assert!(choice.stage == Some(0) && choice.below_floor);
        stages.at_mut(0).take_batch(true, 1);
        assert_eq!(stages.choose(true, 1).stage, Some(1), "the stage has reached its floor");
    }

    #[test]
    fn a_batch_that_was_passed_over_for_long_is_served_first() {
        let mut stages = line(&[0, 0]);
        grant(&mut stages, 0, 0..2, 0);
        grant(&mut stages, 1, 2..4, PATIENCE_NS);
        assert_eq!(stages.choose(true, PATIENCE_NS).stage, Some(1));
        let choice = stages.choose(true, PATIENCE_NS + 1);
        assert!(choice.stage == Some(0) && choice.passed_over_ns == PATIENCE_NS + 1);
    }

    #[test]
    fn a_queue_is_marked_once_and_a_worker_that_ends_frees_its_seats() {
        let mut stages = line(&[0]);
        grant(&mut stages, 0, 0..2, 0);
        assert_eq!((stages.next_marked(), stages.next_marked()), (Some(0), None));
        let batch = stages.at_mut(0).take_batch(true, 1).unwrap();
        let workers = stages.workers_for(0, 1);
        assert!(!stages.at(0).has_seat(workers));
        stages.note_lack_of_workers(0, workers);
        assert!(!stages.seat_again(1), "the worker is still busy");
        stages.at_mut(0).end_work(batch.rows.len());
        assert!(stages.seat_again(1) && stages.next_marked() == Some(0));
        assert!(!stages.seat_again(1), "the lack was noted once");
    }

    #[test]
    fn a_unit_is_split_ahead_if_workers_run_low_and_there_is_room() {
        let mut stages = line_with_splits(&[0, 0], &[0]);
        grant(&mut stages, 0, 0..1, 0);
        grant(&mut stages, 1, 1..3, 0);
        assert_eq!(stages.choose(true, 1).stage, Some(1));
        assert_eq!(stages.choose_split(1, |_| true, 1), None, "there is a batch for each worker");
        assert_eq!(stages.choose_split(2, |nth| nth == 1, 1), Some(0));
        assert_eq!(stages.choose_split(2, |_| false, 1), None);
        stages.at_mut(0).take_batch(true, 1);
        assert_eq!(stages.choose_split(2, |_| true, 1), None, "the unit is being split");
    }

    #[test]
    fn a_unit_that_is_split_counts_with_its_next_children() {
        let mut stages = line_with_splits(&[0, 0], &[0]);
        stages.at_mut(0).count_service(7_000, 1);
        stages.at_mut(1).count_service(1_000, 1);
        stages.at_mut(0).size_brood(8, 8);
        let (split, child) = (stages.at(0).unit_ns(), stages.at(1).unit_ns());
        grant(&mut stages, 0, 0..1, 0);
        assert_eq!(stages.backlog_ns(), (split + 16 * child, split + child));
    }

    #[test]
    fn a_batch_that_its_worker_has_not_begun_comes_back_as_the_first() {
        let mut stages = line(&[0]);
        grant(&mut stages, 0, 0..4, 0);
        let _lead = stages.at_mut(0).take_batch(true, 1).unwrap();
        let next = stages.at_mut(0).take_batch(false, 1).unwrap();
        let first = next.rows[0].number();
        stages.at_mut(0).take_back(next.rows, next.plain, GrantList::new());
        assert_eq!(stages.at_mut(0).take_batch(true, 1).unwrap().rows[0].number(), first);
    }
}
