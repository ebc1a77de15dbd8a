//! The plan of wake-ups after a change. It wakes at most one thread of each kind that now has work.
//!
//! The plan is a value. The scheduler makes it without changing the state, then records the planned wake-ups in the
//! state, and unlocks the mutex. The wake-ups are carried out only after that, so a woken thread does not find the
//! mutex locked. A woken worker takes its batch and then makes a plan of its own. So the sleeping workers wake one
//! after the other, not all at once.

use smallvec::SmallVec;

use super::post::Post;
use crate::engine::intake::entrance::Entering;

#[derive(Default)]
pub(crate) struct Wakeups {
    /// A shared worker is wanted, so the result of the last watch (see `watch`) has been used.
    pub(crate) acts_on_watch: bool,
    /// The workers to wake or to start, at most one for each post.
    pub(crate) workers: SmallVec<[(Post, Call); 2]>,
    /// The timekeeper must wake for a timer at this time.
    pub(crate) clock: Option<u64>,
    pub(crate) entrance: EntranceCall,
    /// The source must be closed.
    pub(crate) closes_source: bool,
    /// The flow is over, or it is abandoned and no stage's code runs. Threads that wait for the end of the flow must
    /// check the state again.
    pub(crate) over: bool,
    // The remaining fields are filled in when the plan is marked in the state.
    /// The submitters to wake.
    pub(crate) entering: Entering,
    /// The listener for the end of the source must be told.
    pub(crate) tells_source: bool,
}

/// How to call a worker: wake a sleeper, or start a new thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A sleeper is woken. The system must wake `sleepers` threads: none if a polling sleeper will take the wake-up.
    Wake { sleepers: usize },
    /// A thread is started.
    Start,
}

/// The submitters at the entrance to wake.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntranceCall {
    #[default]
    None,
    /// The first submitter, because it may enter.
    Head,
    /// All submitters, because none will ever enter.
    All,
}
