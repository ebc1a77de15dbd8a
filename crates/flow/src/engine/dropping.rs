//! Dropping: under the overload policy that drops the oldest unit, the unit that has waited longest makes room for a
//! newcomer.

use super::grants::waiters::Party;
use super::state::State;
use super::units::column::Row;
use super::units::families::Parting;
use super::units::table::Units;

impl State {
    /// Takes the unit that has waited longest in the entry stage's queue, if its departure makes room for `bytes`. The
    /// unit is still in flight until [`discard`](Self::discard).
    pub(crate) fn drop_oldest(&mut self, bytes: u64, now: u64) -> Option<Row> {
        let State { units, stages, grants, intake, timers, .. } = self;
        let entry = intake.entry();
        let no_memory_line = grants.memory().is_empty();
        let makes_room = |units: &Units, row: &mut Row| {
            no_memory_line && intake.budget().has_room_instead_of(units.record(row).bytes(), bytes)
        };
        // The oldest unit is the first in one of the lines for the stage's needs, or the first in the queue itself.
        let in_line = grants.heads().filter(|&(_, _, stage)| stage == entry);
        let in_line = in_line.map(|(instance, row, _)| (units.record(row).queued_ns(), instance)).min();
        let in_queue = stages.at(entry).oldest_waiting_ns();
        match in_line.filter(|(since, _)| in_queue.is_none_or(|oldest| *since <= oldest)) {
            Some((_, instance)) => {
                let mut waiter = grants.pull_head(instance)?;
                if let Party::Unit { row, .. } = &mut waiter.party
                    && !makes_room(units, row)
                {
                    grants.put_back_head(instance, waiter);
                    return None;
                }
                let waited_ns = now.saturating_sub(waiter.since_ns);
                let Party::Unit { row, .. } = waiter.party else { return None };
                let queued_ns = units.look(&row).queued_ns();
                stages.at_mut(entry).unpark(grants.resource_of(instance), queued_ns, waited_ns);
                grants.drop_user(instance, timers, now);
                Some(row)
            }
            None => {
                let (mut row, queued_ns) = stages.at_mut(entry).pop_waiting(units.spares())?;
                if makes_room(units, &mut row) {
                    return Some(row);
                }
                stages.at_mut(entry).push_front(row, queued_ns);
                None
            }
        }
    }

    /// Removes a unit that [`drop_oldest`](Self::drop_oldest) has taken, and counts it as a dead letter.
    pub(crate) fn discard(&mut self, row: Row, now: u64) {
        self.stages.at_mut(self.intake.entry()).count_dead_letter();
        self.leave(row, Parting::Dead, now);
        self.grant_all(now);
    }
}
