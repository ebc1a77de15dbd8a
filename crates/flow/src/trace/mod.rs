//! Traces record the visits of each unit to each stage, so that the run can be [replayed](crate::Trace::replay) under
//! other settings.
//!
//! | file | idea |
//! | --- | --- |
//! | `model` | a flow without its code |
//! | `present` | the model with the settings of now |
//! | `tape` | the listener that takes the records of all workers |
//! | `recording` | a trace that is written while its flow runs |
//! | `live` | the trace of the newest units of a flow that runs |
//! | `sampling` | the choice of units that are recorded once a run is long |
//! | `part` | the units of a batch that are recorded |
//! | `clocks` | the processor time of a worker's runs |
//! | `file` | the file's parts, and how they are read |
//! | `run` | the record of a batch's run |
//! | `ranges` | the numbers of a batch's units |
//! | `bytes` | numbers as bytes |
//! | `events` | a trace as the timelines of its workers |
//! | `costs` | the machine's own costs, measured when a recording begins |
//!
//! A record holds for each unit its number, its time in the stage's code, the processor's part of that time, and its
//! end. Where they differ from the rule, it also holds the unit's weight, its needs and the key of its group. It does
//! not hold the time at which the unit ran, only the beginning of its batch: a replay determines that time.

pub(crate) mod bytes;
mod clocks;
pub(crate) mod costs;
pub(crate) mod events;
pub(crate) mod file;
pub(crate) mod live;
pub(crate) mod model;
mod part;
pub(crate) mod present;
mod ranges;
pub(crate) mod recording;
pub(crate) mod run;
pub(crate) mod sampling;
pub(crate) mod tape;
