//! The ledger: the outcomes of the flow's units.
//!
//! | file | idea |
//! | --- | --- |
//! | `ledger` | counts, latency, start and end |
//! | `bottleneck` | the limit of a flow, in words |

pub(crate) mod bottleneck;
#[expect(clippy::module_inception, reason = "the part's face is named after the part")]
pub(crate) mod ledger;
