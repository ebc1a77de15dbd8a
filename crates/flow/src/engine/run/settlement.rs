//! The results that a worker brings back from a batch.
//!
//! Most units of most batches go the same way, so the settlement names that way once, and the exceptions.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::advance::AdvancedBytes;
use crate::engine::units::column::{Column, Row};
use crate::engine::units::groups::GroupNote;
use crate::engine::units::pocket::Pocket;
use crate::engine::units::stamp::Stamp;

/// The outcome of a unit's run in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The unit goes to another stage; `bytes` is its weight there, if that changes.
    Go { stage: u16, bytes: Option<u64> },
    /// The unit leaves, done.
    Retire,
    /// The unit leaves without a result, because its stage skips failures.
    Skip,
    /// The unit failed, and its stage retries it after a pause.
    Retry { pause_ns: u64 },
    /// The unit failed for good; its dead letter is written.
    Dead { stop_flow: bool },
    /// The attempt was cancelled; the unit runs again when this many bytes are available.
    AwaitMemory { wants_bytes: u64 },
    /// It goes back to the stage's queue after a pause, for its `next_asks`; `bytes` is its weight there, if that changes.
    Requeue { bytes: Option<u64>, pause_ns: u64 },
    /// The unit was split, and more children may follow; `begun` says that there was one already.
    Unfold { begun: bool },
    /// The unit was split, and leaves when its children have; `whole` says that this run has brought out all of them.
    Unfolded { whole: bool },
    /// The unit has opened the group of this number, and rests until it is closed.
    Rest { group: u64 },
    /// The unit has joined a group, and leaves.
    Join,
    /// The flow was abandoned, and leaves the unit behind.
    LeftBehind,
}

/// The run of a batch through one stage.
pub(crate) struct StageRun {
    pub(crate) stage: u16,
    pub(crate) busy_ns: u64,
    /// The end of this stage's entries in [`Settlement::timings`].
    pub(crate) timed: usize,
}

/// The results that a worker brings back from one batch.
#[derive(Default)]
pub(crate) struct Settlement {
    // The batch's whole path:
    /// The stages that the batch went through.
    pub(crate) stage_runs: Vec<StageRun>,
    /// Service times of all its stages, as pairs of nanoseconds per unit and number of units.
    pub(crate) timings: Vec<(u64, u64)>,
    /// The bytes that the batch has in advance.
    pub(crate) advance: AdvancedBytes,
    /// Some units weigh less than is charged to them.
    pub(crate) lighter: bool,
    /// A number for the key of each unit's group, if a stage gathers by keys and the flow has a witness.
    pub(crate) keys: Vec<u64>,
    /// Units that have retired already (see [`retire_early`]), as pairs of admission time and number of units.
    pub(crate) retired_early: SmallVec<[(u64, u64); 4]>,
    /// The time at which the batch ended.
    pub(crate) ended_ns: u64,
    // Its last stage:
    /// The destination of all units without an exception; [`NO_STAGE`](crate::engine::claims::NO_STAGE): they retire;
    /// [`GATHERED`](crate::engine::claims::GATHERED): they have joined groups, and leave;
    /// [`UNDECIDED`](crate::engine::claims::UNDECIDED): all units are exceptions.
    pub(crate) to: u16,
    /// The units without an exception are plain (see `Record`).
    pub(crate) plain: bool,
    /// The exceptions: a unit's position in the batch and its verdict, in ascending order.
    pub(crate) exceptions: Vec<(u32, Verdict)>,
    /// Notes about groups that members have joined, or that have ended.
    pub(crate) groups: Vec<GroupNote>,
}

/// Retires plain units ahead of their settlement, without the flow's mutex: their rows go to the worker's pocket, and
/// the settlement only has to count them.
pub(crate) fn retire_early(
    rows: &mut VecDeque<Row>,
    settlement: &mut Settlement,
    stamps: &Column<Stamp>,
    pocket: &mut Pocket,
) {
    for row in rows.iter() {
        let admitted_ns = stamps.stamp(row).admitted_ns();
        match settlement.retired_early.last_mut().filter(|(at, _)| *at == admitted_ns) {
            Some((_, units)) => *units += 1,
            None => settlement.retired_early.push((admitted_ns, 1)),
        }
    }
    pocket.keep(rows.drain(..));
}
