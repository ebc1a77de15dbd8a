//! Replays of a traced run, under other settings and in simulated time.
//!
//! | file | idea |
//! | --- | --- |
//! | `what_if` | the settings that a replay changes |
//! | `script` | what each unit did |
//! | `draft` | a script while it is read |
//! | `window` | the whole units of a live trace |
//! | `waiting` | the units of a live trace that still wait |
//! | `sample` | a part of a trace that is too long |
//! | `stand_in` | a flow whose stages do what the script says |
//! | `play` | the script as the stand-in performs it |
//! | `replayed` | a trace, and its replays |
//! | `loss` | how far the machine was from sharing its cores perfectly |
//! | `bound` | the least time that the work can take |
//!
//! The engine replays itself: the stand-in is a flow like any other, and its queues, lines, grants, batches and retries
//! are the scheduler's own (see `engine/simulate`). A replay therefore follows every rule of the engine. Only the
//! machine is modelled (its cores, its wake-ups, the engine's own work between runs), and the time of each unit, which is
//! assumed to be the recorded one.

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
