//! `millstream explain`: why a unit does not move, or which units hold a resource.
//!
//! | file | does |
//! | --- | --- |
//! | [`answer`] | in the run: resolves the argument of the command, and gets the flow's answer |
//! | [`page`] | in the client: prints the answer as lines of text |

pub(crate) mod answer;
pub(crate) mod page;

use millstream_flow::{KeySnapshot, LineState, UnitPlace, UnitState};
use serde::{Deserialize, Serialize};

/// An explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Explained {
    /// A unit in flight.
    Unit(UnitState),
    /// A resource without keys, or one key.
    Line(LineState),
    /// A resource with keys.
    Keys {
        /// The resource's name.
        resource: String,
        /// The current number of the resource's keys.
        keys: u64,
        /// The keys with the most waiting units.
        busiest: Vec<KeySnapshot>,
    },
    /// Several units whose text contains the requested text.
    Units {
        /// The requested text.
        text: String,
        /// The first units.
        units: Vec<NamedUnit>,
        /// The number of all units found.
        in_all: u64,
    },
}

/// A unit with its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedUnit {
    /// The unit's path, line or argument, in a form that is safe to show.
    pub(crate) text: String,
    /// The unit's position in the flow.
    #[serde(flatten)]
    pub(crate) place: UnitPlace,
}
