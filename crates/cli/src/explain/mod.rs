//! `millstream explain`: why a unit does not move, or who holds a resource.
//!
//! | file | does |
//! | --- | --- |
//! | [`answer`] | in the run: what the words of the command line mean there, and the flow's answer |
//! | [`page`] | in the client: the answer as lines of text |

pub(crate) mod answer;
pub(crate) mod page;

use millstream_flow::{KeySnapshot, LineState, UnitState};
use serde::{Deserialize, Serialize};

/// The explanation of what was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Explained {
    /// A unit in flight.
    Unit(UnitState),
    /// A resource without keys, or one key.
    Line(LineState),
    /// A resource with keys.
    Keys {
        /// Its name.
        resource: String,
        /// The number of its keys now.
        keys: u64,
        /// Those that most units wait for.
        busiest: Vec<KeySnapshot>,
    },
}
