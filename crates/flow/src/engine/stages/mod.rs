//! Stages as the scheduler sees them: queues, granted batches, seats, and the choice of the next batch.
//!
//! | file | idea |
//! | --- | --- |
//! | `queue` | units that wait, in the order of their arrival |
//! | `parked` | units in lines, and the arrival time of the oldest of them |
//! | `batch` | units that have all they need and wait for a worker |
//! | `auto_batch` | the batch size that the engine chooses in a flow that sets none |
//! | `stats` | counts and distributions |
//! | `stage` | one stage: its queue, its batches, its work in progress |
//! | `open` | the stages that a batch may go on to without returning to the scheduler |
//! | `stages` | the interface of the part: all stages, and which of them a worker serves next |

pub(crate) mod auto_batch;
pub(crate) mod batch;
pub(crate) mod open;
pub(crate) mod parked;
pub(crate) mod queue;
pub(crate) mod stage;
#[expect(clippy::module_inception, reason = "the interface of a part has the name of the part")]
pub(crate) mod stages;
pub(crate) mod stats;
