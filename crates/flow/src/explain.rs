//! The state of one unit, and of one line: the answer to the question why something does not move.
//!
//! The structs will gain fields; a program that makes some itself, for its tests, fills in a default one.

/// The activity of a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Doing {
    /// It waits in the queue of its stage, or in a line.
    #[default]
    Waiting,
    /// It has all it needs, and waits for a worker or for its batch to fill.
    Granted,
    /// A worker runs it.
    Running,
    /// It pauses before an attempt, or because it asked for a delay.
    Pausing,
    /// Its own work is done, and its children are in flight.
    AwaitingChildren,
    /// It holds a group open.
    AwaitingMembers,
}

/// A unit and its place, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UnitPlace {
    /// The unit's number, as in [`DeadLetter::unit`](crate::DeadLetter::unit).
    pub unit: u64,
    /// Its stage; absent for a unit that waits for its children.
    pub stage: Option<String>,
    /// Its activity there.
    pub doing: Doing,
    /// The amount that it holds, or waits for.
    pub amount: u64,
    /// The time for which it has done so, in nanoseconds.
    pub for_ns: u64,
}

/// A resource without keys, or one key of a resource: who holds it, and who waits for it.
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
    /// For rates: the time until the first in line can have what it waits for; 0 if it is there.
    pub ready_in_ns: Option<u64>,
    /// Tokens held now.
    pub in_use: u64,
    /// The first units that hold some, at most [`Control::EXPLAINED`](crate::Control::EXPLAINED) of them.
    pub holders: Vec<UnitPlace>,
    /// All units found that hold some.
    pub holders_in_all: u64,
    /// Tokens held by units that could not be named: those of batches that end within a moment.
    pub in_use_unnamed: u64,
    /// The number of units in line.
    pub waiters: u64,
    /// The first units in line.
    pub first_in_line: Vec<UnitPlace>,
    /// The time for which the first one has waited.
    pub oldest_ns: Option<u64>,
}

/// The thing that a unit waits for.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "what", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum WaitsFor {
    /// A worker of its stage.
    Worker {
        /// Units before it in the queue; absent for a granted unit.
        ahead: Option<u64>,
        /// Workers in the stage's code.
        busy: u64,
        /// The most workers that the stage may have.
        ceiling: u64,
    },
    /// A resource, in its line.
    Resource {
        /// The amount that it needs.
        amount: u64,
        /// Units before it in line.
        ahead: u64,
        /// The line.
        line: Box<LineState>,
    },
    /// A permit, which the next batch of its stage needs.
    Permit {
        /// Units before it in the stage's queue.
        ahead: u64,
        /// The permit.
        line: Box<LineState>,
    },
    /// The place of a new key: the resource has as many keys as it may.
    Key {
        /// The resource.
        resource: String,
        /// Units before it in line.
        ahead: u64,
        /// Keys that exist.
        keys: u64,
    },
    /// Bytes of the budget.
    Memory {
        /// The weight with which it would run.
        bytes: u64,
        /// Units before it in line.
        ahead: u64,
    },
    /// Room for its children under the caps of the flow.
    Room {
        /// Units of its stage before it in line.
        ahead: u64,
    },
    /// A moment.
    Time {
        /// The time until then, in nanoseconds.
        left_ns: u64,
    },
    /// Its children.
    Children {
        /// Those in flight.
        children: u64,
    },
    /// Members of its group.
    Members,
}

/// Something that a unit holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Held {
    /// The resource's name.
    pub resource: String,
    /// The key, if the resource has keys.
    pub key: Option<String>,
    /// The amount.
    pub amount: u64,
}

/// One unit in flight.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UnitState {
    /// The unit's number.
    pub unit: u64,
    /// Its stage; absent for a unit that waits for its children.
    pub stage: Option<String>,
    /// Its activity there.
    pub doing: Doing,
    /// The time for which it has done so, in nanoseconds; absent where the engine does not keep it.
    pub for_ns: Option<u64>,
    /// The time since its admission.
    pub age_ns: u64,
    /// The thing that it waits for.
    pub waits_for: Option<WaitsFor>,
    /// The things that it holds.
    pub holds: Vec<Held>,
    /// Failed attempts in its present stage.
    pub attempts: u32,
    /// The payload bytes accounted to it.
    pub bytes: u64,
    /// The unit that it was split from.
    pub parent: Option<u64>,
}

/// Units found by their payloads, each with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundUnits<L> {
    /// The first ones; their `amount` is 0.
    pub units: Vec<(UnitPlace, L)>,
    /// All that were found.
    pub in_all: u64,
    /// Units in the hands of workers, which were not searched.
    pub in_hand: u64,
}

/// The reason why a unit was not found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NoUnit {
    /// The number asked for.
    pub unit: u64,
    /// The first number that no unit has had yet: a unit with a lower one has left, is in hand or was pulled just now.
    pub next: u64,
    /// The lowest and the highest number among the units that were seen.
    pub seen: Option<(u64, u64)>,
    /// Units in the hands of workers that were not seen, since their batches should end within a moment, and the most
    /// children that runs may be bringing out.
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
    /// The resource has no keys, and one was given.
    #[error("resource `{resource}` has no keys")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    NotKeyed { resource: String },
    /// The resource has keys, and none was given, or one that no unit uses now.
    #[error("no unit holds or waits for {} of resource `{resource}`, which has {keys} keys now", key.as_ref().map_or_else(|| "it without a key".to_owned(), |key| format!("key `{key}`")))]
    NoKey {
        /// The resource.
        resource: String,
        /// The key asked for.
        key: Option<String>,
        /// The number of keys now.
        keys: u64,
        /// Some of them, in no order.
        some: Vec<String>,
    },
}
