//! The needs of a stage. A unit must be granted all of them before it takes a worker.

use std::fmt;
use std::sync::Arc;

use crate::inlet::Inlet;
use crate::resource::{Pool, Resource};

type KeyFn<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;
type AmountFn<T> = Arc<dyn Fn(&T) -> u64 + Send + Sync>;

/// The maximum number of bytes that a unit may weigh, and the maximum amount of a resource that [`Need::amount_with`]
/// may compute: 2^48, more than a process can address.
///
/// A unit that exceeds this maximum never runs in that stage. The unit ends there as if it had failed for good,
/// usually with a [`DeadLetter`](crate::DeadLetter) that names the excessive number.
pub const MAX_AMOUNT: u64 = 1 << 48;

/// The time for which a granted need is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// From the grant until the unit's run in the stage ends.
    Unit,
    /// From the grant of a batch's first unit until the batch ends, once for the whole batch.
    Batch,
    /// From the grant until the unit leaves this stage, or its flow.
    Until(u16),
}

/// One need of a stage that takes `T`: a resource, how much of it, for which key, and for how long.
///
/// All needs of a unit are granted at once or not at all; a unit that waits holds none of them.
///
/// Every resource and every key has a line, first come, first served, and a newcomer never takes tokens for which a
/// unit in line waits. There is also a line for new keys ([`FlowBuilder::max_keys`](crate::FlowBuilder::max_keys)). A
/// unit may reach the head of a line and still lack another need. When that has happened eight times, the unit
/// acquires its needs one after the other, in the flow's resource order, and keeps each one that it gets. So a unit
/// passes through at most nine lines, plus one for each of its needs.
///
/// ```
/// # use millstream_flow::*;
/// # let mut flow = Flow::builder::<()>("doc");
/// # let (fetch, parse) = (flow.inlet::<String>("fetch"), flow.inlet::<String>("parse"));
/// let net = flow.tokens("net", 16);
/// let host = flow.keyed_tokens("host", 2);
/// flow.stage(fetch, |url: &mut String, _| Ok(std::mem::take(url)))
///     .need(Need::tokens(net, 1))
///     .need(Need::keyed(host, |url: &String| url.clone()).until(parse))
///     .to(parse);
/// ```
pub struct Need<T> {
    pub(crate) resource: Resource,
    pub(crate) amount: u64,
    pub(crate) amount_with: Option<AmountFn<T>>,
    pub(crate) key: Option<KeyFn<T>>,
    pub(crate) hold: Hold,
    /// The id of the flow whose inlet was passed to [`until`](Self::until).
    until_flow: Option<u64>,
}

impl<T> Need<T> {
    /// Needs `amount` tokens of a resource without keys.
    pub fn tokens(resource: Resource, amount: u64) -> Self {
        Need { resource, amount, amount_with: None, key: None, hold: Hold::Unit, until_flow: None }
    }

    /// Needs one token of a key, which `key` computes from the unit's payload.
    ///
    /// `key` runs once for each unit that enters the stage. If `key` panics, the unit fails as if the previous stage
    /// had panicked.
    pub fn keyed(resource: Resource, key: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        Need { resource, amount: 1, amount_with: None, key: Some(Arc::new(key)), hold: Hold::Unit, until_flow: None }
    }

    /// Needs one object of a pool, once per batch.
    pub fn object<C>(pool: &Pool<C>) -> Self {
        Need { resource: pool.resource, amount: 1, amount_with: None, key: None, hold: Hold::Batch, until_flow: None }
    }

    /// Sets the number of tokens.
    ///
    /// If the capacity is lowered below this number while the flow runs, a unit runs as soon as no token is in use.
    #[must_use]
    pub fn amount(mut self, tokens: u64) -> Self {
        self.amount = tokens;
        self
    }

    /// Sets a function that computes the number of tokens for each unit, at most [`MAX_AMOUNT`]. A unit for which it
    /// returns 0 does not need the resource.
    #[must_use]
    pub fn amount_with(mut self, amount: impl Fn(&T) -> u64 + Send + Sync + 'static) -> Self {
        self.amount_with = Some(Arc::new(amount));
        self
    }

    /// Holds the need from the grant until the unit leaves `stage`, or its flow.
    #[must_use]
    pub fn until<U>(mut self, stage: Inlet<U>) -> Self {
        self.hold = Hold::Until(stage.index);
        self.until_flow = Some(stage.flow);
        self
    }

    /// Takes the need once for a whole batch, and releases it when the batch ends.
    #[must_use]
    pub fn per_batch(mut self) -> Self {
        self.hold = Hold::Batch;
        self
    }

    pub(crate) fn foreign_until(&self, flow: u64) -> bool {
        self.until_flow.is_some_and(|theirs| theirs != flow)
    }

    /// Whether the need differs from unit to unit.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.key.is_some() || self.amount_with.is_some()
    }
}

impl<T> fmt::Debug for Need<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Need")
            .field("resource", &self.resource)
            .field("amount", &self.amount)
            .field("keyed", &self.key.is_some())
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}
