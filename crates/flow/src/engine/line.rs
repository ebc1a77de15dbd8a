//! The lines of units that wait for a resource: first come, first served.

use super::column::Row;
use super::grant::Woken;
use super::state::{Instance, State, TimerAction, Waiter};
use super::unit::{Grant, InstanceId, Want};
use crate::resource::{Rate, Supply};

impl State {
    /// Serves the waiters in the instance's line whose amount is there now.
    pub(crate) fn serve(&mut self, instance: InstanceId, now: u64) {
        let i = instance as usize;
        while let Some(amount) = self.head_amount(instance) {
            if !self.has(instance, amount, now) {
                return self.set_rate_timer(instance, now);
            }
            match self.instances[i].waiters.pop_front() {
                Some(Waiter::Unit { row, stage }) => self.serve_unit(row, stage, instance, now),
                Some(Waiter::Stage(stage)) => self.serve_stage(stage, instance, now),
                None => return,
            }
        }
        self.forget_if_unused(instance, now);
    }

    fn serve_unit(&mut self, mut row: Row, stage: u16, instance: InstanceId, now: u64) {
        self.unpark(&mut row, stage, self.instances[instance as usize].resource, now);
        if self.units.unit(&mut row).needs().in_order {
            self.acquire_next(&mut row, stage, now);
            return self.acquire_in_order(row, stage, Woken::No, now);
        }
        self.try_unit(row, stage, Woken::At(instance), now);
        // The unit no longer stands in this line.
        self.forget(instance, now);
    }

    /// The amount of the instance that the head of its line waits for.
    fn head_amount(&mut self, instance: InstanceId) -> Option<u64> {
        match self.instances[instance as usize].waiters.front_mut()? {
            Waiter::Unit { row, .. } => Some(self.units.unit(row).needs().awaits),
            Waiter::Stage(stage) => {
                let permits = &self.stages[usize::from(*stage)].permits;
                let permit = permits.iter().find(|permit| permit.instance == instance);
                Some(permit.map_or(0, |permit| permit.amount))
            }
        }
    }

    /// Serves a stage for which a permit has come free: its first unit may open a batch.
    fn serve_stage(&mut self, stage: u16, instance: InstanceId, now: u64) {
        self.stage(stage).awaits_permit = false;
        // The stage had a seat when it joined the line, and keeps its turn although its workers have gone to other
        // stages.
        let mut workers = self.stage(stage).workers.ceiling;
        while self.opens_batch(stage) && self.stage(stage).has_seat(workers) {
            workers = self.workers_for(stage);
            let Some(mut row) = self.pop_waiting(stage) else { break };
            let Some(other) = self.lacking_permit(stage, Some(instance), now) else {
                self.try_unit(row, stage, Woken::At(instance), now);
                if self.stage(stage).awaits_permit {
                    return;
                }
                continue;
            };
            // A unit that lacks another permit counts as woken with something still lacking, too.
            if self.has_bounced(&mut row) {
                self.begin_in_order(&mut row, stage);
                self.acquire_in_order(row, stage, Woken::No, now);
            } else {
                self.push_front_waiting(row, stage);
                self.await_permit(stage, other, now);
            }
            return;
        }
        self.mark_pump(stage);
    }

    /// Puts a unit at the end of the line of the need it lacks. The unit keeps that key alive.
    pub(crate) fn park(&mut self, mut row: Row, stage: u16, want: Want, now: u64) {
        let needs = self.units.unit(&mut row).needs();
        needs.parked_ns = now;
        needs.awaits = want.amount;
        let resource = self.instances[want.instance as usize].resource;
        self.stage(stage).count_parked(resource);
        self.instances[want.instance as usize].waiters.push_back(Waiter::Unit { row, stage });
        self.set_rate_timer(want.instance, now);
    }

    pub(crate) fn unpark(&mut self, row: &mut Row, stage: u16, resource: u16, now: u64) {
        let waited = now.saturating_sub(self.units.unit(row).needs().parked_ns);
        let state = self.stage(stage);
        state.parked[usize::from(resource)] -= 1;
        state.parked_units -= 1;
        state.stats.waited_for_resource(resource, waited);
    }

    /// Whether a newcomer may take the amount: there is enough, and no other unit waits for it in line.
    pub(crate) fn is_free(&self, instance: InstanceId, amount: u64, woken_at: Option<InstanceId>, now: u64) -> bool {
        let line = &self.instances[instance as usize].waiters;
        (line.is_empty() || woken_at == Some(instance)) && self.has(instance, amount, now)
    }

    /// Whether there is enough of the instance now. A need above the whole capacity is met when nothing is in use.
    fn has(&self, instance: InstanceId, amount: u64, now: u64) -> bool {
        let state = &self.instances[instance as usize];
        match self.resources[usize::from(state.resource)].spec.supply {
            Supply::Tokens(capacity) => {
                let fits = || state.in_use.checked_add(amount).is_some_and(|in_use| in_use <= capacity);
                capacity > 0 && (state.in_use == 0 || fits())
            }
            Supply::Rate(rate) => state.ready_at(rate, amount) <= now,
        }
    }

    /// The number of newcomers that may have `amount` tokens each now.
    pub(crate) fn units_for(&self, instance: InstanceId, amount: u64) -> usize {
        let state = &self.instances[instance as usize];
        match self.resources[usize::from(state.resource)].spec.supply {
            Supply::Tokens(capacity) if state.waiters.is_empty() && amount > 0 => {
                (capacity.saturating_sub(state.in_use) / amount) as usize
            }
            // Rates, instances with a line, and amounts above what is left are decided unit by unit.
            _ => 0,
        }
    }

    /// Takes an amount that [`has`](Self::has) found; a rate's tokens are spent, so the unit holds nothing.
    pub(crate) fn take(&mut self, grant: Grant, now: u64) -> Option<Grant> {
        let state = &mut self.instances[grant.instance as usize];
        let resource = &mut self.resources[usize::from(state.resource)];
        match resource.spec.supply {
            Supply::Tokens(_) => {
                state.in_use += grant.amount;
                resource.in_use += u128::from(grant.amount);
                // The peak is that of one key, where there are several.
                let peak = state.in_use;
                resource.peak_in_use = resource.peak_in_use.max(peak);
                Some(grant)
            }
            Supply::Rate(rate) => {
                let spent = (grant.amount as f64 * rate.period_ns()) as u64;
                state.full_at_ns = state.full_at_ns.max(now).saturating_add(spent);
                let debt = (state.full_at_ns - now) as f64 / rate.period_ns();
                resource.peak_in_use = resource.peak_in_use.max(debt.round() as u64);
                self.forget(grant.instance, now);
                None
            }
        }
    }

    /// Gives back a grant.
    pub(crate) fn release(&mut self, grant: Grant, now: u64) {
        let state = &mut self.instances[grant.instance as usize];
        state.in_use -= grant.amount;
        self.resources[usize::from(state.resource)].in_use -= u128::from(grant.amount);
        if !state.waiters.is_empty() {
            self.to_serve.push(grant.instance);
        }
        self.forget(grant.instance, now);
    }

    /// Sets a timer for the moment at which a rate has the tokens that the head of its line waits for.
    pub(crate) fn set_rate_timer(&mut self, instance: InstanceId, now: u64) {
        let Some(amount) = self.head_amount(instance) else { return };
        let state = &mut self.instances[instance as usize];
        let Supply::Rate(rate) = self.resources[usize::from(state.resource)].spec.supply else { return };
        let at = state.ready_at(rate, amount).max(now + 1);
        // A timer that is set for a later time (the rate was raised since) does not count.
        if state.timer_set_ns.is_none_or(|set| set > at) {
            state.timer_set_ns = Some(at);
            self.set_timer(at, TimerAction::Rate(instance));
        }
    }

    /// Changes the supply of a resource, and marks all its lines for service.
    pub(crate) fn set_supply(&mut self, resource: u16, supply: Supply, now: u64) {
        let spec = &mut self.resources[usize::from(resource)].spec;
        let before = std::mem::replace(&mut spec.supply, supply);
        for (i, instance) in self.instances.iter_mut().enumerate().filter(|(_, i)| i.resource == resource) {
            if let (Supply::Rate(old), Supply::Rate(new)) = (before, supply) {
                // The tokens owed stay the same; they come at the new rate.
                let owed = instance.full_at_ns.saturating_sub(now) as f64 / old.period_ns();
                instance.full_at_ns = now.saturating_add((owed * new.period_ns()) as u64);
            }
            if !instance.waiters.is_empty() {
                self.to_serve.push(i as InstanceId);
            }
        }
        self.keys_freed.push(resource);
    }
}

impl Instance {
    pub(crate) fn new(resource: u16, key: Option<Box<str>>) -> Self {
        Instance {
            resource,
            in_use: 0,
            full_at_ns: 0,
            waiters: Default::default(),
            users: 0,
            key,
            timer_set_ns: None,
            listed_idle: false,
        }
    }

    /// The time at which a rate will have `amount` tokens; for more than its burst, the time at which it will have all.
    fn ready_at(&self, rate: Rate, amount: u64) -> u64 {
        let slack = rate.burst.saturating_sub(amount) as f64 * rate.period_ns();
        self.full_at_ns.saturating_sub(slack as u64)
    }
}
