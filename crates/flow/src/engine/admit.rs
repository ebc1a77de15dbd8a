//! Admission: how units from the gate and from the entrance enter the flow.

use std::collections::VecDeque;

use super::claims::{Grant, NO_STAGE};
use super::intake::candidate::Candidate;
use super::intake::entrance::Wake;
use super::intake::gate::TypedGate;
use super::state::State;
use super::units::column::Row;
use super::units::stamp::Stamp;

/// The gate, with its payload type erased.
pub(crate) trait Gate: Send + Sync {
    /// Admits units in the order of their arrival, as long as there is room and no submitter at the entrance came
    /// earlier. Frequent callers check [`is_empty`](Gate::is_empty) first, which does not lock the gate.
    fn admit_from_gate(&self, state: &mut State, now: u64);
    /// Closes the gate and admits all its units when a flow ends, even without room, so that the report counts them.
    fn admit_all(&self, state: &mut State, now: u64);
    /// Closes the gate, and notifies the waiting senders.
    fn close(&self);
    /// The number of waiting units, including units that senders are still putting in. The caller must hold the flow's
    /// mutex.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// ---- room ---------------------------------------------------------------------------------------------

impl State {
    /// Whether a unit of `bytes` may enter now. A unit larger than the whole budget enters alone.
    #[inline]
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.intake.budget().has_room(bytes)
            && self.intake.entry_place().is_none_or(|place| self.grants.has_place(place))
            // No newcomer overtakes a unit that waits for memory.
            && self.grants.memory().is_empty()
            // It does not overtake a unit that waits for room for its children, either.
            && !self.grants.room().is_starved()
    }

    /// Whether `units` units, of `bytes` in total, can certainly enter now.
    #[inline]
    pub(super) fn has_room_for_all(&self, units: usize, bytes: u64) -> bool {
        self.intake.budget().has_room_for_all(units, bytes)
            && self.intake.entry_place().is_none()
            && self.grants.memory().is_empty()
            && !self.grants.room().is_starved()
    }

    /// Whether more units would keep workers busier. If not, the source may sleep until half of the cap on units is
    /// free, because waking it for every unit would cost more than running the units.
    #[inline]
    pub(super) fn wants_more(&self) -> bool {
        let budget = self.intake.budget();
        let room = budget.room();
        room > 0
            && (room >= budget.admission_cap() / 2 || {
                let batch = self.stages.at(self.intake.entry()).batch_target();
                self.stages.could_run() < 2 * self.crew.shared_workers() * batch
            })
    }
}

// ---- admission ----------------------------------------------------------------------------------------

impl State {
    /// Admits units that wait at the gate, if more units would keep workers busier.
    #[inline]
    pub(super) fn admit_from_gate_if_wanted(&mut self, gate: &dyn Gate, now: u64) {
        if self.wants_more() && !gate.is_empty() {
            gate.admit_from_gate(self, now);
        }
    }

    /// Admits a unit into a free row, and appends the row to `arrivals`, which the caller then enqueues. `place` puts
    /// the payload into the row's cell. Returns whether the unit is plain.
    #[inline]
    pub(super) fn admit(
        &mut self,
        candidate: Candidate,
        arrivals: &mut VecDeque<Row>,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) -> bool {
        let mut row = self.units.take_row();
        let plain = candidate.is_plain();
        // A plain unit's record stays untouched, because its cache line may belong to another core.
        let not_before_ns = if plain { 0 } else { candidate.write_to(self.units.record(&mut row)) };
        place(&mut row);
        let id = self.intake.budget_mut().take_ids(1);
        self.units.set_stamp(&mut row, Stamp::new(id, now));
        self.admit_row(row, plain, not_before_ns, arrivals, now)
    }

    /// Admits a unit whose row is filled and stamped, and appends the row to `arrivals`, which the caller then
    /// enqueues. Returns whether the unit is still plain: a unit that holds a slot in a bounded queue is not.
    #[inline]
    pub(super) fn admit_row(
        &mut self,
        mut row: Row,
        plain: bool,
        not_before_ns: u64,
        arrivals: &mut VecDeque<Row>,
        now: u64,
    ) -> bool {
        self.ledger.admit(1);
        self.intake.budget_mut().add_units(1);
        if !plain {
            let record = self.units.record(&mut row);
            record.set_queued_ns(now);
            self.intake.budget_mut().admit_bytes(record.bytes());
        }
        let entry = self.intake.entry();
        let place = self.intake.entry_place();
        if let Some(resource) = place {
            // The check for room covered this slot, and the mutex has been held since, so the slot is free.
            let grant = Grant { instance: u32::from(resource), until: entry, from: NO_STAGE, amount: 1 };
            let held = self.grants.take(grant, &mut self.timers, now);
            self.units.record(&mut row).hold(held);
        }
        if not_before_ns > now {
            self.timers.pause(row, entry, not_before_ns);
        } else {
            arrivals.push_back(row);
        }
        plain && place.is_none()
    }

    /// Puts admitted units into their first queue.
    #[inline]
    pub(super) fn enter(&mut self, rows: VecDeque<Row>, plain: bool, now: u64) {
        self.stages.enqueue_all(rows, plain, self.intake.entry(), self.units.spares(), now);
    }
}

// ---- the gate -----------------------------------------------------------------------------------------

impl<In: Send> TypedGate<In> {
    /// Admits and grants one unit that does not come from the ring. `place` fills all cells of the unit's row except
    /// the payload's cell.
    pub(crate) fn admit_one(
        &self,
        state: &mut State,
        candidate: Candidate,
        unit: In,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) {
        let mut arrivals = state.units.take_list();
        let plain = self.admit_into(state, candidate, unit, &mut arrivals, now, place);
        state.enter(arrivals, plain, now);
        state.grant_all(now);
    }

    #[inline]
    fn admit_into(
        &self,
        state: &mut State,
        candidate: Candidate,
        unit: In,
        arrivals: &mut VecDeque<Row>,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) -> bool {
        state.admit(candidate, arrivals, now, |row| {
            place(row);
            // SAFETY: a flow has one gate, so the entry's column and the row belong to the same flow.
            *unsafe { self.entry().column.cell(row) } = Some(unit);
        })
    }
}

impl<In: Send> Gate for TypedGate<In> {
    fn admit_from_gate(&self, state: &mut State, now: u64) {
        state.ledger.add_wait_for_admission(self.take_waited_ns());
        let mut far_end = self.far_end();
        // A closed flow admits no submitters, so submitters at the entrance do not hold up the gate's units.
        let most = if state.is_closed() { usize::MAX } else { state.intake.may_leave_the_gate() };
        let units = self.waiting().min(most);
        if most == 0 {
            return;
        }
        let waiting_bytes = self.waiting_bytes();
        let mut arrivals = state.units.take_list();
        let (mut bytes, mut plain, mut admitted) = (0, true, 0);
        if units > 0 && !far_end.has_first() && state.has_room_for_all(units, waiting_bytes) {
            // In the common case, one check covers all units.
            for (candidate, unit) in far_end.take_many(units) {
                admitted += 1;
                bytes += candidate.bytes();
                plain &= self.admit_into(state, candidate, unit, &mut arrivals, now, |_| ());
            }
        } else {
            // Even an empty ring is polled, because polling wakes the senders that sleep until the ring has a free
            // slot.
            while admitted < most
                && let Some((candidate, unit)) = far_end.take_next()
            {
                if !state.has_room(candidate.bytes()) {
                    far_end.put_back((candidate, unit));
                    break;
                }
                admitted += 1;
                bytes += candidate.bytes();
                plain &= self.admit_into(state, candidate, unit, &mut arrivals, now, |_| ());
            }
            self.publish_put_back(&far_end);
        }
        self.give_bytes_back(bytes);
        state.intake.count_left_the_gate(admitted);
        state.enter(arrivals, plain, now);
    }

    fn admit_all(&self, state: &mut State, now: u64) {
        let mut far_end = self.far_end();
        far_end.close();
        state.ledger.add_wait_for_admission(self.take_waited_ns());
        let mut arrivals = state.units.take_list();
        while let Some((candidate, unit)) = far_end.take_last() {
            self.admit_into(state, candidate, unit, &mut arrivals, now, |_| ());
        }
        self.publish_put_back(&far_end);
        state.enter(arrivals, false, now);
    }

    fn close(&self) {
        self.far_end().close();
    }

    fn len(&self) -> usize {
        self.waiting()
    }
}

// ---- submitters ---------------------------------------------------------------------------------------

impl State {
    /// Whether the submitter at position `place` (`None`: a newcomer) is the next to be admitted, and there is room for
    /// its unit. Units that came to the gate earlier are admitted first.
    pub(crate) fn may_enter(&mut self, gate: &dyn Gate, place: Option<u64>, bytes: u64, now: u64) -> bool {
        gate.admit_from_gate(self, now);
        self.grant_all(now);
        self.intake.is_turn(place, gate.len()) && self.has_room(bytes)
    }

    /// Whether no submitter is ahead of position `place`, regardless of the units at the gate.
    pub(crate) fn is_next(&self, place: Option<u64>) -> bool {
        self.intake.is_next(place)
    }

    /// Joins the end of the line at the entrance, behind the units at the gate. A submitter that is already in line
    /// only replaces its waker. Returns the replaced waker, which the caller must drop without holding the mutex.
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn wait_at_entrance(
        &mut self,
        place: &mut Option<u64>,
        gate: &dyn Gate,
        bytes: u64,
        is_unticketed: bool,
        wake: Wake,
    ) -> Option<Wake> {
        self.intake.wait(place, gate.len(), bytes, is_unticketed, wake)
    }

    /// Leaves the line at the entrance. Returns the submitter's waker, which the caller must drop without holding the
    /// mutex.
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn leave_entrance(&mut self, place: Option<u64>) -> Option<Wake> {
        self.intake.leave(place)
    }

    /// Adds the time for which a submitter has waited to the total wait for admission.
    pub(crate) fn add_wait_for_admission(&mut self, waited_ns: u64) {
        self.ledger.add_wait_for_admission(waited_ns);
    }
}
