//! The engine: a scheduler that is a plain state machine, and the threads that drive it.
//!
//! Read [`cycle`] first: it is a worker's loop, in the order of a unit's path. Its steps are `admit` or `pulling`,
//! `grant` (with `in_order`), `dispatch` and `turn`, `wake`, `run`, and `settle`. Some work spans several steps:
//! `splitting` acts in grant, dispatch and settle, `onward` in run, `gathering` in settle and wake, and `growing` in
//! run and grant. `dropping` makes room for admit. The steps call the methods of the parts:
//!
//! | part | contains |
//! | --- | --- |
//! | `units` | rows, records and stamps of the units in flight |
//! | `stages` | queues, granted batches, seats; which stage a worker serves next |
//! | `grants` | resources, the amounts held of them, and all lines |
//! | `intake` | the entrance, pulls of the source; units and bytes in flight, and their caps |
//! | `crew` | workers busy, asleep and expected; their turns; the plan of wake-ups |
//! | `ledger` | the outcomes of the units |
//! | `timers` | the moments at which the timekeeper acts |
//! | `life` | the phase of the flow |
//!
//! The fields of a part are private to it, and no part imports a step. `state` composes the parts. `run` is the code
//! that runs without the mutex. Only one part, `crew`, knows the `brood` and `settlement` of `run`, because a worker's
//! turn stores the broods and settlements of its batches. `explain` and `observe` only read the state. `threads` drives
//! everything in real time, and owns the gate and the source, whose code is in `intake`. `claims`, `pace`, `settings`,
//! `histogram` and `identity` are definitions that several parts use.

mod admit;
mod chain;
pub(crate) mod claims;
mod crew;
mod cycle;
mod dispatch;
mod dropping;
mod explain;
mod gathering;
mod grant;
mod grants;
mod growing;
mod histogram;
mod identity;
mod in_order;
pub(crate) mod intake;
mod ledger;
mod life;
mod observe;
mod onward;
pub(crate) mod pace;
mod pulling;
pub(crate) mod run;
pub(crate) mod settings;
mod settle;
#[cfg(feature = "trace")]
pub(crate) mod simulate;
mod splitting;
pub(crate) mod stages;
pub(crate) mod state;
pub(crate) mod threads;
mod timers;
mod turn;
pub(crate) mod units;
mod wake;
