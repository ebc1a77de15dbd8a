//! The outcome of a case, as its process reports it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// See the [module](self).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The units that were retired, in the order of their retirement.
    pub retired: Vec<Retired>,
    /// The units that became dead letters, in the order of their failures.
    pub dead: Vec<Dead>,
    /// Messages about stages that failed when they finished at the end of the run.
    pub trouble: Vec<String>,
    /// The indices of the case's responses that were used.
    pub answered: Vec<usize>,
    /// A sentence for each request that the case has no response for.
    pub unanswered: Vec<String>,
}

/// A unit that was retired.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Retired {
    /// The unit's path, line or argument.
    pub unit: String,
    /// The values of the fields that the case's expectations name; fields without a value are left out.
    pub fields: BTreeMap<String, String>,
}

/// A unit that became a dead letter.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dead {
    /// The unit's path, line or argument.
    pub unit: String,
    /// The stage in which the unit failed.
    pub stage: String,
    /// The failure's message.
    pub message: String,
}
