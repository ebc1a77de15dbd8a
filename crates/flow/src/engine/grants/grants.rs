//! All resources of a flow, and the lines of units that wait for them.

use super::instance::Instance;
use super::memory::MemoryLine;
use super::resource::ResourceState;
use super::room::RoomLine;
use super::waiters::Waiter;
use crate::engine::claims::{InstanceId, Step, Want};
use crate::engine::units::column::Row;
use crate::resource::{ResourceSpec, Supply};
use crate::snapshot::ResourceSnapshot;

pub(crate) struct Grants {
    pub(super) resources: Vec<ResourceState>,
    /// The resources themselves come first, each at its own index. The keys follow.
    pub(super) instances: Vec<Instance>,
    /// Indices of forgotten keys, for new keys to use.
    pub(super) free: Vec<InstanceId>,
    /// Instances whose lines may now be served.
    pub(super) to_serve: Vec<InstanceId>,
    /// Resources that may be able to make a key for a waiting unit.
    pub(super) keys_freed: Vec<u16>,
    memory: MemoryLine,
    room: RoomLine,
}

impl Grants {
    /// Creates the state of the resources; `ranks` has each resource's position in the resource order.
    pub(crate) fn new(resources: &[ResourceSpec], ranks: &[u16]) -> Self {
        let with_ranks = resources.iter().zip(ranks);
        Grants {
            resources: with_ranks.map(|(spec, &rank)| ResourceState::new(spec.clone(), rank)).collect(),
            instances: (0..resources.len() as u16).map(|resource| Instance::new(resource, None)).collect(),
            free: Vec::new(),
            to_serve: Vec::new(),
            keys_freed: Vec::new(),
            memory: MemoryLine::default(),
            room: RoomLine::default(),
        }
    }

    pub(crate) fn specs(&self) -> impl ExactSizeIterator<Item = &ResourceSpec> {
        self.resources.iter().map(|resource| &resource.spec)
    }

    /// The resource's position in the resource order.
    fn rank(&self, resource: u16) -> u16 {
        self.resources[usize::from(resource)].rank
    }

    pub(crate) fn resource_of(&self, instance: InstanceId) -> u16 {
        self.instances[instance as usize].resource
    }

    /// The line of units that wait for bytes.
    #[inline]
    pub(crate) fn memory(&self) -> &MemoryLine {
        &self.memory
    }

    #[inline]
    pub(crate) fn memory_mut(&mut self) -> &mut MemoryLine {
        &mut self.memory
    }

    /// The line of units that wait for room for their children.
    #[inline]
    pub(crate) fn room(&self) -> &RoomLine {
        &self.room
    }

    #[inline]
    pub(crate) fn room_mut(&mut self) -> &mut RoomLine {
        &mut self.room
    }

    /// Whether a newcomer could get a slot in the queue that this resource bounds.
    pub(crate) fn has_place(&self, resource: u16) -> bool {
        let instance = &self.instances[usize::from(resource)];
        instance.in_use < self.resources[usize::from(resource)].capacity() && instance.line.is_empty()
    }

    /// The number of units, or for permits the number of batches, that can run at once if each takes tokens of its own.
    pub(crate) fn most_at_once<'a>(&self, wants: impl Iterator<Item = &'a Want>) -> usize {
        let tokens =
            wants.filter_map(|want| match self.resources[usize::from(self.resource_of(want.instance))].spec.supply {
                Supply::Tokens(tokens) => Some(tokens / want.amount.max(1)),
                Supply::Rate(_) => None,
            });
        tokens.min().map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX).max(1))
    }

    /// The unit at the head of each line, with its stage.
    pub(crate) fn heads(&mut self) -> impl Iterator<Item = (InstanceId, &mut Row, u16)> {
        (0..).zip(&mut self.instances).filter_map(|(id, instance)| {
            let (row, stage) = instance.line.front_unit_mut()?;
            Some((id, row, stage))
        })
    }

    /// Removes the head of the line, whether or not its amount is free, because the unit leaves the flow.
    pub(crate) fn pull_head(&mut self, instance: InstanceId) -> Option<Waiter> {
        self.instances[instance as usize].line.pop_front()
    }

    /// Puts the head of a line back.
    pub(crate) fn put_back_head(&mut self, instance: InstanceId, waiter: Waiter) {
        self.instances[instance as usize].line.push_front(waiter);
    }

    /// Moves all units in all lines to `remaining`.
    pub(crate) fn empty(&mut self, remaining: &mut Vec<Row>) {
        for instance in &mut self.instances {
            remaining.extend(instance.line.drain_units());
        }
        for resource in &mut self.resources {
            remaining.extend(resource.key_waiters.drain(..).map(|waiter| waiter.row));
        }
        remaining.extend(self.memory.drain());
        remaining.extend(self.room.drain());
    }

    /// Snapshots of the resources; `waiters` says how many units wait for each.
    pub(crate) fn snapshots(&self, waiters: impl Fn(usize) -> u64) -> Vec<ResourceSnapshot> {
        self.resources.iter().enumerate().map(|(r, resource)| resource.snapshot(waiters(r))).collect()
    }

    /// Sorts a unit's needs into the resource order.
    pub(crate) fn sort_steps(&self, steps: &mut [Step]) {
        steps.sort_by(|a, b| (self.rank(a.resource), &a.key).cmp(&(self.rank(b.resource), &b.key)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claims::{Ask, Grant, NO_STAGE};
    use crate::engine::grants::waiters::Party;
    use crate::engine::timers::Timers;
    use crate::resource::Rate;

    fn spec(supply: Supply, keyed: bool, max_keys: usize) -> ResourceSpec {
        ResourceSpec { name: "r".into(), supply, keyed, pool: false, max_keys }
    }

    fn one(supply: Supply, keyed: bool) -> (Grants, Timers) {
        (Grants::new(&[spec(supply, keyed, 1)], &[0]), Timers::default())
    }

    fn row(number: u32) -> Row {
        // SAFETY: each test makes one row of each number.
        unsafe { Row::new(number) }
    }

    fn want(instance: InstanceId, amount: u64) -> Want {
        Want { instance, until: NO_STAGE, for_batch: false, amount }
    }

    fn unit_of(waiter: Option<Waiter>) -> Option<u32> {
        match waiter?.party {
            Party::Unit { row, .. } => Some(row.number()),
            Party::Stage(_) => None,
        }
    }

    #[test]
    fn a_newcomer_never_takes_what_a_unit_in_line_waits_for() {
        let (mut grants, mut timers) = one(Supply::Tokens(3), false);
        let held = grants.take(want(0, 2).grant(0), &mut timers, 0).unwrap();
        assert!(grants.is_free(0, 1, None, 0) && !grants.is_free(0, 2, None, 0));
        grants.park(row(1), 0, want(0, 2), &mut timers, 0);
        assert!(!grants.is_free(0, 1, None, 0), "one token is left, and a unit waits in line");
        assert!(unit_of(grants.next_in_line(0, &mut timers, 1)).is_none());
        grants.release(held, &mut timers, 2);
        assert_eq!(grants.next_to_serve(), Some(0));
        assert_eq!(unit_of(grants.next_in_line(0, &mut timers, 2)), Some(1));
        assert!(grants.is_free(0, 2, None, 2));
    }

    #[test]
    fn a_rate_s_line_has_a_timer_for_its_head() {
        let rate = Rate::per_second(1e9 / 100.0);
        let (mut grants, mut timers) = one(Supply::Rate(rate), false);
        assert!(grants.take(want(0, 1).grant(0), &mut timers, 0).is_none(), "tokens of a rate are spent");
        assert!(!grants.is_free(0, 1, None, 50));
        grants.park(row(1), 0, want(0, 1), &mut timers, 50);
        assert_eq!(timers.next_at(), 100);
        grants.rate_timer_fired(0, 100);
        assert_eq!(grants.next_to_serve(), Some(0));
        assert_eq!(unit_of(grants.next_in_line(0, &mut timers, 100)), Some(1));
    }

    #[test]
    fn a_need_above_the_capacity_is_met_when_nothing_is_in_use() {
        let (mut grants, mut timers) = one(Supply::Tokens(2), false);
        assert!(grants.is_free(0, 5, None, 0));
        grants.take(want(0, 1).grant(0), &mut timers, 0);
        assert!(!grants.is_free(0, 5, None, 0));
        grants.set_supply(0, Supply::Tokens(0), 0);
        assert!(!grants.is_free(0, 1, None, 0), "no tokens pause the units");
    }

    #[test]
    fn the_slot_of_a_key_has_a_line_that_newcomers_do_not_overtake() {
        let (mut grants, mut timers) = one(Supply::Tokens(1), true);
        let ask = |key: &str| Ask { resource: 0, until: NO_STAGE, amount: 1, key: Some(key.into()) };
        let (first, second, third) = ([ask("a")], [ask("b")], [ask("c")]);
        assert!(grants.lacking_keys(&first, None, &mut timers, 0).is_none());
        let a = grants.instance_of(0, Some("a"));
        grants.add_user(a);
        assert_eq!(grants.lacking_keys(&second, None, &mut timers, 0), Some(0));
        grants.park_for_keys(row(1), 0, 0, &mut timers, 0);
        grants.drop_user(a, &mut timers, 1);
        assert_eq!(grants.next_with_free_keys(), Some(0));
        assert_eq!(grants.lacking_keys(&third, None, &mut timers, 1), Some(0), "a unit waits for that slot");
        let waiter = grants.next_in_line_for_keys(0).unwrap();
        assert!(waiter.row.number() == 1 && grants.has_keys_for(&second, 0, &mut timers, 1));
    }

    #[test]
    fn a_key_of_a_rate_lives_until_its_tokens_are_back() {
        let rate = Rate::per_second(1e9 / 100.0);
        let (mut grants, mut timers) = one(Supply::Rate(rate), true);
        let key = grants.instance_of(0, Some("a"));
        grants.add_user(key);
        let grant = Grant { instance: key, until: NO_STAGE, from: 0, amount: 1 };
        assert!(grants.take(grant, &mut timers, 0).is_none());
        assert_eq!(grants.instance_of(0, Some("a")), key, "the key is kept with its debt");
        let other = [Ask { resource: 0, until: NO_STAGE, amount: 1, key: Some("b".into()) }];
        assert_eq!(grants.lacking_keys(&other, None, &mut timers, 50), Some(0));
        assert_eq!(grants.lacking_keys(&other, None, &mut timers, 100), None, "the tokens are back");
    }
}
