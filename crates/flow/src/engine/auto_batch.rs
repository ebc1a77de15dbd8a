//! The size of batches where a flow sets none.
//!
//! A long batch is good for throughput. A stage's code, and the kernel's code beneath it, are loaded into the
//! core's caches once for all its units instead of once for each, and the flow's mutex is taken once for all.
//! What a core does between two visits to a stage evicts it: an archive's four stages of 10 to 50 µs a unit take
//! 4 % less CPU time in batches of 200 µs than in batches of 20 µs, and those of 50 and 100 µs lie between.
//!
//! A short batch is good for latency: a unit waits for those it is with, in every stage. So a flow that pulls its
//! units from a source, where nobody waits for a single one, has long batches, and a service that is sent its
//! units has short ones. So have stages that block: there the units of a batch would wait one after the other for
//! what others could wait for at the same time.
//!
//! Either way a batch is small enough that every worker gets some of the units in flight: with few in flight, or
//! many workers, that bound is the one that counts. The batches of one turn together are bounded likewise: its units are in flight until
//! it ends or is held up, so a unit that waits in it must leave the others room.
//!
//! What is in one batch runs one after the other. Units that wait for one another need batches of one.

use super::chain::CHAIN_NS;
use super::state::{StageState, State};
use crate::policy::Batch;
use crate::resource::Supply;

/// What a batch should last in a flow that has a source.
const FROM_SOURCE_NS: u64 = 200_000;

/// What it should last in a flow that is sent its units, and in a stage that blocks.
const SHORT_NS: u64 = 20_000;

/// What a stage's batches are like if its flow sets no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AutoBatch {
    lasts_ns: u64,
    units_most: usize,
    /// A worker's share of what may be in flight.
    share: usize,
}

impl AutoBatch {
    /// A unit at a time.
    pub(crate) const ONE: Self = AutoBatch { lasts_ns: 0, units_most: 1, share: 1 };

    /// How many units of `each_ns` make a batch; 0: nobody knows yet.
    fn units(self, each_ns: u64) -> usize {
        self.units_that_last(self.lasts_ns, each_ns)
    }

    fn units_that_last(self, ns: u64, each_ns: u64) -> usize {
        match each_ns {
            0 => 1,
            each => usize::try_from(ns / each).unwrap_or(usize::MAX).clamp(1, self.units_most),
        }
    }
}

impl StageState {
    /// How many units make a full batch.
    pub(crate) fn batch_target(&self) -> usize {
        self.batch.size.unwrap_or_else(|| self.auto.units(self.stats.mean_ns))
    }

    /// The most units that a worker takes in one turn: its share, or a batch.
    pub(crate) fn turn_units(&self) -> usize {
        self.batch_target().max(self.auto.share)
    }

    /// The largest batch that may come to this stage in a chain. Where nobody has set a size, that is a matter of
    /// time alone: a batch that was right for the stage before need not be taken apart.
    pub(crate) fn batch_most_in_chain(&self) -> usize {
        self.batch.size.unwrap_or_else(|| {
            let lasting = self.auto.units_that_last(CHAIN_NS / 2, self.stats.mean_ns);
            self.batch_target().max(lasting)
        })
    }
}

impl State {
    /// Sizes the batches of all stages, after what it depends on has changed.
    pub(crate) fn size_batches(&mut self) {
        let has_source = self.source.is_some();
        let (in_flight, workers) =
            (usize::try_from(self.settings.inflight).unwrap_or(usize::MAX), self.settings.shared_workers);
        for index in 0..self.stages.len() {
            let by_needs = self.batches_by_needs(index);
            let stage = &mut self.stages[index];
            // Workers up to a stage's floor stand beside the shared ones.
            let shared = workers + stage.workers.floor;
            let threads =
                if stage.blocking { stage.workers.ceiling.min(by_needs) } else { stage.workers.ceiling.min(shared) };
            let share = in_flight / threads.max(1);
            let lasts_ns = if has_source && !stage.blocking { FROM_SOURCE_NS } else { SHORT_NS };
            // Two batches for each: one that runs, and one that is next.
            stage.auto = AutoBatch { lasts_ns, units_most: (share / 2).clamp(1, Batch::AUTO_MOST), share };
        }
    }
}

impl State {
    /// How many units, or batches that need permits, the tokens let run at once, if each has its own.
    fn batches_by_needs(&self, stage: usize) -> usize {
        let stage = &self.stages[stage];
        let tokens = stage.wants.iter().chain(&stage.permits).filter_map(|want| {
            match self.resources[usize::from(self.instances[want.instance as usize].resource)].spec.supply {
                Supply::Tokens(tokens) => Some(tokens / want.amount.max(1)),
                Supply::Rate(_) => None,
            }
        });
        tokens.min().map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: AutoBatch = AutoBatch { lasts_ns: FROM_SOURCE_NS, units_most: 16, share: 32 };

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
    fn a_stage_that_nobody_has_measured_gets_a_unit_at_a_time() {
        assert_eq!(AUTO.units(0), 1);
    }
}
