//! An instance: a resource without keys, or one key of a resource. Units hold instances and wait for them.

use super::waiters::Waiters;
use crate::resource::{Rate, Supply};

pub(super) struct Instance {
    pub(super) resource: u16,
    /// The number of tokens held.
    pub(super) in_use: u64,
    /// The time at which all tokens of a rate will be back (its "theoretical arrival time").
    pub(super) full_at_ns: u64,
    pub(super) line: Waiters,
    /// The number of units that wait for the instance or hold it; a key without users is forgotten.
    pub(super) users: u32,
    pub(super) key: Option<Box<str>>,
    /// The time of the timer that will serve the waiters of this rate, if one is set.
    pub(super) timer_set_ns: Option<u64>,
    /// The instance is in its resource's list of idle rates.
    pub(super) listed_idle: bool,
}

impl Instance {
    pub(super) fn new(resource: u16, key: Option<Box<str>>) -> Self {
        Instance {
            resource,
            in_use: 0,
            full_at_ns: 0,
            line: Waiters::default(),
            users: 0,
            key,
            timer_set_ns: None,
            listed_idle: false,
        }
    }

    /// Whether `amount` is free now. A need larger than the whole capacity is met when no tokens are in use.
    pub(super) fn has(&self, supply: Supply, amount: u64, now: u64) -> bool {
        match supply {
            Supply::Tokens(capacity) => {
                let fits = || self.in_use.checked_add(amount).is_some_and(|in_use| in_use <= capacity);
                capacity > 0 && (self.in_use == 0 || fits())
            }
            Supply::Rate(rate) => self.ready_at(rate, amount) <= now,
        }
    }

    /// The time at which a rate will have `amount` tokens. For an amount above the rate's burst, this is the time at
    /// which the burst is full.
    pub(super) fn ready_at(&self, rate: Rate, amount: u64) -> u64 {
        let slack = rate.burst.saturating_sub(amount) as f64 * rate.period_ns();
        self.full_at_ns.saturating_sub(slack as u64)
    }
}
