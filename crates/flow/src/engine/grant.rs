//! Grants: a unit gets all it needs at once, before it gets a worker.
//!
//! # How a queue is granted
//! `pump` grants units from the front of a stage's queue as long as the stage has seats. A stage has a seat for each
//! unit that its workers and the idle workers could run next; a unit without a seat holds nothing. One idle worker may
//! count for several stages. A unit whose needs are all free takes them and joins a granted batch. A unit that lacks
//! something *parks*: it joins the first-come-first-served line of the first thing it lacks, and holds nothing
//! meanwhile. The queue goes on with the next unit, so a busy key holds up only the units that need it.
//!
//! When a unit releases something, `serve` wakes the head of the line for it. The woken unit tries to get *everything*
//! again. It is granted, or it parks at the end of the line of the next thing it lacks. Then `serve` tries the next
//! unit in line. A newcomer never takes a resource that a unit in line waits for.
//!
//! A unit with several needs could miss, again and again, the moments when all its needs are free. For example, `a` may
//! be free only while `b` is not. After [`MAX_BOUNCES`] wake-ups without success, the unit therefore acquires its needs
//! *in order* at the next wake-up. It takes one need after the other along the flow's resource order, keeps what it
//! has, and waits in each line. (The resource order is a topological order of the pairs "holds a, asks for b". The
//! build has proved that it exists.) Hence a unit waits in line at most `MAX_BOUNCES + 1 + needs` times, and each line
//! is first come, first served.
//!
//! # Why nothing deadlocks
//! All resources are in a single order, and a unit that holds a resource waits only for resources later in this order:
//! 1. Within one grant, a waiting unit holds nothing or, if it acquires in order, only earlier resources.
//! 2. A unit may hold a resource over several stages (`until`) while a later stage asks for more. The build follows
//!    every path through the stages, collects each pair "holds a, asks for b", and refuses the flow if these pairs form
//!    a cycle (see [`check`](crate::check)). Otherwise the build makes a topological order from the pairs, and units
//!    that acquire in order follow it.
//! 3. A slot in a bounded queue is a resource like any other. The stages before the queue ask for it, and the unit
//!    holds it until it leaves the queue's stage. A unit that goes to a different stage releases the slot at once.
//! 4. A resource's slots for keys need no position of their own in the order, because a waiting unit keeps only one key
//!    alive: the key that it waits for (see `grants/key`).
//!
//! Consider a chain of waits: a unit waits for a holder, which waits for another holder, and so on. Each step goes up
//! in the order, so the last holder waits for no resource. It runs, or waits for a worker or a timer, and will release
//! what it holds. Bytes come last in the order and have a rule of their own (see `grants/memory`).
//!
//! This proof does not cover waits inside a stage's own code. [`Submitter`](crate::service::Submitter) says which of
//! these waits the engine refuses, and which are forbidden but not detected.

use super::claims::{GrantList, InstanceId, Want, Wants};
use super::grants::waiters::Party;
use super::state::State;
use super::units::column::Row;

/// A unit that still lacks something after more wake-ups than this acquires its needs in order.
const MAX_BOUNCES: u8 = 8;

/// The reason why a unit could not be granted.
enum Lack {
    /// One of the unit's needs is not free.
    Need(Want),
    /// The stage's next batch lacks a permit.
    Permit(Want),
    /// The resource has too few free slots for the keys that the unit needs, or other units are ahead in the line for
    /// keys.
    Keys { resource: u16 },
}

/// The line that a unit was just taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The unit is a newcomer and comes from no line.
    No,
    /// The unit waited in the line of the instance.
    At(InstanceId),
    /// The unit waited in the line for keys of the resource.
    ForKeys(u16),
}

impl Woken {
    fn at_instance(self) -> Option<InstanceId> {
        if let Woken::At(instance) = self { Some(instance) } else { None }
    }

    /// The resource for whose keys the unit waited in line.
    pub(super) fn for_keys(self) -> Option<u16> {
        if let Woken::ForKeys(resource) = self { Some(resource) } else { None }
    }
}

impl State {
    /// Grants everything that can be granted, and admits pulled units as long as there is room.
    pub(super) fn grant_all(&mut self, now: u64) {
        // The order is deliberate. A unit in line for a resource precedes a unit in line for a key, and both precede a
        // newcomer from a queue. Seats, memory, room for children and the source come last, because they may use only
        // the resources that the earlier steps have left over.
        loop {
            if let Some(instance) = self.grants.next_to_serve() {
                self.serve(instance, now);
            } else if let Some(resource) = self.grants.next_with_free_keys() {
                self.serve_keys(resource, now);
            } else if let Some(stage) = self.stages.next_marked() {
                self.pump(stage, now);
            } else if !self.stages.seat_again(self.crew.shared_workers())
                && !self.serve_memory(now)
                && !self.serve_room(now)
                && !self.admit_pulled(now)
            {
                return;
            }
        }
    }
}

// ---- queues -------------------------------------------------------------------------------------------

impl State {
    /// Grants units from the front of a stage's queue while there are seats.
    fn pump(&mut self, stage: u16, now: u64) {
        // A granted unit must get a worker soon. Tokens granted beyond the seats would sit idle while units of other
        // stages wait for them. So units are granted only while there are seats.
        if self.stages.at(stage).splits().is_some() {
            return self.await_room(stage, now);
        }
        if self.stages.at(stage).needs_nothing() {
            return self.pump_without_needs(stage, now);
        }
        let workers = self.stages.workers_for(stage, self.crew.shared_workers());
        while self.stages.at(stage).has_waiting() {
            let state = self.stages.at(stage);
            if !state.has_seat(workers) {
                return self.stages.note_lack_of_workers(stage, workers);
            }
            if state.next_unit_opens_batch() {
                // Without the permit, no unit can be granted. So the stage itself waits in the permit's line, and its
                // units keep their order in the queue.
                if state.awaits_permit() {
                    return;
                }
                if let Some(permit) = self.lacking_permit(stage, None, now) {
                    return self.await_permit(stage, permit, now);
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

    /// Grants units of a stage that needs nothing.
    #[inline]
    fn pump_without_needs(&mut self, stage: u16, now: u64) {
        let State { stages, units, timers, .. } = self;
        let state = stages.at_mut(stage);
        while state.has_waiting() {
            // The units hold nothing, so granting them long before a worker is free does no harm.
            let seats = state.free_seats(state.workers().ceiling);
            if seats == 0 {
                return;
            }
            state.fill_batch(seats, units.spares(), timers, now);
        }
    }

    /// If all units of the stage have the same needs and hold them only while they run, grants units of the queue's
    /// first *arrival* (units that arrived together), as many as there are tokens for. The batch holds the grants, so
    /// no unit's record is touched.
    fn grant_many(&mut self, stage: u16, workers: usize, now: u64) -> bool {
        let state = self.stages.at(stage);
        if !state.is_alike() {
            return false;
        }
        let most = state.wants().iter().map(|want| self.grants.units_for(want.instance, want.amount)).min();
        let most = most.unwrap_or(0).min(state.free_seats(workers));
        if most == 0 {
            return false;
        }
        if state.next_unit_opens_batch() {
            self.open_batch_with_permits(stage, now);
        }
        let State { stages, grants, units, timers, .. } = self;
        let state = stages.at_mut(stage);
        let granted = state.fill_batch(most, units.spares(), timers, now);
        for want in state.wants().clone() {
            let held = grants.take(want.times(granted).grant(stage), timers, now);
            state.hold_for_batch(held);
        }
        true
    }

    /// Takes the first unit of the stage's queue.
    pub(super) fn pop_waiting(&mut self, stage: u16) -> Option<Row> {
        let (mut row, queued_ns) = self.stages.at_mut(stage).pop_waiting(self.units.spares())?;
        self.units.record(&mut row).set_queued_ns(queued_ns);
        Some(row)
    }

    /// Puts a unit back at the front of the stage's queue. The unit keeps the time of its arrival.
    fn push_front_waiting(&mut self, mut row: Row, stage: u16) {
        let queued_ns = self.units.record(&mut row).queued_ns();
        self.stages.at_mut(stage).push_front(row, queued_ns);
    }
}

// ---- one unit -----------------------------------------------------------------------------------------

impl State {
    /// Grants the unit, or parks it.
    pub(super) fn try_unit(&mut self, mut row: Row, stage: u16, woken: Woken, now: u64) {
        if self.units.record(&mut row).is_in_order() {
            return self.acquire_in_order(row, stage, woken, now);
        }
        let lack = match self.all_at_once(&mut row, stage, woken, now) {
            Ok(()) => return self.join_batch(row, stage, now),
            Err(lack) => lack,
        };
        // A bounce is counted only for a unit that was woken; a newcomer has not waited yet.
        if woken != Woken::No && self.has_bounced(&mut row) {
            if let Lack::Need(want) = lack {
                self.grants.drop_user(want.instance, &mut self.timers, now);
            }
            self.begin_in_order(&mut row, stage);
            return self.acquire_in_order(row, stage, woken, now);
        }
        match lack {
            Lack::Need(want) => self.park(row, stage, want, now),
            Lack::Keys { resource } => self.park_for_keys(row, stage, resource, now),
            Lack::Permit(permit) => {
                self.push_front_waiting(row, stage);
                if !self.stages.at(stage).awaits_permit() {
                    self.await_permit(stage, permit, now);
                }
            }
        }
    }

    /// Counts a wake-up after which the unit still lacks something. Returns whether there were more than
    /// [`MAX_BOUNCES`] such wake-ups.
    fn has_bounced(&mut self, row: &mut Row) -> bool {
        self.units.record(row).count_bounce() > MAX_BOUNCES
    }

    /// Takes everything that the unit needs, or nothing. A unit that opens a batch also needs the stage's permits. If
    /// the result is [`Lack::Need`], the key of that need stays alive, because the unit will park in its line.
    fn all_at_once(&mut self, row: &mut Row, stage: u16, woken: Woken, now: u64) -> Result<(), Lack> {
        // Everything is checked before anything is taken. The mutex is held throughout, so no check goes stale, and
        // nothing needs to be rolled back except the user counts of keys.
        let woken_at = woken.at_instance();
        let wants = self.look_up(row, stage, woken, now)?;
        let is_free = |want: &Want| self.grants.is_free(want.instance, want.amount, woken_at, now);
        if let Some(&lacking) = wants.iter().find(|want| !is_free(want)) {
            let others = wants.iter().filter(|want| want.instance != lacking.instance);
            self.grants.drop_users(others, &mut self.timers, now);
            return Err(Lack::Need(lacking));
        }
        let opens = self.stages.at(stage).next_unit_opens_batch();
        if opens && let Some(permit) = self.lacking_permit(stage, woken_at, now) {
            self.grants.drop_users(wants.iter(), &mut self.timers, now);
            return Err(Lack::Permit(permit));
        }
        let State { grants, units, timers, .. } = self;
        let record = units.record(row);
        record.forget_bounces();
        record.hold(wants.iter().filter_map(|want| grants.take(want.grant(stage), timers, now)));
        if opens {
            self.open_batch_with_permits(stage, now);
        }
        Ok(())
    }

    /// The unit's needs in this stage. Looks up the keys, makes the missing keys (all or none), and keeps all keys
    /// alive.
    fn look_up(&mut self, row: &mut Row, stage: u16, woken: Woken, now: u64) -> Result<Wants, Lack> {
        let State { stages, grants, units, timers, .. } = self;
        let state = stages.at(stage);
        let mut wants = state.wants().clone();
        if !state.is_dynamic() {
            return Ok(wants);
        }
        let asks = units.record(row).asks();
        if let Some(resource) = grants.lacking_keys(asks, woken.for_keys(), timers, now) {
            return Err(Lack::Keys { resource });
        }
        for ask in asks {
            let instance = grants.instance_of(ask.resource, ask.key.as_deref());
            match wants.iter_mut().find(|want| want.instance == instance) {
                // Two needs of the same key are merged; otherwise the second would wait for the first.
                Some(want) => want.amount = want.amount.saturating_add(ask.amount),
                None => {
                    grants.add_user(instance);
                    wants.push(ask.want(instance));
                }
            }
        }
        Ok(wants)
    }

    /// Puts a unit that has all it needs into a batch.
    pub(super) fn join_batch(&mut self, mut row: Row, stage: u16, now: u64) {
        let queued_ns = self.units.record(&mut row).queued_ns();
        self.stages.at_mut(stage).join_batch(row, queued_ns, self.units.spares(), &mut self.timers, now);
    }

    /// Puts a unit at the end of the line for the resource it lacks. If the need has a key, the unit keeps the key
    /// alive.
    pub(super) fn park(&mut self, row: Row, stage: u16, want: Want, now: u64) {
        let queued_ns = self.units.look(&row).queued_ns();
        self.stages.at_mut(stage).park(self.grants.resource_of(want.instance), queued_ns);
        self.grants.park(row, stage, want, &mut self.timers, now);
    }

    /// Puts a unit at the end of the line for keys of a resource.
    pub(super) fn park_for_keys(&mut self, row: Row, stage: u16, resource: u16, now: u64) {
        let queued_ns = self.units.look(&row).queued_ns();
        self.stages.at_mut(stage).park(resource, queued_ns);
        self.grants.park_for_keys(row, stage, resource, &mut self.timers, now);
    }
}

// ---- permits ------------------------------------------------------------------------------------------

impl State {
    /// The first permit that the stage's next batch lacks, if any.
    fn lacking_permit(&self, stage: u16, woken_at: Option<InstanceId>, now: u64) -> Option<Want> {
        let permits = self.stages.at(stage).permits().iter();
        permits.copied().find(|permit| !self.grants.is_free(permit.instance, permit.amount, woken_at, now))
    }

    /// Opens a batch with its permits, which must be free.
    fn open_batch_with_permits(&mut self, stage: u16, now: u64) {
        let State { stages, grants, timers, units, .. } = self;
        let permits = stages.at(stage).permits().iter();
        let taken: GrantList = permits.filter_map(|permit| grants.take(permit.grant(stage), timers, now)).collect();
        stages.at_mut(stage).open_batch(taken, units.spares(), timers, now);
    }

    /// Puts the stage into the line of a permit.
    fn await_permit(&mut self, stage: u16, permit: Want, now: u64) {
        self.stages.at_mut(stage).set_awaits_permit(true);
        self.grants.await_permit(stage, permit, &mut self.timers, now);
    }
}

// ---- lines --------------------------------------------------------------------------------------------

impl State {
    /// Serves the instance's line from its head, as long as there is enough for the next waiter.
    fn serve(&mut self, instance: InstanceId, now: u64) {
        while let Some(waiter) = self.grants.next_in_line(instance, &mut self.timers, now) {
            let waited_ns = now.saturating_sub(waiter.since_ns);
            match waiter.party {
                Party::Unit { row, stage } => self.serve_unit(row, stage, instance, waited_ns, now),
                Party::Stage(stage) => self.serve_stage(stage, instance, now),
            }
        }
    }

    fn serve_unit(&mut self, mut row: Row, stage: u16, instance: InstanceId, waited_ns: u64, now: u64) {
        let record = self.units.record(&mut row);
        self.stages.at_mut(stage).unpark(self.grants.resource_of(instance), record.queued_ns(), waited_ns);
        if record.is_in_order() {
            // The unit is first in line, so it takes this need without a check. `is_free` would return `false` if other
            // units waited behind this unit.
            self.acquire_next(&mut row, stage, now);
            return self.acquire_in_order(row, stage, Woken::No, now);
        }
        self.try_unit(row, stage, Woken::At(instance), now);
        // The unit is no longer in this line, so it no longer keeps the line's key alive.
        self.grants.drop_user(instance, &mut self.timers, now);
    }

    /// Serves a stage after a permit has become free: the stage's first unit may open a batch.
    fn serve_stage(&mut self, stage: u16, instance: InstanceId, now: u64) {
        self.stages.at_mut(stage).set_awaits_permit(false);
        // The stage had a seat when it joined the line. It keeps that seat even if its workers have gone to other
        // stages.
        let mut workers = self.stages.at(stage).workers().ceiling;
        while self.stages.at(stage).next_unit_opens_batch() && self.stages.at(stage).has_seat(workers) {
            workers = self.stages.workers_for(stage, self.crew.shared_workers());
            let Some(mut row) = self.pop_waiting(stage) else { break };
            let Some(other) = self.lacking_permit(stage, Some(instance), now) else {
                self.try_unit(row, stage, Woken::At(instance), now);
                if self.stages.at(stage).awaits_permit() {
                    return;
                }
                continue;
            };
            // If the unit now lacks another permit, that counts as a bounce, too.
            if self.has_bounced(&mut row) {
                self.begin_in_order(&mut row, stage);
                self.acquire_in_order(row, stage, Woken::No, now);
            } else {
                self.push_front_waiting(row, stage);
                self.await_permit(stage, other, now);
            }
            return;
        }
        self.stages.mark(stage);
    }

    /// Serves the units that wait for the resource to forget a key.
    fn serve_keys(&mut self, resource: u16, now: u64) {
        if !self.grants.prepare_keys(resource, &mut self.timers, now) {
            return;
        }
        while let Some(mut waiter) = self.grants.next_in_line_for_keys(resource) {
            let record = self.units.record(&mut waiter.row);
            let queued_ns = record.queued_ns();
            if !self.grants.has_keys_for(record.asks(), resource, &mut self.timers, now) {
                return self.grants.put_back_for_keys(waiter, resource, &mut self.timers, now);
            }
            let waited_ns = now.saturating_sub(waiter.since_ns);
            self.stages.at_mut(waiter.stage).unpark(resource, queued_ns, waited_ns);
            self.try_unit(waiter.row, waiter.stage, Woken::ForKeys(resource), now);
        }
    }

    /// Whether nothing in the flow can move until a unit exceeds the caps or a group is closed early.
    pub(super) fn is_stuck(&self) -> bool {
        !self.timers.brings_work() && self.stages.nothing_is_granted_or_runs()
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
        assert_eq!(control.shared.lock().timers.for_batches(), 1);
    }
}
