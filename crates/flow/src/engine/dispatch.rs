//! Dispatch: the stage that a free worker serves next.
//!
//! A worker takes a granted batch of the stage *nearest the exit*: that finishes units, frees what they hold, and keeps
//! a unit's data on the core that touched it last. Two rules temper it:
//! - a stage below its **floor** of workers comes first, and its floor stands beside the shared workers: if they are
//!   all busy elsewhere, a further thread runs it;
//! - a stage whose granted batch has been passed over for [`PATIENCE_NS`] comes before all stages that are at their
//!   floor, the one that has waited longest first. So no stage starves another of CPU time.
//!
//! A blocking stage has threads of its own, as many as its ceiling, and takes no shared worker's place.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chain::Chain;
use super::column::Row;
use super::gate::SOON_NS;
use super::state::{GrantedBatch, StageState, State, TimerAction, Waiter, nanos};
use super::unit::Grants;
use crate::snapshot::Phase;

/// The time for which a granted batch may be passed over in favour of stages nearer the exit.
pub(crate) const PATIENCE_NS: u64 = 50_000_000;

/// A backlog worth less than this does not pay for a wake-up, which itself takes a good part of that time.
const WAKE_NS: u64 = 40_000;

/// The time for which the scheduler relies on workers that are expected soon, while others could take their place.
const WATCH_NS: u64 = 1_000_000;

/// That time while all shared workers are busy; also the time for which the source waits for one of them before an
/// additional thread pulls it.
const STALL_NS: u64 = 4_000_000;

/// The engine's own time for a unit in a stage, roughly.
const OWN_NS: u64 = 15;

/// The batches that a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Post {
    /// The batches of all non-blocking stages.
    Shared,
    /// The batches of one blocking stage.
    Stage(u16),
}

/// The next job of a free thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Run the first granted batch of this stage.
    Batch(u16),
    /// Pull the source, in a shared worker's place (`seated`) or beside the shared workers.
    Pull { seated: bool },
}

/// A batch in the hands of a worker.
pub(crate) struct RunningBatch {
    pub(crate) stage: u16,
    pub(crate) rows: VecDeque<Row>,
    pub(crate) units: usize,
    /// All its units are plain (see `Unit`).
    pub(crate) plain: bool,
    pub(crate) permits: Grants,
    /// The position of the batch, if it may run through several stages.
    pub(crate) chain: Option<Arc<Chain>>,
    /// The batch is the first of its worker's turn, and stands for one busy worker.
    pub(crate) leads: bool,
    /// The batch will end soon, and its worker will then come by the gate.
    pub(crate) soon: bool,
    /// The worker times each unit; otherwise it times the whole batch, because its units are too short for a clock read
    /// each.
    pub(crate) time_each: bool,
}

impl RunningBatch {
    /// The batch without its units.
    pub(crate) fn count(&self) -> Self {
        RunningBatch { rows: VecDeque::new(), permits: Grants::new(), chain: self.chain.clone(), ..*self }
    }
}

impl StageState {
    /// Whether a worker may take this stage's first batch now.
    fn can_dispatch(&self, now: u64) -> bool {
        self.busy < self.workers.ceiling && self.batches.front().is_some_and(|batch| self.is_ripe(batch, now))
    }

    pub(crate) fn is_ripe(&self, batch: &GrantedBatch, now: u64) -> bool {
        !batch.rows.is_empty()
            && (self.batch.wait.is_zero()
                || batch.rows.len() >= self.batch_target()
                || now >= batch.opened_ns.saturating_add(nanos(self.batch.wait)))
    }
}

impl State {
    /// Chooses the next job of a free thread of this post.
    pub(crate) fn choose(&self, post: Post, now: u64) -> Option<Job> {
        if self.phase == Phase::Abandoned || self.phase == Phase::Done {
            return None;
        }
        match post {
            Post::Stage(stage) => self.stages[usize::from(stage)].can_dispatch(now).then_some(Job::Batch(stage)),
            Post::Shared => self.choose_shared(now),
        }
    }

    fn choose_shared(&self, now: u64) -> Option<Job> {
        // Workers up to a stage's floor stand beside the shared ones.
        let beyond_floors = self.stages.iter().filter(|stage| !stage.blocking);
        let beyond_floors: usize = beyond_floors.map(|stage| stage.busy.saturating_sub(stage.workers.floor)).sum();
        let spare = beyond_floors + self.seated_pulls() < self.settings.shared_workers;
        let mut nearest = None;
        let mut overdue = None;
        let mut longest = PATIENCE_NS;
        for &stage in &self.order {
            let state = &self.stages[usize::from(stage)];
            if state.blocking || !state.can_dispatch(now) {
                continue;
            }
            if state.busy < state.workers.floor {
                return Some(Job::Batch(stage));
            }
            if spare {
                nearest = nearest.or(Some(stage));
                // A stage's turn starts again with each dispatch, so what counts is how long it has been passed over,
                // not how old its units are.
                let since = state.batches[0].opened_ns.max(state.last_dispatch_ns);
                let passed_over = now.saturating_sub(since);
                if passed_over > longest {
                    longest = passed_over;
                    overdue = Some(stage);
                }
            }
        }
        let batch = overdue.or(nearest).map(Job::Batch);
        if self.source.is_none() {
            return batch;
        }
        let pull = Job::Pull { seated: spare };
        // Without a spare seat the source is pulled only if no worker has come by for a while: a source that waits for
        // busy workers would starve the stages that have threads of their own.
        if !spare {
            return (self.stalled && self.wants_more() && self.can_pull()).then_some(pull);
        }
        let is_pressing = self.runs_low() || self.not_pulled_for(now) > longest;
        if batch.is_none() || is_pressing { self.can_pull().then_some(pull).or(batch) } else { batch }
    }

    /// Whether a worker could run out of work before the next pull.
    fn runs_low(&self) -> bool {
        let batch = self.stages[usize::from(self.entry)].batch_target();
        self.could_run() < self.settings.shared_workers * batch
    }

    /// Hands the stage's first batch to a worker that is free (`leads`), or to one that already has batches of this
    /// stage and runs this one with them; the latter batch stays among the granted ones until it is settled.
    pub(crate) fn dispatch(
        &mut self,
        stage: u16,
        chain: Option<&Arc<Chain>>,
        leads: bool,
        now: u64,
    ) -> Option<RunningBatch> {
        let blocking = self.stage(stage).blocking;
        let state = self.stage(stage);
        let GrantedBatch { rows, plain, arrivals, mut permits, held, .. } = state.batches.pop_front()?;
        let units = rows.len();
        permits.extend(held);
        state.last_dispatch_ns = now;
        /// Below this mean, a clock read for each unit would be a good part of what it measures.
        const WORTH_TIMING_NS: u64 = 2_000;
        let stats = &mut self.stages[usize::from(stage)].stats;
        for (queued_ns, units) in arrivals {
            stats.waited_in_queue(now.saturating_sub(queued_ns), units.into());
        }
        let time_each = units == 1 || stats.mean_ns == 0 || stats.mean_ns > WORTH_TIMING_NS;
        let soon = !blocking && stats.mean_ns > 0 && stats.slow_ns.saturating_mul(units as u64) <= SOON_NS;
        // A chain's batch must hold nothing: it settles only at its end, and its permits would be held through stages
        // that do not need them.
        let chain = chain.filter(|_| permits.is_empty()).cloned();
        if leads {
            let state = self.stage(stage);
            state.granted -= units;
            state.running += units;
            state.busy += 1;
            self.busy_shared += usize::from(!blocking);
            self.busy_soon += usize::from(soon);
            if let Some(chain) = &chain {
                chain.begin(stage, units, now);
            }
        } else {
            self.stage(stage).in_turns += units;
        }
        if soon {
            self.watch(now);
        }
        Some(RunningBatch { stage, rows, units, plain, permits, chain, leads, soon, time_each })
    }

    /// Whether a worker with this many units of the stage in its hands may take another of its batches.
    pub(crate) fn has_more(&self, stage: u16, units: usize, now: u64) -> bool {
        let stage = &self.stages[usize::from(stage)];
        let room = stage.turn_units().saturating_sub(units);
        stage.batches.front().is_some_and(|batch| {
            batch.plain && batch.held.is_empty() && batch.rows.len() <= room && stage.is_ripe(batch, now)
        })
    }

    /// The time that a batch takes, roughly.
    pub(crate) fn takes_ns(&self, batch: &RunningBatch) -> u64 {
        let each = self.stages[usize::from(batch.stage)].stats.mean_ns.saturating_add(OWN_NS);
        each.saturating_mul(batch.rows.len() as u64)
    }

    /// Sets a timer at which the timekeeper looks at the work left to workers that are expected soon. Without it, one
    /// unit that takes much longer than those before it would hold up work that sleeping workers could do.
    pub(crate) fn watch(&mut self, now: u64) {
        let all_busy = self.busy_shared >= self.settings.shared_workers;
        self.watch_within(if all_busy { STALL_NS } else { WATCH_NS }, now);
    }

    /// Brings a watch that is set forward: from now on a free worker could take a busy one's place.
    pub(crate) fn watch_sooner(&mut self, now: u64) {
        if self.watch_at.is_some_and(|at| at > now + WATCH_NS) {
            self.watch_at = None;
            self.watch_within(WATCH_NS, now);
        }
    }

    /// Sets a timer at which the timekeeper checks that workers come by the source.
    pub(crate) fn watch_source(&mut self, now: u64) {
        self.watch_within(if self.is_pulling() { WATCH_NS } else { STALL_NS }, now);
    }

    fn watch_within(&mut self, pause_ns: u64, now: u64) {
        if self.watch_at.is_none() {
            let at = now + pause_ns;
            self.watch_at = Some(at);
            self.turns_watched = self.turns;
            self.set_timer(at, TimerAction::Watch);
        }
    }

    /// Whether a further shared thread would find work, and enough of it to be worth a wake-up: a small backlog is left
    /// to the worker that will be back soon.
    pub(crate) fn wants_shared_thread(&self, now: u64) -> bool {
        self.choose(Post::Shared, now).is_some()
            && (self.threads.alert > 0 || self.busy_soon == 0 || self.watched || self.backlog_ns() > WAKE_NS)
    }

    /// The time that one worker would need for all that could run now.
    fn backlog_ns(&self) -> u64 {
        let (mut backlog, mut in_flow) = (0_u64, 0_u64);
        for stage in self.stages.iter().filter(|stage| !stage.blocking) {
            let each = stage.stats.mean_ns.saturating_add(OWN_NS);
            let units = (stage.waiting.len() + stage.granted) as u64;
            backlog = backlog.saturating_add(each.saturating_mul(units));
            in_flow = in_flow.saturating_add(each);
        }
        backlog.saturating_add(self.source_backlog_ns(in_flow))
    }

    /// Takes all units that no worker has out of the queues, when a flow is abandoned.
    pub(crate) fn empty_queues(&mut self) -> Vec<Row> {
        let mut left = std::mem::take(&mut self.left);
        for stage in &mut self.stages {
            left.extend(stage.waiting.drain());
            let granted = left.len();
            left.extend(stage.batches.drain(..).flat_map(|batch| batch.rows));
            // Workers settle the units in their hands themselves.
            stage.granted -= left.len() - granted;
            stage.parked.fill(0);
            stage.parked_units = 0;
        }
        for instance in &mut self.instances {
            let line: VecDeque<Waiter> = std::mem::take(&mut instance.waiters);
            left.extend(line.into_iter().filter_map(|waiter| match waiter {
                Waiter::Unit { row, .. } => Some(row),
                Waiter::Stage(_) => None,
            }));
        }
        for resource in &mut self.resources {
            left.extend(resource.key_waiters.drain(..).map(|waiter| waiter.row));
        }
        left.extend(self.memory_waiters.drain(..).map(|waiter| waiter.row));
        left.extend(self.timers.drain().filter_map(|std::cmp::Reverse(timer)| match timer.action {
            TimerAction::Enqueue(row, _) => Some(row),
            TimerAction::Batch(_)
            | TimerAction::Memory
            | TimerAction::RetrySpawn
            | TimerAction::Rate(_)
            | TimerAction::Keys(_)
            | TimerAction::Watch => None,
        }));
        (self.delayed, self.supply_timers) = (0, 0);
        left
    }
}
