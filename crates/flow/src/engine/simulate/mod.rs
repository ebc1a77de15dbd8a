//! A flow in simulated time: the scheduler's real state machine, driven by simulated workers and cores instead of
//! threads.
//!
//! | file | idea |
//! | --- | --- |
//! | `drive` | the events of a simulated run, and its workers |
//! | `cores` | processor sharing: running code shares the cores evenly |
//! | `meter` | the duration that simulated code reports |
//!
//! A simulated worker runs the same cycle as a thread (see `cycle`), with two differences: it takes one batch per turn,
//! and it runs a batch through one stage at a time. Threads take several batches per turn, or take a batch through
//! several stages, to save time in the engine. A simulation does not need these savings. A stage's code runs at the
//! beginning of its batch and reports its duration. The batch is settled at the end of that duration.

pub(crate) mod cores;
pub(crate) mod drive;
pub(crate) mod meter;
