//! Granted batches: units that have all they need and wait for a worker.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::queue::Taken;
use crate::engine::claims::GrantList;
use crate::engine::units::column::Row;

/// The times at which a batch's units came to the queue, as pairs of time and number of units.
pub(super) type Arrivals = SmallVec<[(u64, u32); 4]>;

pub(super) struct GrantedBatch {
    pub(super) rows: VecDeque<Row>,
    /// All its units are plain (see `Record`).
    pub(super) plain: bool,
    pub(super) arrivals: Arrivals,
    pub(super) permits: GrantList,
    /// The grants that its units hold while they run, if all units have the same needs.
    pub(super) held: GrantList,
    pub(super) opened_ns: u64,
}

impl GrantedBatch {
    pub(super) fn new(rows: VecDeque<Row>, permits: GrantList, now: u64) -> Self {
        GrantedBatch { rows, plain: true, arrivals: Arrivals::new(), permits, held: GrantList::new(), opened_ns: now }
    }

    #[inline]
    pub(super) fn note_arrival(&mut self, taken: &Taken) {
        let units = taken.units as u32;
        self.plain &= taken.plain;
        match self.arrivals.last_mut().filter(|(at, _)| *at == taken.queued_ns) {
            Some((_, n)) => *n += units,
            None => self.arrivals.push((taken.queued_ns, units)),
        }
    }

    /// The time at which the oldest of its units came to the queue.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.arrivals.iter().map(|&(at, _)| at).min()
    }
}

/// A batch as a worker receives it.
pub(crate) struct TakenBatch {
    pub(crate) rows: VecDeque<Row>,
    /// All its units are plain (see `Record`).
    pub(crate) plain: bool,
    /// The grants that are released when the batch ends.
    pub(crate) permits: GrantList,
    /// The batch is expected to end soon.
    pub(crate) soon: bool,
    /// The worker times each unit. If unset, it times the batch as a whole, because the units are so short that reading
    /// the clock for each of them would cost too much.
    pub(crate) time_each: bool,
}
