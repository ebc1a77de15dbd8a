//! A staged execution engine for one machine.
//!
//! Work **units** flow through explicit **stages**. Each stage has its own **queue**, which acquires a unit's needs
//! (tokens, a slot at a host, a connection, bytes of memory) *before* a thread is spent on the unit. So a flow never
//! overwhelms a resource, never deadlocks on its thread pool, shows what each unit waits for, and can be steered while
//! it runs.
//!
//! ```
//! use millstream_flow::{Flow, Need};
//!
//! let mut flow = Flow::builder("shout");
//! let disk = flow.tokens("disk", 2);
//! let (load, shout, done) = (flow.inlet("load"), flow.inlet("shout"), flow.retire());
//! flow.stage(load, |path: &mut &str, _| Ok(format!("contents of {path}")))
//!     .need(Need::tokens(disk, 1)) // at most two loads at once, and no thread waits for the disk
//!     .to(shout);
//! flow.stage(shout, |text: &mut String, _| Ok(text.to_uppercase())).to(done);
//!
//! let report = flow.build(load)?.run(["a", "b", "c"]);
//! assert_eq!((report.admitted, report.retired), (3, 3));
//! # Ok::<(), millstream_flow::BuildError>(())
//! ```
//!
//! # Which part do I want?
//! | I want to … | see |
//! | --- | --- |
//! | map a function over many items, with limits | [`parallel_map`] |
//! | build a flow of stages | [`Flow::builder`], [`FlowBuilder`], [`StageBuilder`] |
//! | say what a stage needs | [`Need`], and [`FlowBuilder`] for resources |
//! | branch, join, or return to an earlier stage | [`Exit`], [`Inlet`], [`Either`], [`select`] |
//! | make many units of one, or one of many | [`FlowBuilder::split`], [`FlowBuilder::gather`] |
//! | run all units of a source | [`Flow::run`], [`Report`] |
//! | take requests from many threads, or from async code | [`Flow::start`], [`Service`], [`Ticket`] |
//! | retry, dead-letter, limit the time of failing work | [`Retry`], [`AfterFailure`], [`Failure`], [`DeadLetter`] |
//! | see or change a flow while it runs | [`Control`], [`Snapshot`], [`Snapshots`] |
//! | record a run, and predict what a change would give | `Flow::record`, `Trace` (feature `trace`) |
//! | let units wait by the thousand on few threads | `StageBuilder::fibers` (feature `fibers`) |
//! | export its numbers as metrics | [`metrics`], [`Snapshot::write_metrics`] |
//! | ask why a unit does not move | [`Control::explain_unit`], [`Control::explain_line`] |
//! | know why a flow can't deadlock | [`Plan`], [`BuildError`] |
//!
//! # What it promises
//! - **All or nothing.** A unit gets all its needs at once, and holds none of them while it waits. What it
//!   holds across stages follows an order that [`FlowBuilder::build`] proves to exist.
//! - **Every wait is bounded.** [`Need`] states the bound for resources, [`FlowBuilder::memory`] that for bytes.
//! - **Bounded.** Units in flight and their bytes are capped; so is every queue.
//! - **Conserved.** `admitted + split = retired + dead_lettered + gathered + left`, checked at the end of every run, in every
//!   build. A panic is the failure of one unit.
//!
//! # When not to use it
//! For pure computation over data in memory, a work-stealing pool without queues is cheaper per item. For a
//! single thread of asynchronous I/O, an async runtime is.

mod builder;
mod check;
mod contain;
mod control;
mod cx;
mod draft;
mod engine;
mod entry;
mod exit;
mod explain;
mod failure;
#[cfg(feature = "fibers")]
mod fibers;
mod flow;
mod gather;
mod inlet;
mod limits;
pub mod metrics;
mod need;
mod parallel;
mod plan;
mod policy;
#[cfg(feature = "trace")]
mod replay;
mod report;
mod resource;
mod service;
mod snapshot;
mod snapshots;
mod stage;
mod stage_builder;
mod ticket;
#[cfg(feature = "trace")]
mod trace;

pub use builder::FlowBuilder;
pub use check::error::{BuildError, HoldAndAsk, NeedsCycle};
pub use check::pairs::PlanPairs;
pub use control::{Control, SetError};
pub use cx::Cx;
pub use engine::intake::source::SourceEnd;
pub use exit::{Either, Exit, Retire, Select, select};
pub use explain::{Doing, FoundUnits, Held, LineState, NoLine, NoUnit, UnitPlace, UnitState, WaitsFor};
pub use failure::{Cause, DeadLetter, Failure};
#[cfg(feature = "fibers")]
pub use fibers::{FiberGroup, FiberTrouble, Fibers};
pub use flow::Flow;
pub use gather::Gather;
pub use inlet::Inlet;
pub use limits::{
    DEFAULT_BLOCKING_WORKERS, DEFAULT_FIBER_STACK, DEFAULT_INFLIGHT, DEFAULT_MAX_GROUPS, DEFAULT_MAX_KEYS, MAX_FIBERS,
    MAX_WORKERS, MAX_WORKERS_BY_NEEDS,
};
/// Fibers and their waits, for the code of [stages that run on them](StageBuilder::fibers).
#[cfg(feature = "fibers")]
pub use millstream_fiber as fiber;
pub use need::{MAX_AMOUNT, Need};
pub use parallel::parallel_map;
pub use plan::{Plan, PlanNeed, PlanResource, PlanStage};
pub use policy::{AfterFailure, Batch, Overload, Retry};
#[cfg(feature = "trace")]
pub use serde_json;

#[cfg(feature = "trace")]
pub use replay::play::Replayed;
#[cfg(feature = "trace")]
pub use replay::replayed::{Trace, TracedRun};
#[cfg(feature = "trace")]
pub use replay::what_if::{ReplayError, WhatIf};
pub use report::{Outcome, Report, ResourceReport, StackUse, StageReport};
pub use resource::{Pool, PoolObject, Rate, Resource};
pub use service::{Service, SubmitError, SubmitFuture, Submitter};
pub use snapshot::{KeySnapshot, Phase, Quantiles, ResourceSnapshot, Snapshot, StageSnapshot, WaitedFor, Waiting};
pub use snapshots::Snapshots;
pub use stage::Stage;
pub use stage_builder::StageBuilder;
pub use ticket::{Ticket, Unfinished};
#[cfg(feature = "trace")]
pub use trace::events::write_events;
#[cfg(feature = "trace")]
pub use trace::file::TraceError;
#[cfg(feature = "trace")]
pub use trace::live::LiveTrace;
#[cfg(feature = "trace")]
pub use trace::recording::Recording;
