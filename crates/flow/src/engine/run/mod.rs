//! The run of a batch: a stage's code with its types, on a worker that holds no lock of the engine.
//!
//! | file | idea |
//! | --- | --- |
//! | `site` | what running code may reach of its flow |
//! | `settlement` | the results that a worker brings back |
//! | `lane` | a stage's code with its types |

pub(crate) mod lane;
pub(crate) mod settlement;
pub(crate) mod site;
