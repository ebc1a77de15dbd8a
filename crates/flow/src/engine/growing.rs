//! Growing: a unit takes more bytes while it runs, or waits for them and runs again.
//!
//! If the bytes are not free, the unit is cancelled and joins the line for bytes (see `grants/memory`).

use super::run::advance::AdvancedBytes;
use super::state::State;
use super::units::record::Record;

impl State {
    /// Charges the growth of a payload to the byte budget while the payload's unit runs (see
    /// [`Growth`](super::run::advance::Growth)).
    pub(crate) fn grow(
        &mut self,
        record: &mut Record,
        total_bytes: u64,
        may_wait: bool,
        advance: &mut AdvancedBytes,
        alike: u64,
    ) -> bool {
        self.end_advance(std::mem::take(advance));
        // A unit that is privileged or alone in the flow would gain nothing by waiting, and a unit whose code must not
        // run twice cannot wait. Units of both kinds grow beyond the budget.
        let budget = self.intake.budget_mut();
        let before = record.bytes();
        let fits = budget.fits((total_bytes - before).into());
        let grows = fits || record.is_privileged() || budget.has_one_unit() || !may_wait;
        if grows {
            budget.grow(before, total_bytes);
            record.reweigh(total_bytes);
            advance.left = budget.advance((total_bytes - before).saturating_mul(alike));
        }
        grows
    }

    /// Ends the advance of a batch: releases the unused bytes, and counts the used bytes as bytes of the units.
    pub(crate) fn end_advance(&mut self, AdvancedBytes { left, used }: AdvancedBytes) {
        let budget = self.intake.budget_mut();
        budget.unreserve(0, left + used);
        budget.add_bytes(used);
    }

    /// Lets the first unit in the line for bytes go on, if that is allowed. Returns whether the unit goes on.
    #[inline]
    pub(super) fn serve_memory(&mut self, now: u64) -> bool {
        let Some(head) = self.grants.memory_mut().head() else { return false };
        let budget = self.intake.budget();
        let grows = head.wants_bytes.saturating_sub(self.units.record(&mut head.row).bytes());
        let fits = budget.fits(grows.into());
        // If nothing else in the flow can ever move, waiting would free no bytes, so the unit goes on beyond the
        // budget.
        let is_stuck = || self.is_stuck();
        let is_due = || self.grants.memory().head_is_due(budget.fits(0), now) && self.stages.nothing_moves(now);
        if !fits && !is_stuck() && !is_due() {
            return false;
        }
        let Some(mut waiter) = self.grants.memory_mut().pop(!fits, &mut self.timers, now) else { return false };
        self.units.record(&mut waiter.row).reserve(grows, !fits);
        self.intake.budget_mut().add_bytes(grows);
        self.stages.at_mut(waiter.stage).count_wait_for_memory(waiter.waited_ns(now));
        self.stages.enqueue(waiter.row, waiter.stage, now);
        true
    }
}
