//! A staged execution engine for one machine.
//!
//! Work **units** flow through explicit **stages**. Each stage has its own **queue**. A unit waits there until it has
//! all the resources that it needs (tokens, a slot at a host, a connection, bytes of memory), and only *then* takes a
//! thread. So a flow never overwhelms a resource, never deadlocks on its thread pool, shows what each unit waits for,
//! and can be steered while it runs.
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
//! | branch, merge, or return to an earlier stage | [`Exit`], [`Inlet`], [`Either`], [`select`] |
//! | make many units from one, or one from many | [`FlowBuilder::split`], [`FlowBuilder::gather`] |
//! | process all units of a source | [`Flow::run`], [`Report`] |
//! | take requests from many threads, or from async code | [`Flow::start`], [`Service`], [`Ticket`] |
//! | retry work, give it up, or limit its time | [`Retry`], [`AfterFailure`], [`Failure`], [`DeadLetter`], [`StageBuilder::timeout`] |
//! | see or change a flow while it runs | [`Control`], [`Snapshot`], [`Snapshots`] |
//! | record a run, and predict the effect of a change | `Flow::record`, `Trace` (feature `trace`) |
//! | let thousands of units wait on few threads | `StageBuilder::fibers` (feature `fibers`) |
//! | export metrics of a flow | [`metrics`], [`Snapshot::write_metrics`] |
//! | ask why a unit does not move | [`Control::explain_unit`], [`Control::explain_line`] |
//! | know why a flow cannot deadlock | [`Plan`], [`BuildError`] |
//!
//! # What it promises
//! - **All or nothing.** A unit gets all its needs at once, and holds none of them while it waits. If units hold
//!   resources across stages, [`FlowBuilder::build`] proves that they acquire them in one order.
//! - **Every wait is bounded.** [`Need`] states the bound for resources, and [`FlowBuilder::memory`] the bound for
//!   bytes.
//! - **Memory is bounded.** The units in flight are capped, which bounds every queue. [`FlowBuilder::memory`] caps
//!   their bytes, too.
//! - **Units are conserved.** `admitted + split = retired + dead_lettered + gathered + left`, checked at the end of
//!   every run, in every build. A panic fails only one unit.
//!
//! # When not to use it
//! For pure computation over data in memory, a work-stealing pool without queues is cheaper per item. For asynchronous
//! I/O on a single thread, an async runtime is cheaper.

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
