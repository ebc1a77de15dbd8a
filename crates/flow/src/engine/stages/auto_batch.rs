//! The batch size that the engine chooses in a flow that sets none.
//!
//! Long batches improve throughput. A stage's code, and the kernel code that it calls, are loaded into the core's
//! caches once for a batch instead of once for each unit. The flow's mutex is also taken only once for a batch. Between
//! two batches of a stage, a core does other work, which evicts the stage's code. For example, the four stages of an
//! archive flow take 10 to 50 µs per unit. They need 4 % less CPU time in batches of 200 µs than in batches of 20 µs.
//! The figures for 50 and 100 µs are in between.
//!
//! Short batches improve latency, because in every stage a unit waits for the other units of its batch. A flow that
//! pulls its units from a source has long batches, since no client waits for a single unit. A service to which clients
//! submit units has short batches. Stages that block have short batches, too, because the units of a batch block one
//! after the other, while units of several batches can block at the same time.
//!
//! Even a long batch is small enough that every worker gets some of the units in flight. This bound takes effect when
//! few units may be in flight or there are many workers. The same bound applies to the batches of one turn together.
//! Their units stay in flight until the turn ends or is held up, so the units in turns must leave room for other units.
//!
//! The units of one batch run one after the other, so units that wait for one another need batches of one.

use crate::policy::Batch;

/// The intended duration of a batch in a flow that has a source.
const FROM_SOURCE_NS: u64 = 200_000;

/// The intended duration of a batch in a flow without a source, and in a stage that blocks.
const SHORT_NS: u64 = 20_000;

/// The shape of a stage's batches in a flow that sets no size.
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

    /// The shape of a stage's batches. `share` is a worker's share of the units that may be in flight.
    pub(super) fn new(has_source: bool, blocking: bool, share: usize) -> Self {
        let lasts_ns = if has_source && !blocking { FROM_SOURCE_NS } else { SHORT_NS };
        // Each worker gets two batches: the batch that runs, and the next batch.
        AutoBatch { lasts_ns, max_units: (share / 2).clamp(1, Batch::MAX_AUTO), share }
    }

    /// A worker's share of the units that may be in flight.
    #[inline]
    pub(super) fn share(self) -> usize {
        self.share
    }

    /// The number of units that make a batch if each unit takes `each_ns`. `each_ns` is 0 for a stage that has not been
    /// measured yet.
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
