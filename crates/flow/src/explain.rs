//! The state of one unit or one line, which explains why units do not move.
//!
//! The structs will gain fields. To construct a value in a test, begin with the default value and set its fields.

/// The activity of a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Doing {
    /// The unit waits in the queue of its stage, or in a line.
    #[default]
    Waiting,
    /// The unit has all it needs, and waits for a worker or for its batch to fill.
    Granted,
    /// A worker runs the unit.
    Running,
    /// The unit pauses before a retry, or because its stage's code asked for a delay.
    Pausing,
    /// The unit has produced all its children, and some are still in flight.
    AwaitingChildren,
    /// The unit represents an open group, and waits for members.
    AwaitingMembers,
}

/// A unit and its location, in brief.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UnitPlace {
    /// The unit's number, as in [`DeadLetter::unit`](crate::DeadLetter::unit).
    pub unit: u64,
    /// The unit's stage; absent for a unit that waits for its children.
    pub stage: Option<String>,
    /// The unit's activity in the stage.
    pub doing: Doing,
    /// The amount of the resource that the unit holds or waits for.
    pub amount: u64,
    /// How long the activity has lasted, in nanoseconds.
    pub for_ns: u64,
}

/// A resource without keys, or one key of a resource: its holders, and the units that wait for it.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LineState {
    /// The resource's name.
    pub resource: String,
    /// The key, if the resource has keys.
    pub key: Option<String>,
    /// `tokens`, `rate`, `keyed tokens`, `keyed rate` or `pool`.
    pub kind: String,
    /// Tokens, objects, or a rate's burst.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// For rates: the time until there are enough tokens for the first in line; 0 if there are enough now.
    pub ready_in_ns: Option<u64>,
    /// Tokens held now.
    pub in_use: u64,
    /// The first units found that hold tokens, at most [`Control::EXPLAINED`](crate::Control::EXPLAINED) of them.
    pub holders: Vec<UnitPlace>,
    /// The number of units found that hold tokens, including units that are not named.
    pub holders_in_all: u64,
    /// Tokens held by units that could not be named, because their batches were about to end.
    pub in_use_unnamed: u64,
    /// The number of units in line.
    pub waiters: u64,
    /// The first units in line.
    pub first_in_line: Vec<UnitPlace>,
    /// How long the first unit in line has waited, in nanoseconds.
    pub oldest_ns: Option<u64>,
}

/// The worker, resource or event that a unit waits for.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "what", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum WaitsFor {
    /// A worker of the unit's stage.
    Worker {
        /// The number of units ahead in the queue; absent for a granted unit.
        ahead: Option<u64>,
        /// Workers in the stage's code.
        busy: u64,
        /// The maximum number of workers of the stage.
        ceiling: u64,
    },
    /// A resource; the unit waits in the line of that resource.
    Resource {
        /// The amount that the unit needs.
        amount: u64,
        /// The number of units ahead in line.
        ahead: u64,
        /// The line in which the unit waits.
        line: Box<LineState>,
    },
    /// A permit, which the next batch of the unit's stage needs.
    Permit {
        /// The number of units ahead in the stage's queue.
        ahead: u64,
        /// The state of the permit's resource.
        line: Box<LineState>,
    },
    /// A free key: the resource has its maximum number of keys.
    Key {
        /// The resource's name.
        resource: String,
        /// The number of units ahead in line.
        ahead: u64,
        /// The number of keys that exist now.
        keys: u64,
    },
    /// Bytes of the budget.
    Memory {
        /// The bytes that the unit would have during its run.
        bytes: u64,
        /// The number of units ahead in line.
        ahead: u64,
    },
    /// Room for the unit's children within the caps of the flow.
    Room {
        /// The number of units of the same stage ahead in line.
        ahead: u64,
    },
    /// The end of a pause.
    Time {
        /// The time until the end, in nanoseconds.
        left_ns: u64,
    },
    /// The unit's children.
    Children {
        /// The number of children in flight.
        children: u64,
    },
    /// Members of the unit's group.
    Members,
}

/// A resource that a unit holds, and the amount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Held {
    /// The resource's name.
    pub resource: String,
    /// The key, if the resource has keys.
    pub key: Option<String>,
    /// The amount that the unit holds.
    pub amount: u64,
}

/// One unit in flight.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UnitState {
    /// The unit's number.
    pub unit: u64,
    /// The unit's stage; absent for a unit that waits for its children.
    pub stage: Option<String>,
    /// The unit's activity in the stage.
    pub doing: Doing,
    /// How long the activity has lasted, in nanoseconds; absent if the engine does not record it.
    pub for_ns: Option<u64>,
    /// The time since the unit's admission, in nanoseconds.
    pub age_ns: u64,
    /// The worker, resource or event that the unit waits for.
    pub waits_for: Option<WaitsFor>,
    /// The resources that the unit holds.
    pub holds: Vec<Held>,
    /// Failed attempts in the unit's current stage.
    pub attempts: u32,
    /// The payload bytes accounted to the unit.
    pub bytes: u64,
    /// The unit that this unit was split from.
    pub parent: Option<u64>,
}

/// Units found by their payloads, each with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundUnits<L> {
    /// The first units found. Their `amount` is 0.
    pub units: Vec<(UnitPlace, L)>,
    /// The number of all units found.
    pub in_all: u64,
    /// The number of units that were not searched, because workers had them.
    pub in_hand: u64,
}

/// The reason why a unit was not found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NoUnit {
    /// The requested number.
    pub unit: u64,
    /// The number that the next unit will get. If a unit with a lower number was not found, it has left, is in a
    /// worker's batch, or was pulled just now.
    pub next: u64,
    /// The lowest and the highest number among the units that the search saw.
    pub seen: Option<(u64, u64)>,
    /// An upper bound on the number of units that the search did not see: units in batches that were about to end, and children
    /// that runs may have been producing.
    pub unseen: u64,
}

/// The reason why a line was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLine {
    /// The flow has no resource of this name.
    #[error("there is no resource `{resource}`: the resources are {known}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    UnknownResource { resource: String, known: String },
    /// A key was given, but the resource has no keys.
    #[error("resource `{resource}` has no keys")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    NotKeyed { resource: String },
    /// The resource has keys, but no key was given, or a key that no unit uses now.
    #[error("no unit holds or waits for {} of resource `{resource}`, which has {keys} keys now", key.as_ref().map_or_else(|| "it without a key".to_owned(), |key| format!("key `{key}`")))]
    NoKey {
        /// The resource.
        resource: String,
        /// The requested key.
        key: Option<String>,
        /// The number of keys now.
        keys: u64,
        /// Some of these keys, in no particular order.
        some: Vec<String>,
    },
}
