//! The run of a batch: a stage's code, with its types, on a worker that does not hold the flow's mutex.
//!
//! | file | idea |
//! | --- | --- |
//! | `site` | the parts of its flow that running code may use |
//! | `batch_run` | the run of a batch, as a lane sees it |
//! | `settlement` | the results that a worker brings back |
//! | `front` | the payloads that a stage takes, and what happens to a unit whose run fails |
//! | `lane` | a stage's code, with its types |
//! | `advance` | bytes reserved in advance for a batch's growing payloads |
//! | `brood` | the children that one run of a splitting stage produces |
//! | `split` | a splitting stage's code, with its types |
//! | `witness` | a listener to runs and pulls, for traces |
//! | `shards` | a gathering stage's groups, by their keys |
//! | `gather` | a gathering stage's code, with its types |

pub(crate) mod advance;
pub(crate) mod batch_run;
pub(crate) mod brood;
pub(crate) mod front;
pub(crate) mod gather;
pub(crate) mod lane;
pub(crate) mod settlement;
mod shards;
pub(crate) mod site;
pub(crate) mod split;
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "traces are a feature"))]
pub(crate) mod witness;
