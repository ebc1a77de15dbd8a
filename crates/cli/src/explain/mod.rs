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
        /// The current number of its keys.
        keys: u64,
        /// The keys that most units wait for.
        busiest: Vec<KeySnapshot>,
    },
    /// Several units with a text.
    Units {
        /// The text asked for.
        text: String,
        /// The first units.
        units: Vec<NamedUnit>,
        /// All units found.
        in_all: u64,
    },
}

/// A unit with its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedUnit {
    /// Its path, line or argument, as it may be shown.
    pub(crate) text: String,
    /// Its place.
    #[serde(flatten)]
    pub(crate) place: UnitPlace,
}
