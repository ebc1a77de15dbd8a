//! Replays of a traced run, with other settings and in simulated time.
//!
//! | file | idea |
//! | --- | --- |
//! | `what_if` | the settings that a replay can change |
//! | `script` | what each unit did: its *visits*, each of which is one run in one stage |
//! | `draft` | a script while the trace is being read |
//! | `window` | the complete units of a live trace |
//! | `waiting` | the units of a live trace that have not left yet |
//! | `sample` | a sample of a trace that is too long |
//! | `stand_in` | a flow whose stages do what the script says |
//! | `play` | running a script on the stand-in |
//! | `replayed` | a trace, and its replays |
//! | `loss` | the speed that the machine loses because it does not share its cores perfectly |
//! | `bound` | the least time that the work can take |
//!
//! The engine replays itself: the stand-in is a flow like any other, with the real scheduler's queues, lines, grants,
//! batches and retries (see `engine/simulate`). So a replay follows every rule of the engine. Only the machine is a
//! model: its cores, its wake-ups, and the engine's own work between runs. The time of each unit in a stage is assumed
//! to be the recorded one.

pub(crate) mod bound;
mod draft;
mod loss;
pub(crate) mod play;
pub(crate) mod replayed;
mod sample;
pub(crate) mod script;
pub(crate) mod stand_in;
mod waiting;
pub(crate) mod what_if;
mod window;

#[cfg(test)]
mod tests;
