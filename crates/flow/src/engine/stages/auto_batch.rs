//! The size of batches where a flow sets none.
//!
//! A long batch is good for throughput. A stage's code, and the kernel's code beneath it, are loaded into the core's
//! caches once for all its units instead of once for each, and the flow's mutex is taken once for all. The work that a
//! core does between two visits to a stage evicts its code: the four stages of an archive, at 10 to 50 µs a unit, take
//! 4 % less CPU time in batches of 200 µs than in batches of 20 µs, and batches of 50 and 100 µs lie between.
//!
//! A short batch is good for latency: in every stage, a unit waits for the others of its batch. A flow that pulls its
//! units from a source, where no client waits for a single one, therefore has long batches, and a service whose units
//! are sent to it has short ones. Stages that block have short ones, too: the units of a batch would wait one after the
//! other for what several workers could wait for at the same time.
//!
//! Either way a batch is small enough that every worker gets some of the units in flight: with few in flight, or many
//! workers, that bound decides. The batches of one turn together are bounded likewise: their units are in flight until
//! the turn ends or is held up, so a unit that waits in it must leave the others room.
//!
//! The units of one batch run one after the other. Units that wait for one another need batches of one.

use crate::policy::Batch;

/// The intended duration of a batch in a flow that has a source.
const FROM_SOURCE_NS: u64 = 200_000;

/// The intended duration of a batch in a flow without a source, and in a stage that blocks.
const SHORT_NS: u64 = 20_000;

/// The shape of a stage's batches if its flow sets no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AutoBatch {
    lasts_ns: u64,
    max_units: usize,
    /// A worker's share of the units that may be in flight.
    share: usize,
}

impl AutoBatch {
    /// Batches of one unit.
    pub(super) const ONE: Self = AutoBatch { lasts_ns: 0, max_units: 1, share: 1 };

    /// The shape of batches in a flow with a source or without, for a stage that blocks or not, whose workers share this
    /// number of units in flight.
    pub(super) fn new(has_source: bool, blocking: bool, share: usize) -> Self {
        let lasts_ns = if has_source && !blocking { FROM_SOURCE_NS } else { SHORT_NS };
        // Each worker gets two batches: one that runs, and one that is next.
        AutoBatch { lasts_ns, max_units: (share / 2).clamp(1, Batch::MAX_AUTO), share }
    }

    /// A worker's share of the units that may be in flight.
    #[inline]
    pub(super) fn share(self) -> usize {
        self.share
    }

    /// The number of units of `each_ns` that make a batch; 0 stands for a stage that has not been measured yet.
    #[inline]
    pub(super) fn units(self, each_ns: u64) -> usize {
        self.units_that_last(self.lasts_ns, each_ns)
    }

    #[inline]
    pub(super) fn units_that_last(self, ns: u64, each_ns: u64) -> usize {
        match each_ns {
            0 => 1,
            each => usize::try_from(ns / each).unwrap_or(usize::MAX).clamp(1, self.max_units),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: AutoBatch = AutoBatch { lasts_ns: FROM_SOURCE_NS, max_units: 16, share: 32 };

    #[test]
    fn a_batch_lasts_as_long_as_it_should() {
        assert_eq!(AUTO.units(50_000), 4);
        assert_eq!(AUTO.units(12_500), 16);
    }

    #[test]
    fn every_worker_gets_some_and_long_units_go_alone() {
        assert_eq!(AUTO.units(1), 16, "no more than the share of a worker");
        assert_eq!(AUTO.units(3_000_000), 1);
    }

    #[test]
    fn an_unmeasured_stage_gets_a_unit_at_a_time() {
        assert_eq!(AUTO.units(0), 1);
    }
}
