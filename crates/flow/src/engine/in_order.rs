//! Acquisition of needs one after the other, in the resource order. A unit acquires in order after it has too often
//! failed to get all its needs at once (see `grant`).
//!
//! This is only a fallback, because a unit that acquires in order keeps tokens idle while it waits for further needs.
//! Taking all needs at once leaves no token idle, but could starve a unit with many needs.

use super::claims::{NO_STAGE, Step};
use super::grant::Woken;
use super::state::State;
use super::units::column::Row;

impl State {
    /// Lists the unit's needs, and the permits of a batch that it may open, in the resource order.
    pub(super) fn begin_in_order(&mut self, row: &mut Row, stage: u16) {
        let state = self.stages.at(stage);
        let record = self.units.record(row);
        let mut steps: Vec<Step> = state.wants().iter().chain(state.permits()).map(Step::constant).collect();
        for ask in record.asks() {
            match steps.iter_mut().find(|s| s.resource == ask.resource && s.key == ask.key && !s.for_batch) {
                Some(same) => same.amount = same.amount.saturating_add(ask.amount),
                None => steps.push(Step::asked(ask)),
            }
        }
        self.grants.sort_steps(&mut steps);
        record.begin_in_order(steps);
    }

    /// Acquires the unit's remaining needs, and parks the unit at the first need that is not free.
    pub(super) fn acquire_in_order(&mut self, mut row: Row, stage: u16, woken: Woken, now: u64) {
        while let Some(step) = self.units.record(&mut row).next_step() {
            let resource = step.resource;
            let Some(want) = step.want() else {
                // All keys of the resource are looked up together, so the unit never keeps one key alive while it waits
                // for another.
                let State { units, grants, timers, .. } = self;
                let steps = units.record(&mut row).steps_mut();
                if !grants.look_up_steps(resource, steps, woken.for_keys() == Some(resource), timers, now) {
                    return self.park_for_keys(row, stage, resource, now);
                }
                continue;
            };
            if !self.grants.is_free(want.instance, want.amount, None, now) {
                return self.park(row, stage, want, now);
            }
            self.acquire_next(&mut row, stage, now);
        }
        self.end_in_order(row, stage, now);
    }

    /// Takes the unit's next need, which must be free for this unit.
    pub(super) fn acquire_next(&mut self, row: &mut Row, stage: u16, now: u64) {
        let record = self.units.record(row);
        let Some(want) = record.pass_step() else { return };
        // `NO_STAGE` marks the grant as a permit until the batch exists.
        let from = if want.for_batch { NO_STAGE } else { stage };
        record.hold(self.grants.take(want.grant(from), &mut self.timers, now));
    }

    /// Puts the unit, which now has all it needs, into an open batch or into a new batch with the unit's permits.
    fn end_in_order(&mut self, mut row: Row, stage: u16, now: u64) {
        let permits = self.units.record(&mut row).end_in_order();
        let state = self.stages.at_mut(stage);
        if !permits.is_empty() || state.next_unit_opens_batch() {
            state.open_batch(permits, self.units.spares(), &mut self.timers, now);
        }
        self.join_batch(row, stage, now);
    }
}
