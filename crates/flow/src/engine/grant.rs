//! Grants: a unit gets all it needs at once, before a worker is spent on it.
//!
//! # How a queue is granted
//! `pump` looks at a stage's queue from its front as long as the stage has seats. A stage is granted at most as many
//! units as its workers and the idle ones could run next; further units hold nothing. Several stages may be granted for
//! the same idle worker. A unit whose needs are all free takes them and joins a granted batch. A unit that lacks
//! something *parks* in the first-come-first-served line of the first thing it lacks, holding nothing; the queue goes
//! on with the next unit. A busy key thus holds up only the units that need it.
//!
//! When a unit gives something back, `serve` wakes the head of that line, which tries for *everything* again: it is
//! granted, or it parks at the end of the line of the next thing it lacks, and `serve` tries the next unit in line. A
//! newcomer never takes what a unit in line waits for.
//!
//! # Why every wait ends
//! Units with several needs could miss each other's moments: `a` is free when `b` is not, and the other way round. A
//! unit that still lacked something after [`MAX_BOUNCES`] wake-ups acquires its needs *in order* at the next one: one
//! after the other along the flow's resource order (a topological order of "holds a, asks for b", which the build
//! proved to exist), keeping what it has, and waiting its turn in each line. Hence a unit waits for at most
//! `MAX_BOUNCES + 1 + needs` passes through lines that are first come, first served.
//!
//! # Why nothing deadlocks
//! A unit that holds one thing and waits for another waits for something later in the resource order: a unit holds
//! things across stages only along that order (checked at build time), and inside one grant it holds nothing while it
//! waits, or, in order, only earlier things. So along any chain of "waits for a holder of" the order rises, and the
//! last holder is not waiting for a resource. It is running, waiting for a worker or for a moment, and will give back
//! what it holds. The place of a key among a resource's keys belongs to that resource: a waiting unit keeps alive no
//! key but the one in whose line it stands (see `key`). Bytes come last in the order and have their own rule (see
//! `memory`).

use super::column::Row;
use super::queue::Taken;
use super::state::{GrantedBatch, State, TimerAction, Waiter, nanos};
use super::unit::{Grants, InstanceId, Want, Wants};

/// The number of wake-ups that may leave a unit without something it needs, before it acquires its needs in order.
pub(crate) const MAX_BOUNCES: u8 = 8;

/// The reason why a unit could not be granted.
enum Lack {
    /// One of the unit's needs is not free.
    Need(Want),
    /// The stage's next batch lacks a permit.
    Permit(InstanceId),
    /// Keys for the unit's needs cannot be made, or other units wait to have theirs made.
    Keys { resource: u16 },
}

/// The line that a unit was just taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The unit is a newcomer and comes from no line.
    No,
    /// The unit stood in the line of the instance.
    At(InstanceId),
    /// The unit stood in the line for keys of the resource.
    ForKeys(u16),
}

impl Woken {
    fn at_instance(self) -> Option<InstanceId> {
        if let Woken::At(instance) = self { Some(instance) } else { None }
    }
}

impl State {
    /// Grants units from the front of a stage's queue while there are seats.
    pub(crate) fn pump(&mut self, stage: u16, now: u64) {
        // A grant is a promise that a worker comes soon. Tokens granted further ahead than the seats would lie idle in
        // the queue while units of another stage lack them.
        let s = usize::from(stage);
        if self.stages[s].needs_nothing() {
            return self.pump_free(stage, now);
        }
        let workers = self.workers_for(stage);
        while !self.stages[s].waiting.is_empty() {
            if !self.stages[s].has_seat(workers) {
                return self.note_lack_of_workers(stage, workers);
            }
            if self.opens_batch(stage) {
                if self.stages[s].awaits_permit {
                    return;
                }
                if let Some(instance) = self.lacking_permit(stage, None, now) {
                    return self.await_permit(stage, instance, now);
                }
            }
            if self.grant_many(stage, workers, now) {
                continue;
            }
            if let Some(row) = self.pop_waiting(stage) {
                self.try_unit(row, stage, Woken::No, now);
            }
        }
    }

    /// Grants as many units of the first run as there are tokens for, if all units have the same needs for their run
    /// only. Their batch holds the grants, so no unit's record is touched.
    fn grant_many(&mut self, stage: u16, workers: usize, now: u64) -> bool {
        let s = usize::from(stage);
        if !self.stages[s].alike {
            return false;
        }
        let most = self.stages[s].wants.iter().map(|want| self.units_for(want.instance, want.amount)).min();
        let most = most.unwrap_or(0).min(self.stages[s].free_seats(workers));
        if most == 0 {
            return false;
        }
        if self.opens_batch(stage) {
            let permits = self.take_permits(stage, now);
            self.open_batch(stage, now, permits);
        }
        let batch = self.open_batch(stage, now, Grants::new());
        let state = &mut self.stages[s];
        let room = state.batch_target().saturating_sub(state.batches[batch].rows.len()).max(1);
        let rows = &mut state.batches[batch].rows;
        let taken = state.waiting.take_run(rows, most.min(room), &mut self.pocket.spares);
        state.batches[batch].note_arrival(&taken);
        state.granted += taken.units;
        for want in self.stages[s].wants.clone() {
            let together = Want { amount: want.amount * taken.units as u64, ..want };
            let held = self.take(together.grant(stage), now);
            self.stages[s].batches[batch].held.extend(held);
        }
        true
    }

    /// Grants units of a stage that needs nothing.
    fn pump_free(&mut self, stage: u16, now: u64) {
        while !self.stage(stage).waiting.is_empty() {
            // Its units hold nothing, so they may wait for a worker as granted units.
            let ceiling = self.stage(stage).workers.ceiling;
            let seats = self.stage(stage).free_seats(ceiling);
            if seats == 0 {
                return;
            }
            let batch = self.open_batch(stage, now, Grants::new());
            let state = &mut self.stages[usize::from(stage)];
            let target = state.batch_target();
            let batch = &mut state.batches[batch];
            let most = seats.min(target.saturating_sub(batch.rows.len()).max(1));
            let taken = state.waiting.take_run(&mut batch.rows, most, &mut self.pocket.spares);
            batch.note_arrival(&taken);
            state.granted += taken.units;
        }
    }

    /// The number of workers that run the stage now or could begin to: those in it, the rest of its floor, and the
    /// shared workers that no stage keeps busy.
    pub(crate) fn workers_for(&self, stage: u16) -> usize {
        self.stages[usize::from(stage)].workers_beside(self.idle_shared_workers())
    }

    /// The number of shared workers that no stage keeps busy. A worker that pulls the source counts as one of them,
    /// since it is back in a moment; a flow in which no stage runs thus has seats everywhere.
    fn idle_shared_workers(&self) -> usize {
        let shared = self.stages.iter().filter(|stage| !stage.blocking);
        let beyond_floors: usize = shared.map(|stage| stage.busy.saturating_sub(stage.workers.floor)).sum();
        self.settings.shared_workers.saturating_sub(beyond_floors)
    }

    /// Notes that the stage lacks workers, if other stages keep busy those that its ceiling allows.
    fn note_lack_of_workers(&mut self, stage: u16, workers: usize) {
        let state = self.stage(stage);
        if workers < state.workers.ceiling && !state.lacks_worker {
            state.lacks_worker = true;
            self.lacking_workers += 1;
        }
    }

    /// Marks the queues of stages that lacked a worker and have seats again. Returns whether any queue is marked.
    pub(crate) fn seat_again(&mut self) -> bool {
        if self.lacking_workers == 0 {
            return false;
        }
        // The idle workers are counted once for all stages: each may be granted for the same idle worker, which then
        // serves the stage that `choose` prefers.
        let idle = self.idle_shared_workers();
        for stage in 0..self.stages.len() as u16 {
            let state = &self.stages[usize::from(stage)];
            if state.lacks_worker && state.has_seat(state.workers_beside(idle)) {
                self.stage(stage).lacks_worker = false;
                self.lacking_workers -= 1;
                self.mark_pump(stage);
            }
        }
        !self.to_pump.is_empty()
    }

    /// Takes the first unit of the stage's queue.
    pub(crate) fn pop_waiting(&mut self, stage: u16) -> Option<Row> {
        let (mut row, queued_ns) = self.stages[usize::from(stage)].waiting.pop_front(&mut self.pocket.spares)?;
        self.units.unit(&mut row).queued_ns = queued_ns;
        Some(row)
    }

    /// Puts a unit back at the front of the stage's queue, with the time of its arrival.
    pub(crate) fn push_front_waiting(&mut self, mut row: Row, stage: u16) {
        let queued_ns = self.units.unit(&mut row).queued_ns;
        self.stages[usize::from(stage)].waiting.push_front(queued_ns, row, &mut self.pocket.spares);
    }

    /// Grants the unit, or parks it.
    pub(crate) fn try_unit(&mut self, mut row: Row, stage: u16, woken: Woken, now: u64) {
        if self.units.unit(&mut row).needs.as_ref().is_some_and(|needs| needs.in_order) {
            return self.acquire_in_order(row, stage, woken, now);
        }
        let lack = match self.all_at_once(&mut row, stage, woken, now) {
            Ok(()) => return self.join_batch(row, stage, now),
            Err(lack) => lack,
        };
        // A newcomer has missed no moment yet, so only a unit that was woken counts the bounce.
        if woken != Woken::No && self.has_bounced(&mut row) {
            if let Lack::Need(want) = lack {
                self.forget(want.instance, now);
            }
            self.begin_in_order(&mut row, stage);
            return self.acquire_in_order(row, stage, woken, now);
        }
        match lack {
            Lack::Need(want) => self.park(row, stage, want, now),
            Lack::Keys { resource } => self.park_for_keys(row, stage, resource, now),
            Lack::Permit(instance) => {
                self.push_front_waiting(row, stage);
                if !self.stage(stage).awaits_permit {
                    self.await_permit(stage, instance, now);
                }
            }
        }
    }

    /// Counts a wake-up after which the unit still lacks something. Returns whether that was one too many.
    pub(crate) fn has_bounced(&mut self, row: &mut Row) -> bool {
        let needs = self.units.unit(row).needs();
        needs.bounces = needs.bounces.saturating_add(1);
        needs.bounces > MAX_BOUNCES
    }

    /// Takes all that the unit needs, with a permit if the unit opens a batch; or nothing. A [`Lack::Need`] keeps its
    /// key alive for the unit that parks on it.
    fn all_at_once(&mut self, row: &mut Row, stage: u16, woken: Woken, now: u64) -> Result<(), Lack> {
        // Everything is checked before anything is taken. The mutex is held throughout, so no check can be stale by
        // then, and there is nothing to roll back except the users of keys.
        let woken_at = woken.at_instance();
        let wants = self.look_up(row, stage, woken, now)?;
        if let Some(&lacking) = wants.iter().find(|want| !self.is_free(want.instance, want.amount, woken_at, now)) {
            self.forget_all(wants.iter().filter(|want| want.instance != lacking.instance), now);
            return Err(Lack::Need(lacking));
        }
        let opens = self.opens_batch(stage);
        if opens && let Some(instance) = self.lacking_permit(stage, woken_at, now) {
            self.forget_all(wants.iter(), now);
            return Err(Lack::Permit(instance));
        }
        let held: Grants = wants.iter().filter_map(|want| self.take(want.grant(stage), now)).collect();
        if let Some(needs) = &mut self.units.unit(row).needs {
            needs.bounces = 0;
        }
        if !held.is_empty() {
            self.units.unit(row).needs().held.extend(held);
        }
        if opens {
            let permits = self.take_permits(stage, now);
            self.open_batch(stage, now, permits);
        }
        Ok(())
    }

    /// The unit's needs in this stage, with keys looked up, made and kept alive. Makes all keys or none.
    fn look_up(&mut self, row: &mut Row, stage: u16, woken: Woken, now: u64) -> Result<Wants, Lack> {
        let mut wants = self.stages[usize::from(stage)].wants.clone();
        if !self.stages[usize::from(stage)].dynamic {
            return Ok(wants);
        }
        // The needs are taken out for the look-up, so that the state may change meanwhile.
        let asks = std::mem::take(&mut self.units.unit(row).needs().asks);
        let lacking = self.lacking_keys(&asks, woken, now);
        if lacking.is_none() {
            for ask in &asks {
                let instance = self.instance_of(ask.resource, ask.key.as_deref());
                match wants.iter_mut().find(|want| want.instance == instance) {
                    Some(want) => want.amount = want.amount.saturating_add(ask.amount),
                    None => {
                        self.keep_alive(instance);
                        wants.push(ask.want(instance));
                    }
                }
            }
        }
        self.units.unit(row).needs().asks = asks;
        match lacking {
            None => Ok(wants),
            Some(resource) => Err(Lack::Keys { resource }),
        }
    }

    // ---- batches --------------------------------------------------------------------------------------

    /// Whether the next unit granted in this stage must take the permits of a new batch.
    pub(crate) fn opens_batch(&self, stage: u16) -> bool {
        let state = &self.stages[usize::from(stage)];
        !state.permits.is_empty() && state.batches.back().is_none_or(|batch| batch.rows.len() >= state.batch_target())
    }

    /// Returns the batch to join: the last one if it has room, or a new one.
    pub(crate) fn open_batch(&mut self, stage: u16, now: u64, permits: Grants) -> usize {
        let state = &self.stages[usize::from(stage)];
        let target = state.batch_target();
        match state.batches.back() {
            Some(batch) if batch.rows.len() < target && permits.is_empty() => state.batches.len() - 1,
            _ => self.new_batch(stage, now, permits),
        }
    }

    pub(crate) fn new_batch(&mut self, stage: u16, now: u64, permits: Grants) -> usize {
        let rows = self.pocket.spares.take();
        let state = &mut self.stages[usize::from(stage)];
        state.batches.push_back(GrantedBatch {
            rows,
            plain: true,
            arrivals: Default::default(),
            permits,
            held: Grants::new(),
            opened_ns: now,
        });
        let last = state.batches.len() - 1;
        self.watch_batches(stage, now);
        last
    }

    /// Sets a timer for the moment at which the stage's first batch that may still wait has waited long enough. A stage
    /// has at most one such timer, however many batches fill up before it fires.
    pub(crate) fn watch_batches(&mut self, stage: u16, now: u64) {
        let state = &mut self.stages[usize::from(stage)];
        if state.batch.wait.is_zero() || state.batch_timer_set {
            return;
        }
        let wait = nanos(state.batch.wait);
        let ends = state.batches.iter().map(|batch| batch.opened_ns.saturating_add(wait)).find(|&at| at > now);
        if let Some(at) = ends {
            state.batch_timer_set = true;
            self.set_timer(at, TimerAction::Batch(stage));
        }
    }

    pub(crate) fn join_batch(&mut self, mut row: Row, stage: u16, now: u64) {
        let batch = self.open_batch(stage, now, Grants::new());
        let queued_ns = self.units.unit(&mut row).queued_ns;
        let state = self.stage(stage);
        state.batches[batch].note_arrival(&Taken { units: 1, queued_ns, plain: false });
        state.batches[batch].rows.push_back(row);
        state.granted += 1;
    }

    pub(crate) fn lacking_permit(&mut self, stage: u16, woken_at: Option<InstanceId>, now: u64) -> Option<InstanceId> {
        let permits = self.stages[usize::from(stage)].permits.clone();
        permits.iter().find(|p| !self.is_free(p.instance, p.amount, woken_at, now)).map(|p| p.instance)
    }

    fn take_permits(&mut self, stage: u16, now: u64) -> Grants {
        let permits = self.stages[usize::from(stage)].permits.clone();
        permits.iter().filter_map(|permit| self.take(permit.grant(stage), now)).collect()
    }

    pub(crate) fn await_permit(&mut self, stage: u16, instance: InstanceId, now: u64) {
        self.stage(stage).awaits_permit = true;
        self.instances[instance as usize].waiters.push_back(Waiter::Stage(stage));
        self.set_rate_timer(instance, now);
    }
}

impl GrantedBatch {
    fn note_arrival(&mut self, taken: &Taken) {
        let units = taken.units as u32;
        self.plain &= taken.plain;
        match self.arrivals.last_mut().filter(|(at, _)| *at == taken.queued_ns) {
            Some((_, n)) => *n += units,
            None => self.arrivals.push((taken.queued_ns, units)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Batch, Flow};

    #[test]
    fn a_stage_has_one_timer_however_many_batches_fill() {
        let mut flow = Flow::builder::<()>("filling");
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.workers(1)
            .stage(work, |_: &mut u64, _| Ok(()))
            .batch(Batch::of(2).wait(Duration::from_secs(3600)))
            .to(done);
        let service = flow.build(work).unwrap().start();
        let control = service.control();
        for _ in 0..100 {
            let pair = [service.submit(1).unwrap(), service.submit(2).unwrap()];
            pair.into_iter().for_each(|ticket| ticket.wait().unwrap());
        }
        let stage_timers = |timer: &super::super::state::Timer| matches!(timer.action, super::TimerAction::Batch(_));
        let timers = control.shared.lock().timers.iter().filter(|timer| stage_timers(&timer.0)).count();
        assert_eq!(timers, 1);
    }
}
