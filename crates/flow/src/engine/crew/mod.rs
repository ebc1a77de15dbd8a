//! The crew: the flow's workers as the scheduler counts them.
//!
//! | file | idea |
//! | --- | --- |
//! | `post` | kinds of workers; for each, the threads alive, asleep, polling, woken |
//! | `turn_slot` | a worker's turn: its batches, and the stage that the worker has reached |
//! | `watch` | the check that workers expected back soon do come back |
//! | `notes` | notes of the units in batches that run long |
//! | `wakeups` | the plan of wake-ups |
//! | `crew` | the interface of the part |

#[expect(clippy::module_inception, reason = "the interface of a part has the name of the part")]
pub(crate) mod crew;
pub(crate) mod notes;
pub(crate) mod post;
pub(crate) mod turn_slot;
pub(crate) mod wakeups;
pub(crate) mod watch;
