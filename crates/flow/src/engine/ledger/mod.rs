//! The ledger: the outcomes of the flow's units.
//!
//! | file | idea |
//! | --- | --- |
//! | `ledger` | counts, latency, start and end |
//! | `bottleneck` | the limit of a flow, in words |

pub(crate) mod bottleneck;
#[expect(clippy::module_inception, reason = "the interface of a part has the name of the part")]
pub(crate) mod ledger;
