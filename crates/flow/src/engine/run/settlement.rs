//! The results that a worker brings back from a batch.
//!
//! Most units of a batch have the same destination, so the settlement names it once, and lists the exceptions.

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
    /// The unit goes to another stage; `bytes` is its weight there if that changes.
    Go { stage: u16, bytes: Option<u64> },
    /// The unit leaves with all work done.
    Retire,
    /// The unit leaves without a result, because its stage skips failures.
    Skip,
    /// The unit failed, and its stage retries it after a pause.
    Retry { pause_ns: u64 },
    /// The unit failed for good; its dead letter is written.
    Dead { stop_flow: bool },
    /// The attempt was cancelled. The unit runs again when this many bytes are available.
    AwaitMemory { wants_bytes: u64 },
    /// The unit returns to the stage's queue after a pause, with its `next_asks`; `bytes` is its weight there if that
    /// changes.
    Requeue { bytes: Option<u64>, pause_ns: u64 },
    /// The unit was split, and more children may follow. `begun` says that the unit has already produced a child.
    Unfold { begun: bool },
    /// The unit was split, and leaves when its children have left. `whole` says that this run has produced all
    /// children.
    Unfolded { whole: bool },
    /// The unit has opened the group with this number, and rests until the group is closed.
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
    /// The end of this run's entries in [`Settlement::timings`].
    pub(crate) timed: usize,
}

/// The results that a worker brings back from one batch.
#[derive(Default)]
pub(crate) struct Settlement {
    // The batch's whole path:
    /// The runs of the batch, one for each stage on its path.
    pub(crate) stage_runs: Vec<StageRun>,
    /// The service times in all these stages, as pairs of nanoseconds per unit and number of units.
    pub(crate) timings: Vec<(u64, u64)>,
    /// The batch's advance (see `advance`).
    pub(crate) advance: AdvancedBytes,
    /// Some units weigh less than the bytes charged to them.
    pub(crate) lighter: bool,
    /// A hash of the key of each unit's group, if the stage gathers by keys and the flow has a witness.
    pub(crate) keys: Vec<u64>,
    /// The units that have already retired (see [`retire_early`]), as pairs of admission time and number of units.
    pub(crate) retired_early: SmallVec<[(u64, u64); 4]>,
    /// The time at which the batch ended.
    pub(crate) ended_ns: u64,
    // Its last stage:
    /// The destination of all units without an exception. [`NO_STAGE`](crate::engine::claims::NO_STAGE): they retire.
    /// [`GATHERED`](crate::engine::claims::GATHERED): they have joined groups, and leave.
    /// [`UNDECIDED`](crate::engine::claims::UNDECIDED): all units are exceptions.
    pub(crate) to: u16,
    /// The units without an exception are plain (see `Record`).
    pub(crate) plain: bool,
    /// The exceptions: the index of a unit in the batch, and its verdict, in ascending order of the indices.
    pub(crate) exceptions: Vec<(u32, Verdict)>,
    /// Notes about groups that members have joined, or that have ended.
    pub(crate) groups: Vec<GroupNote>,
}

/// Retires plain units before they are settled, without the flow's mutex. Their rows go to the worker's pocket, and the
/// settlement only needs to count them.
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
