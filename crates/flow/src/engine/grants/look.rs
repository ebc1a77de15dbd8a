//! Read-only views of the lines, with names, for explanations.

use std::collections::BTreeMap;

use super::grants::Grants;
use super::waiters::{Party, Waiter};
use crate::engine::claims::InstanceId;
use crate::engine::units::column::Row;
use crate::engine::units::walk::{See, Sight, Walk};
use crate::resource::Supply;
use crate::snapshot::KeySnapshot;

/// An instance and its line.
pub(crate) struct LineSight<'a> {
    pub(crate) in_use: u64,
    /// The number of units in line.
    pub(crate) waiters: u64,
    /// The time at which the first waiter in line began to wait.
    pub(crate) oldest_ns: Option<u64>,
    /// The first units in line: row, stage, amount, and the time at which each began to wait.
    pub(crate) first: Vec<(&'a Row, u16, u64, u64)>,
    /// The time at which a rate will have enough tokens for the first waiter in line. If the line is empty, the time at
    /// which the rate has one token.
    pub(crate) ready_ns: Option<u64>,
}

/// The keys with the most waiters, a few of each resource.
pub(crate) struct BusiestKeys {
    most: usize,
    /// The busiest keys of each resource, busiest first.
    of: BTreeMap<u16, Vec<KeySnapshot>>,
}

impl BusiestKeys {
    pub(crate) fn new(most: usize) -> Self {
        BusiestKeys { most, of: BTreeMap::new() }
    }

    /// Adds a key if it is among the busiest. Copies the name and the key only in this case.
    fn see(&mut self, resource: u16, name: impl FnOnce() -> String, key: &str, (waiters, in_use): (u64, u64)) {
        if waiters + in_use == 0 {
            return;
        }
        let keys = self.of.entry(resource).or_default();
        let place = keys.partition_point(|other| (other.waiters, other.in_use) >= (waiters, in_use));
        if place < self.most {
            keys.insert(place, KeySnapshot { resource: name(), key: key.to_owned(), waiters, in_use });
            keys.truncate(self.most);
        }
    }

    pub(crate) fn into_keys(self) -> Vec<KeySnapshot> {
        self.of.into_values().flatten().collect()
    }
}

impl Grants {
    /// The index of the resource of this name.
    pub(crate) fn resource_named(&self, name: &str) -> Option<u16> {
        (0..).zip(&self.resources).find(|(_, resource)| resource.spec.name == name).map(|(index, _)| index)
    }

    /// The instance of a resource's key, if it exists. If `key` is `None`, the instance is the resource itself.
    pub(crate) fn find_instance(&self, resource: u16, key: Option<&str>) -> Option<InstanceId> {
        match key {
            Some(key) => self.resources[usize::from(resource)].keys.get(key).copied(),
            None => Some(resource.into()),
        }
    }

    /// The key of an instance; `None` if the instance is the resource itself.
    pub(crate) fn key_of(&self, id: InstanceId) -> Option<&str> {
        self.instances[id as usize].key.as_deref()
    }

    /// Up to `most` keys of a resource, in arbitrary order, and the number of all its keys.
    pub(crate) fn some_keys(&self, resource: u16, most: usize) -> (Vec<String>, u64) {
        let keys = &self.resources[usize::from(resource)].keys;
        (keys.keys().take(most).map(ToString::to_string).collect(), keys.len() as u64)
    }

    /// An instance and its line, with the first `most` units in that line.
    pub(crate) fn sight_of(&self, id: InstanceId, most: usize) -> LineSight<'_> {
        let instance = &self.instances[id as usize];
        let units = instance.line.iter().filter_map(|Waiter { party, amount, since_ns }| match party {
            Party::Unit { row, stage } => Some((row, *stage, *amount, *since_ns)),
            Party::Stage(_) => None,
        });
        LineSight {
            in_use: instance.in_use,
            waiters: instance.line.units() as u64,
            oldest_ns: instance.line.front().map(|waiter| waiter.since_ns),
            first: units.take(most).collect(),
            ready_ns: match self.resources[usize::from(instance.resource)].spec.supply {
                Supply::Tokens(_) => None,
                Supply::Rate(rate) => {
                    Some(instance.ready_at(rate, instance.line.front().map_or(1, |head| head.amount)))
                }
            },
        }
    }

    /// Inspects up to `most` instances, beginning with `from`. Returns the next instance to inspect, if there is one.
    pub(crate) fn look_at_keys(&self, from: usize, most: usize, busiest: &mut BusiestKeys) -> Option<usize> {
        let end = from.saturating_add(most).min(self.instances.len());
        for instance in self.instances.get(from..end).into_iter().flatten() {
            if let Some(key) = instance.key.as_deref() {
                let name = || self.resources[usize::from(instance.resource)].spec.name.clone();
                busiest.see(instance.resource, name, key, (instance.line.len() as u64, instance.in_use));
            }
        }
        (end < self.instances.len()).then_some(end)
    }

    /// Passes to `see` the units in all lines.
    pub(crate) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        self.memory().walk(walk, see);
        self.room().walk(walk, see);
        for (index, resource) in (0..).zip(&self.resources) {
            let line = &resource.key_waiters;
            let part = walk.next_list(line.len());
            for (behind, waiter) in line.iter().rev().enumerate().skip(part.start).take(part.len()) {
                let ahead = line.len() - 1 - behind;
                let sight = Sight::ForKeys { resource: index, since_ns: waiter.since_ns, ahead };
                see(&waiter.row, waiter.stage, sight);
            }
        }
        // There may be a hundred thousand keys, so each step inspects only its own part of them.
        let passed = walk.pass(self.instances.len());
        for (id, instance) in (0..).zip(&self.instances).skip(passed) {
            if walk.is_over() {
                break;
            }
            let part = walk.next_list(instance.line.len());
            for (behind, waiter) in instance.line.iter().rev().enumerate().skip(part.start).take(part.len()) {
                let Waiter { party: Party::Unit { row, stage }, amount, since_ns } = waiter else { continue };
                let ahead = instance.line.len() - 1 - behind;
                let sight = Sight::InLine { instance: id, amount: *amount, since_ns: *since_ns, ahead };
                see(row, *stage, sight);
            }
        }
    }
}
