//! The plan of wake-ups after a change: at most one thread of each kind that now has work.
//!
//! The plan is a value. The scheduler makes it without changing the state, then marks in the state what the plan
//! promises, and unlocks the mutex; only then are the wake-ups sent, so a woken thread does not run into the lock. A
//! woken worker takes its batch and plans in turn, so work spreads over sleeping workers as a chain, not as a herd.

use smallvec::SmallVec;

use super::post::Post;
use crate::engine::intake::entrance::Entering;

#[derive(Default)]
pub(crate) struct Wakeups {
    /// The plan acts on what the last watch has found.
    pub(crate) acts_on_watch: bool,
    /// Workers to wake or to start, at most one for each post.
    pub(crate) workers: SmallVec<[(Post, Call); 2]>,
    /// The timekeeper must wake for a timer at this time.
    pub(crate) clock: Option<u64>,
    pub(crate) entrance: EntranceCall,
    /// The source is to be closed.
    pub(crate) closes_source: bool,
    /// The flow is over, or abandoned with no stage's code running: threads that wait for its end look again.
    pub(crate) over: bool,
    // The rest is filled in when the plan is marked in the state.
    /// The submitters to wake.
    pub(crate) entering: Entering,
    /// The listener for the end of the source is to be told.
    pub(crate) tells_source: bool,
}

/// The call for a worker: one is woken, or a new one started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A sleeper is woken; this many threads must be woken by the system for that.
    Wake { sleepers: usize },
    /// A thread is started.
    Start,
}

/// The submitters at the entrance that are woken.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntranceCall {
    #[default]
    None,
    /// The first one, because it may enter.
    Head,
    /// All, because none ever will.
    All,
}
