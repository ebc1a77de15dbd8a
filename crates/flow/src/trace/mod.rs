//! Traces record each run of each unit in each stage, so that the flow's run can be [replayed](crate::Trace::replay)
//! with other settings.
//!
//! | file | idea |
//! | --- | --- |
//! | `model` | a flow without its code |
//! | `present` | the model with the current settings |
//! | `tape` | the listener that collects the records of all workers |
//! | `recording` | a trace that is written to a file while its flow runs |
//! | `live` | the trace of the newest units of a running flow |
//! | `sampling` | the choice of the units to record in a long run |
//! | `part` | the units of a batch that are recorded |
//! | `clocks` | the processor time of a worker's runs |
//! | `file` | the file's parts, and how they are read |
//! | `run` | the record of a batch's run |
//! | `ranges` | the numbers of a batch's units |
//! | `bytes` | numbers as bytes |
//! | `events` | a trace as the timelines of its workers |
//! | `costs` | the machine's own costs, measured when a recording begins |
//!
//! A record describes the run of one batch in one stage. For each unit, the record has its number, its time in the
//! stage's code, the part of that time that was processor time, and how its run ended. If the unit has a weight, its
//! own needs or the key of a group, the record has these as well. The record has the time at which the batch began, but
//! not the times at which its units began, because a replay determines those itself.

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
