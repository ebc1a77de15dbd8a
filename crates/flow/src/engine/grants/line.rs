//! How instances are taken and released, and the lines of waiters: first come, first served. A newcomer never takes a
//! resource that a unit in line waits for.

use super::grants::Grants;
use super::waiters::{Party, Waiter};
use crate::engine::claims::{Grant, InstanceId, Want};
use crate::engine::timers::{TimerAction, Timers};
use crate::engine::units::column::Row;
use crate::resource::Supply;

impl Grants {
    fn supply_of(&self, id: InstanceId) -> Supply {
        let resource = self.instances[id as usize].resource;
        self.resources[usize::from(resource)].spec.supply
    }

    /// Whether a newcomer, or the unit just woken from this line, may take the amount: there is enough, and no unit is
    /// ahead.
    pub(crate) fn is_free(&self, id: InstanceId, amount: u64, woken_at: Option<InstanceId>, now: u64) -> bool {
        let instance = &self.instances[id as usize];
        (instance.line.is_empty() || woken_at == Some(id)) && instance.has(self.supply_of(id), amount, now)
    }

    /// The number of newcomers that could now take `amount` tokens each.
    pub(crate) fn units_for(&self, id: InstanceId, amount: u64) -> usize {
        let instance = &self.instances[id as usize];
        match self.supply_of(id) {
            Supply::Tokens(capacity) if instance.line.is_empty() && amount > 0 => {
                (capacity.saturating_sub(instance.in_use) / amount) as usize
            }
            // Rates, instances with a line, and amounts above the free amount are decided unit by unit.
            _ => 0,
        }
    }

    /// Takes an amount that [`is_free`](Self::is_free) has approved. Tokens of a rate are spent, not held, so the
    /// result for a rate is `None`.
    pub(crate) fn take(&mut self, grant: Grant, timers: &mut Timers, now: u64) -> Option<Grant> {
        let instance = &mut self.instances[grant.instance as usize];
        let resource = &mut self.resources[usize::from(instance.resource)];
        match resource.spec.supply {
            Supply::Tokens(_) => {
                instance.in_use += grant.amount;
                resource.in_use += u128::from(grant.amount);
                // The peak of a resource with keys is the largest amount that one of its keys has ever had in use.
                let peak = instance.in_use;
                resource.peak_in_use = resource.peak_in_use.max(peak);
                Some(grant)
            }
            Supply::Rate(rate) => {
                let spent = (grant.amount as f64 * rate.period_ns()) as u64;
                instance.full_at_ns = instance.full_at_ns.max(now).saturating_add(spent);
                let debt = (instance.full_at_ns - now) as f64 / rate.period_ns();
                resource.peak_in_use = resource.peak_in_use.max(debt.round() as u64);
                self.drop_user(grant.instance, timers, now);
                None
            }
        }
    }

    /// Releases a grant.
    pub(crate) fn release(&mut self, grant: Grant, timers: &mut Timers, now: u64) {
        let instance = &mut self.instances[grant.instance as usize];
        instance.in_use -= grant.amount;
        self.resources[usize::from(instance.resource)].in_use -= u128::from(grant.amount);
        // Only an instance with a line needs to be served.
        if !instance.line.is_empty() {
            self.to_serve.push(grant.instance);
        }
        self.drop_user(grant.instance, timers, now);
    }

    /// Puts a unit at the end of the line for the resource it lacks. If the need has a key, the unit keeps the key
    /// alive.
    pub(crate) fn park(&mut self, row: Row, stage: u16, want: Want, timers: &mut Timers, now: u64) {
        self.stand_in_line(want.instance, Party::Unit { row, stage }, want.amount, timers, now);
    }

    /// Puts a stage, whose next batch needs a permit, at the end of the permit's line.
    pub(crate) fn await_permit(&mut self, stage: u16, permit: Want, timers: &mut Timers, now: u64) {
        self.stand_in_line(permit.instance, Party::Stage(stage), permit.amount, timers, now);
    }

    fn stand_in_line(&mut self, id: InstanceId, party: Party, amount: u64, timers: &mut Timers, now: u64) {
        self.instances[id as usize].line.push_back(Waiter { party, amount, since_ns: now });
        self.set_rate_timer(id, timers, now);
    }

    /// Takes an instance whose line may now be served.
    #[inline]
    pub(crate) fn next_to_serve(&mut self) -> Option<InstanceId> {
        self.to_serve.pop()
    }

    /// Takes the head of the line if its amount is free. If the line is empty, forgets the key unless it is in use. If
    /// the head must wait longer, sets a timer. So no other code needs to watch the line.
    pub(crate) fn next_in_line(&mut self, id: InstanceId, timers: &mut Timers, now: u64) -> Option<Waiter> {
        let supply = self.supply_of(id);
        let instance = &mut self.instances[id as usize];
        match instance.line.front() {
            None => {
                self.forget_if_unused(id, timers, now);
                None
            }
            Some(head) if instance.has(supply, head.amount, now) => instance.line.pop_front(),
            Some(_) => {
                self.set_rate_timer(id, timers, now);
                None
            }
        }
    }

    /// Sets a timer for the time at which a rate has the tokens that the head of its line waits for.
    fn set_rate_timer(&mut self, id: InstanceId, timers: &mut Timers, now: u64) {
        let Supply::Rate(rate) = self.supply_of(id) else { return };
        let instance = &mut self.instances[id as usize];
        let Some(head) = instance.line.front() else { return };
        let at = instance.ready_at(rate, head.amount).max(now + 1);
        // A timer that is set for a later time dates from before the rate was raised, and does not count.
        if instance.timer_set_ns.is_none_or(|set| set > at) {
            instance.timer_set_ns = Some(at);
            timers.set(at, TimerAction::Rate(id));
        }
    }

    /// Serves the line of a rate whose timer has fired.
    pub(crate) fn rate_timer_fired(&mut self, id: InstanceId, at_ns: u64) {
        let set = &mut self.instances[id as usize].timer_set_ns;
        // A timer that was set for another time, or for an earlier key with this number, is stale.
        if *set == Some(at_ns) {
            *set = None;
            self.to_serve.push(id);
        }
    }

    /// Changes the supply of a resource, and marks all its lines for service.
    pub(crate) fn set_supply(&mut self, resource: u16, supply: Supply, now: u64) {
        let spec = &mut self.resources[usize::from(resource)].spec;
        let before = std::mem::replace(&mut spec.supply, supply);
        for (i, instance) in self.instances.iter_mut().enumerate().filter(|(_, i)| i.resource == resource) {
            if let (Supply::Rate(old), Supply::Rate(new)) = (before, supply) {
                // The number of tokens owed stays the same; they now return at the new rate.
                let owed = instance.full_at_ns.saturating_sub(now) as f64 / old.period_ns();
                instance.full_at_ns = now.saturating_add((owed * new.period_ns()) as u64);
            }
            if !instance.line.is_empty() {
                self.to_serve.push(i as InstanceId);
            }
        }
        self.keys_freed.push(resource);
    }
}
