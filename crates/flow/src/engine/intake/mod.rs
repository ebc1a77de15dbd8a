//! Intake: how units enter a flow, and how much room it has.
//!
//! | file | idea |
//! | --- | --- |
//! | `budget` | units and bytes in flight, and their caps |
//! | `candidate` | the facts about a unit before it is admitted |
//! | `gate` | the ring before admission, used while a worker is expected soon |
//! | `entrance` | the line of submitters that wait for room |
//! | `waking`, `crossing` | how submitters are woken; workers that wait for room in another flow |
//! | `source`, `staging`, `source_state` | the source, the rows that it has filled, and the scheduler's view of it |
//! | `intake` | the interface of the part |

pub(crate) mod budget;
pub(crate) mod candidate;
pub(crate) mod crossing;
pub(crate) mod entrance;
pub(crate) mod gate;
#[expect(clippy::module_inception, reason = "the interface of a part has the name of the part")]
pub(crate) mod intake;
pub(crate) mod source;
pub(crate) mod source_state;
pub(crate) mod staging;
pub(crate) mod waking;
