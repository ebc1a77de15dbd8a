//! Threads: what a flow's threads share, how they start, sleep, keep time and end.
//!
//! | file | idea |
//! | --- | --- |
//! | `shared` | the state behind its mutex; how it is unlocked and wake-ups are sent |
//! | `spawn` | starting threads |
//! | `fibers` | workers that are fibers: starting them, and their runtime |
//! | `sleep` | a worker without work |
//! | `clock` | the timekeeper |
//! | `steer` | snapshots, and settings that change during a run |
//! | `source_slot` | the source between pulls |
//! | `ending` | closing, stopping, abandoning, joining |

pub(crate) mod clock;
pub(crate) mod ending;
#[cfg(feature = "fibers")]
pub(crate) mod fibers;
pub(crate) mod shared;
pub(crate) mod sleep;
pub(crate) mod source_slot;
pub(crate) mod spawn;
pub(crate) mod steer;
