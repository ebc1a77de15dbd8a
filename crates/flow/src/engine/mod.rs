//! The engine: rows of units, the scheduler's state, and the threads that serve it.
//!
//! | file | idea |
//! | --- | --- |
//! | `column` | the table of units in flight |
//! | `unit` | the engine's record of a unit |
//! | `state` | everything behind the mutex |
//! | `source`, `staging`, or `entrance`, `gate` → `admit` → `grant` → `dispatch` → `settle` | the way of a unit |
//! | `crossing` | workers that wait for room in another flow |
//! | `settings` | caps and bounds that change during a run |
//! | `queue`, `line`, `key`, `in_order`, `memory` | the places where units wait |
//! | `auto_batch` | the size of batches where a flow sets none |
//! | `lane`, `chain` | a stage's code with its types; a batch that goes through several stages |
//! | `shared`, `waking`, `worker` | threads, and how they wait and are woken |
//! | `pocket` | rows and lists that a worker keeps for reuse |
//! | `stats`, `observe`, `bottleneck` | counts, snapshots and reports |

mod admit;
mod auto_batch;
mod bottleneck;
mod chain;
mod column;
mod crossing;
mod dispatch;
mod entrance;
mod gate;
mod grant;
mod in_order;
mod key;
mod lane;
mod line;
mod memory;
mod observe;
mod pocket;
mod queue;
mod settings;
mod settle;
mod shared;
mod source;
mod staging;
mod state;
mod stats;
mod unit;
mod waking;
mod worker;

pub(crate) use admit::{Candidate, Extra};
pub(crate) use column::Column;
pub(crate) use column::Row;
pub(crate) use crossing::Crossing;
pub(crate) use entrance::Wake;
pub(crate) use gate::{Gate, Staged, TypedGate};
pub(crate) use lane::Body;
pub(crate) use lane::{Lane, Making, TicketBook, TypedLane, Updating};
pub(crate) use settings::{LiveSettings, Settings, Workers};
pub(crate) use shared::{Parts, Shared, StageConfig};
pub use source::SourceEnd;
pub(crate) use source::{Source, TypedSource};
pub(crate) use state::{StageSetup, State};
pub(crate) use unit::UnitRef;
pub(crate) use unit::{Ask, NO_STAGE, Want, Wants};
