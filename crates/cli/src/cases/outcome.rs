//! The outcome of a case, as its process tells it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// See the [module](self).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The units that were retired, in this order.
    pub retired: Vec<Retired>,
    /// The units that became dead letters, in this order.
    pub dead: Vec<Dead>,
    /// Failures at the end of the run.
    pub trouble: Vec<String>,
    /// Which answers of the case were given.
    pub answered: Vec<usize>,
    /// A sentence for each request that the case has no answer for.
    pub unanswered: Vec<String>,
}

/// A unit that was retired.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Retired {
    /// Its path, line or argument.
    pub unit: String,
    /// The fields that the case has expectations of, without those that have no value.
    pub fields: BTreeMap<String, String>,
}

/// A unit that became a dead letter.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dead {
    /// Its path, line or argument.
    pub unit: String,
    /// The stage that it failed in.
    pub stage: String,
    /// The failure's message.
    pub message: String,
}
