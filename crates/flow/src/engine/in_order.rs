//! Acquisition of needs one after the other, along the resource order, for a unit that missed its moment too often (see
//! `grant`).

use super::column::Row;
use super::grant::Woken;
use super::state::State;
use super::unit::{Grants, InstanceId, NO_STAGE, OrderedNeed, Want};

impl State {
    /// Lists the unit's needs, and the permits of a batch to open, by the resource order.
    pub(crate) fn begin_in_order(&mut self, row: &mut Row, stage: u16) {
        let state = &self.stages[usize::from(stage)];
        let constant = state.wants.iter().chain(&state.permits);
        let mut order: Vec<OrderedNeed> = constant.map(OrderedNeed::of).collect();
        let needs = self.units.unit(row).needs();
        for ask in &needs.asks {
            match order.iter_mut().find(|o| o.resource == ask.resource && o.key == ask.key && !o.for_batch) {
                Some(same) => same.amount = same.amount.saturating_add(ask.amount),
                None => order.push(OrderedNeed {
                    resource: ask.resource,
                    key: ask.key.clone(),
                    instance: if ask.key.is_none() { Some(u32::from(ask.resource)) } else { None },
                    until: ask.until,
                    for_batch: false,
                    amount: ask.amount,
                }),
            }
        }
        order.sort_by(|a, b| (self.rank(a.resource), &a.key).cmp(&(self.rank(b.resource), &b.key)));
        let needs = self.units.unit(row).needs();
        needs.order = order;
        needs.next_in_order = 0;
        needs.in_order = true;
    }

    fn rank(&self, resource: u16) -> u16 {
        self.resources[usize::from(resource)].rank
    }

    /// Acquires the rest of the unit's needs, and parks the unit at the first one that is not free.
    pub(crate) fn acquire_in_order(&mut self, mut row: Row, stage: u16, woken: Woken, now: u64) {
        loop {
            let needs = self.units.unit(&mut row).needs();
            let Some(next) = needs.order.get(needs.next_in_order) else { break };
            let (resource, amount) = (next.resource, next.amount);
            let instance = match next.instance {
                Some(instance) => instance,
                None => match self.look_up_in_order(&mut row, resource, woken == Woken::ForKeys(resource), now) {
                    Some(instance) => instance,
                    None => return self.park_for_keys(row, stage, resource, now),
                },
            };
            if !self.is_free(instance, amount, None, now) {
                let want = Want { instance, until: NO_STAGE, for_batch: false, amount };
                return self.park(row, stage, want, now);
            }
            self.acquire_next(&mut row, stage, now);
        }
        self.end_in_order(row, stage, now);
    }

    /// Looks up all the unit's keys of a resource at once, so that the unit never waits for one while it keeps another
    /// alive. Returns `None` if not all of them can be made.
    fn look_up_in_order(&mut self, row: &mut Row, resource: u16, is_turn: bool, now: u64) -> Option<InstanceId> {
        let mut order = std::mem::take(&mut self.units.unit(row).needs().order);
        let keys = || order.iter().filter(|need| need.resource == resource).filter_map(|need| need.key.as_deref());
        let mut first = None;
        if self.can_make_keys(resource, keys(), is_turn, now) {
            for need in order.iter_mut().filter(|need| need.resource == resource && need.key.is_some()) {
                let instance = self.instance_of(resource, need.key.as_deref());
                self.keep_alive(instance);
                need.instance = Some(instance);
                first = first.or(Some(instance));
            }
        }
        self.units.unit(row).needs().order = order;
        first
    }

    /// Takes the unit's next need, which must be free for this unit.
    pub(crate) fn acquire_next(&mut self, row: &mut Row, stage: u16, now: u64) {
        let needs = self.units.unit(row).needs();
        let next = &needs.order[needs.next_in_order];
        let Some(instance) = next.instance else { return };
        needs.next_in_order += 1;
        let want = Want { instance, until: next.until, for_batch: next.for_batch, amount: next.amount };
        // A grant from no stage marks a permit until its batch is made.
        let from = if want.for_batch { NO_STAGE } else { stage };
        let held = self.take(want.grant(from), now);
        self.units.unit(row).needs().held.extend(held);
    }

    /// Puts the unit, which has all it needs, into a batch that it opens with its permits, or into an open one.
    fn end_in_order(&mut self, mut row: Row, stage: u16, now: u64) {
        let needs = self.units.unit(&mut row).needs();
        needs.in_order = false;
        needs.bounces = 0;
        needs.order.clear();
        let mut permits = Grants::new();
        needs.held.retain(|grant| {
            let is_permit = grant.from == NO_STAGE && grant.until == NO_STAGE;
            permits.extend(is_permit.then_some(*grant));
            !is_permit
        });
        if !permits.is_empty() || self.opens_batch(stage) {
            self.new_batch(stage, now, permits);
        }
        self.join_batch(row, stage, now);
    }
}

impl OrderedNeed {
    /// A need without a key.
    fn of(want: &Want) -> Self {
        OrderedNeed {
            resource: want.instance as u16,
            key: None,
            instance: Some(want.instance),
            until: want.until,
            for_batch: want.for_batch,
            amount: want.amount,
        }
    }
}
