//! A resource as the scheduler sees it.

use std::collections::{HashMap, VecDeque};

use crate::engine::claims::InstanceId;
use crate::engine::units::column::Row;
use crate::resource::{ResourceSpec, Supply};
use crate::snapshot::ResourceSnapshot;

pub(super) struct ResourceState {
    pub(super) spec: ResourceSpec,
    /// The resource's position in the order in which a unit acquires its needs one by one.
    pub(super) rank: u16,
    pub(super) keys: HashMap<Box<str>, InstanceId>,
    /// Keys of a rate that had no user and still owed tokens when they were listed here, oldest first.
    pub(super) idle_rates: VecDeque<InstanceId>,
    /// Units whose keys cannot be made yet because the resource has reached its limit of keys.
    pub(super) key_waiters: VecDeque<KeyWaiter>,
    /// A lower bound on the time at which the first idle key may be forgotten.
    pub(super) idle_until_ns: u64,
    pub(super) keys_timer_set: bool,
    /// The number of tokens held, over all keys.
    pub(super) in_use: u128,
    pub(super) peak_in_use: u64,
}

/// A unit that waits for keys to be made.
pub(crate) struct KeyWaiter {
    pub(crate) row: Row,
    pub(crate) stage: u16,
    pub(crate) since_ns: u64,
}

impl ResourceState {
    pub(super) fn new(spec: ResourceSpec, rank: u16) -> Self {
        ResourceState {
            spec,
            rank,
            keys: HashMap::new(),
            idle_rates: VecDeque::new(),
            key_waiters: VecDeque::new(),
            idle_until_ns: u64::MAX,
            keys_timer_set: false,
            in_use: 0,
            peak_in_use: 0,
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        match self.spec.supply {
            Supply::Tokens(tokens) => tokens,
            Supply::Rate(rate) => rate.burst,
        }
    }

    pub(super) fn snapshot(&self, waiters: u64) -> ResourceSnapshot {
        ResourceSnapshot {
            name: self.spec.name.clone(),
            kind: self.spec.kind().into(),
            capacity: self.capacity(),
            rate_per_s: match self.spec.supply {
                Supply::Tokens(_) => None,
                Supply::Rate(rate) => Some(rate.per_second),
            },
            in_use: u64::try_from(self.in_use).unwrap_or(u64::MAX),
            peak_in_use: self.peak_in_use,
            waiters,
            keys: self.keys.len() as u64,
        }
    }
}
