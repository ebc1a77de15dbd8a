//! Witnesses: listeners that are told of every run of a batch and every pull of the source, for traces.
//!
//! Each worker has a track of its own, so no worker waits for another worker's lock to report. A flow without a witness
//! pays one branch for each batch.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::settlement::Settlement;
use super::site::Site;
use crate::engine::run::brood::Brood;
use crate::engine::units::column::Row;

/// A listener to the runs of a flow.
pub(crate) trait Witness: Send + Sync {
    /// A new track for the calling worker. If `of_fibers` is set, the track is for all fibers.
    fn track(self: Arc<Self>, of_fibers: bool) -> Box<dyn Track>;
}

/// One worker's handle to the witness.
pub(crate) trait Track: Send {
    /// A fiber has begun to run, `delay_ns` after it was started.
    #[cfg(feature = "fibers")]
    fn fiber_began(&mut self, delay_ns: u64);
    /// The worker has no work, and goes to sleep.
    fn rests(&mut self);
    /// The worker begins a turn, or a pull, at `now`.
    fn begins(&mut self, now: u64);
    /// The worker has run a batch through a stage.
    fn ran(&mut self, ran: &Ran<'_>);
    /// The worker has pulled units from the source, numbered from `first_id` on.
    fn pulled(&mut self, first_id: u64, units: u64, began_ns: u64, ended_ns: u64);
}

/// The run of a batch through one stage, before it is settled.
pub(crate) struct Ran<'a> {
    pub(crate) site: &'a Site,
    pub(crate) stage: u16,
    pub(crate) began_ns: u64,
    /// The batch has gone on from the run that was reported last, so its rows are the same.
    pub(crate) goes_on: bool,
    /// The units are plain (see `Record`), and the run has not changed that.
    pub(crate) plain: bool,
    /// The units. Their records still say what the units asked for in this stage.
    pub(crate) rows: &'a [Row],
    pub(crate) settlement: &'a Settlement,
    /// The index of this run's first entry in [`Settlement::timings`].
    pub(crate) first_timing: usize,
    /// The children that the run has produced, if the stage splits its units.
    pub(crate) brood: Option<&'a Brood>,
}

thread_local! {
    /// The processor time, in ns, that other threads and processes have spent on this thread's units since the thread's
    /// last run was reported.
    static CHARGED_NS: Cell<u64> = const { Cell::new(0) };
    /// The time, in ns, for which the threads and processes counted in `CHARGED_NS` have waited for a processor.
    static DELAYED_NS: Cell<u64> = const { Cell::new(0) };
}

/// Adds processor time that another process or thread has spent on the unit that this thread runs.
pub(crate) fn charge(spent: Duration, delayed: Duration) {
    let add = |cell: &Cell<u64>, time: Duration| cell.set(cell.get().saturating_add(crate::engine::pace::nanos(time)));
    CHARGED_NS.with(|cell| add(cell, spent));
    DELAYED_NS.with(|cell| add(cell, delayed));
}

/// Takes the times charged since the last call: the time spent on a processor, and the time spent waiting for a
/// processor.
pub(crate) fn take_charged() -> (u64, u64) {
    (CHARGED_NS.take(), DELAYED_NS.take())
}
