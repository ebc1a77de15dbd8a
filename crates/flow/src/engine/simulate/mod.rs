//! A flow in simulated time: the scheduler's state machine as it is, driven by a simulation of workers and cores instead
//! of threads.
//!
//! | file | idea |
//! | --- | --- |
//! | `drive` | the events of a simulated run, and the workers that they concern |
//! | `cores` | processor sharing: running code shares the cores evenly |
//! | `meter` | the time that simulated code says it takes |
//!
//! A simulated worker turns the same cycle as a thread (see `cycle`), with two differences: it takes one batch in a turn,
//! and no batch goes through several stages at once. Both save the engine's own time, which a simulation does not have.
//! A stage's code runs at the beginning of its batch and says how long it takes; the batch is settled at the end of that
//! time.

pub(crate) mod cores;
pub(crate) mod drive;
pub(crate) mod meter;
