//! The engine: a scheduler that is a plain state machine, and the threads that drive it.
//!
//! Read [`cycle`] first: a worker's loop, in the order of a unit's path. Its steps are `admit` or `pulling`, `grant`
//! (with `in_order`), `dispatch` and `turn`, `wake`, `run`, and `settle`. Some work spans several of them: `splitting`
//! acts in grant, dispatch and settle, `onward` in run, `gathering` in settle and wake, `growing` in run and grant;
//! `dropping` stands beside admit. The steps call the methods of the parts:
//!
//! | part | keeps |
//! | --- | --- |
//! | `units` | rows, records and stamps of the units in flight |
//! | `stages` | queues, granted batches, seats; which stage a worker serves next |
//! | `grants` | resources, what is held of them, and all lines |
//! | `intake` | the entrance, pulls of the source; units and bytes in flight, and their caps |
//! | `crew` | workers busy, asleep and expected; their turns; the plan of wake-ups |
//! | `ledger` | what became of the units |
//! | `timers` | the moments at which the timekeeper acts |
//! | `life` | the phase of the flow |
//!
//! A part's fields are its own, and no part imports a step. `state` composes the parts. `run` is what happens without
//! the mutex; of the parts, only `crew` knows its `brood` and `settlement`, because a worker's turn keeps what its
//! batches take along and bring back. `explain` and `observe` look and change nothing. `threads` drives everything in
//! real time, and holds the gate and the source, whose code is in `intake`. `claims`, `pace`, `settings`, `histogram`
//! and `identity` are definitions that several parts use.

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
