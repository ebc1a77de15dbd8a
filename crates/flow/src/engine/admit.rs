//! Admission: a unit's way in.

use std::collections::VecDeque;

use super::column::Row;
use super::entrance::Wake;
use super::state::{State, Waiter};
use super::unit::{Ask, Grant, Stamp};
use super::waking::Entering;

/// The facts about a unit before it is admitted.
pub(crate) struct Candidate {
    pub(crate) bytes: u64,
    /// The facts that most units lack; boxed, because candidates pass from core to core.
    pub(crate) extra: Option<Box<Extra>>,
}

#[derive(Default)]
pub(crate) struct Extra {
    /// The entry stage's needs for the unit, if they differ by unit.
    pub(crate) asks: Vec<Ask>,
    pub(crate) ticketed: bool,
    /// The time before which the unit must not enter its first queue.
    pub(crate) not_before_ns: u64,
    /// The reason why the entry stage cannot run the unit.
    pub(crate) refused: Option<Box<str>>,
}

impl State {
    /// Whether a unit of `bytes` may enter now. A unit larger than the whole budget enters alone.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.has_room_beside(0, 0, bytes)
    }

    /// Whether this many units with this many bytes together can certainly enter now.
    pub(crate) fn has_room_for_all(&self, units: usize, bytes: u64) -> bool {
        self.in_flight + units as u64 <= self.settings.inflight
            && self.fits(bytes.into())
            && self.entry_place.is_none()
            && self.memory_waiters.is_empty()
    }

    /// Whether a unit of `bytes` could enter if `units` units with `their_bytes` were in flight beside the present
    /// ones.
    pub(crate) fn has_room_beside(&self, units: usize, their_bytes: u64, bytes: u64) -> bool {
        let in_flight = self.in_flight + units as u64;
        let memory = self.fits(u128::from(their_bytes) + u128::from(bytes));
        let place = self.entry_place.is_none_or(|place| {
            let instance = &self.instances[usize::from(place)];
            let capacity = self.resources[usize::from(place)].capacity();
            instance.in_use + (units as u64) < capacity && instance.waiters.is_empty()
        });
        // No newcomer passes a unit that waits for memory.
        let is_turn = self.memory_waiters.is_empty();
        in_flight < self.settings.inflight && (memory || in_flight == 0) && place && is_turn
    }

    /// Whether the byte budget has room for this many bytes beside those in flight.
    pub(crate) fn fits(&self, bytes: u128) -> bool {
        self.bytes + bytes <= self.settings.memory.into()
    }

    /// Accounts for bytes that come into flight.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += u128::from(bytes);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    /// Accounts for bytes that leave.
    pub(crate) fn subtract_bytes(&mut self, bytes: u64) {
        self.bytes -= u128::from(bytes);
    }

    /// Admits a unit into a free row, at the end of `run`, which the caller then enqueues. `place` puts its payload
    /// into the row's cell. Returns whether the unit is plain.
    pub(crate) fn admit(
        &mut self,
        candidate: Candidate,
        run: &mut VecDeque<Row>,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) -> bool {
        let mut row = self.free_row();
        let mut not_before_ns = 0;
        let plain = candidate.bytes == 0 && candidate.extra.is_none();
        if candidate.bytes > 0 {
            self.units.unit(&mut row).weigh(candidate.bytes);
        }
        if let Some(extra) = candidate.extra {
            let unit = self.units.unit(&mut row);
            unit.ticketed = extra.ticketed;
            not_before_ns = extra.not_before_ns;
            if !extra.asks.is_empty() {
                unit.needs().asks = extra.asks;
            }
            if extra.refused.is_some() {
                unit.needs().refused = extra.refused;
            }
        }
        place(&mut row);
        self.stamps.set(&mut row, Stamp::new(self.next_id, now));
        self.next_id += 1;
        self.admit_row(row, plain, not_before_ns, run, now)
    }

    /// Admits a unit whose row is filled and stamped, at the end of `run`, which the caller then enqueues. Returns
    /// whether the unit is plain in its queue, too.
    pub(crate) fn admit_row(
        &mut self,
        mut row: Row,
        plain: bool,
        not_before_ns: u64,
        run: &mut VecDeque<Row>,
        now: u64,
    ) -> bool {
        self.admitted += 1;
        self.in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        if !plain {
            let unit = self.units.unit(&mut row);
            unit.queued_ns = now;
            let bytes = unit.bytes;
            self.add_bytes(bytes);
            self.oversize += u64::from(bytes > self.settings.memory);
        }
        let entry = self.entry;
        if let Some(resource) = self.entry_place {
            let instance = u32::from(resource);
            let grant = Grant { instance, until: entry, from: super::unit::NO_STAGE, amount: 1 };
            if let Some(held) = self.take(grant, now) {
                self.units.unit(&mut row).needs().held.push(held);
            }
        }
        if not_before_ns > now {
            self.delayed += 1;
            self.set_timer(not_before_ns, super::state::TimerAction::Enqueue(row, entry));
        } else {
            run.push_back(row);
        }
        plain && self.entry_place.is_none()
    }

    /// The number of units that may leave the gate before it is the turn of the first submitter at the entrance.
    pub(crate) fn may_leave_the_gate(&self) -> usize {
        // A closed flow admits no submitter from the entrance, so those still in line there hold nothing up.
        if self.is_closed() {
            return usize::MAX;
        }
        let behind = self.entrance.head_is_behind();
        behind.map_or(usize::MAX, |behind| behind.saturating_sub(self.left_the_gate) as usize)
    }

    /// Whether a worker will come by the gate soon (see `gate`).
    pub(crate) fn gate_is_attended(&self) -> bool {
        self.busy_soon > 0 || self.threads.signals > 0
    }

    /// Takes the unit that has waited longest in the entry stage's queue, if its departure makes room for `bytes`. The
    /// unit is still in flight until [`discard`](Self::discard).
    pub(crate) fn drop_oldest(&mut self, bytes: u64, now: u64) -> Option<Row> {
        let entry = self.entry;
        let units = self.units.clone();
        let makes_room = |state: &State, row: &mut Row| {
            let left = state.bytes - u128::from(units.unit(row).bytes);
            state.in_flight <= state.settings.inflight
                && (left + u128::from(bytes) <= state.settings.memory.into() || state.in_flight == 1)
                && state.memory_waiters.is_empty()
        };
        // The oldest unit is the first in one of the lines for the stage's needs, or the first in the queue itself.
        let in_line =
            self.instances.iter_mut().enumerate().filter_map(|(i, instance)| match instance.waiters.front_mut() {
                Some(Waiter::Unit { row, stage }) if *stage == entry => Some((units.unit(row).queued_ns, i)),
                _ => None,
            });
        let in_line = in_line.min();
        let in_queue = self.stages[usize::from(entry)].waiting.oldest_ns();
        match in_line.filter(|(since, _)| in_queue.is_none_or(|oldest| *since <= oldest)) {
            Some((_, i)) => {
                let Some(Waiter::Unit { mut row, stage }) = self.instances[i].waiters.pop_front() else { return None };
                if !makes_room(self, &mut row) {
                    self.instances[i].waiters.push_front(Waiter::Unit { row, stage });
                    return None;
                }
                self.unpark(&mut row, stage, self.instances[i].resource, now);
                self.forget(i as u32, now);
                Some(row)
            }
            None => {
                let mut row = self.pop_waiting(entry)?;
                if makes_room(self, &mut row) {
                    return Some(row);
                }
                self.push_front_waiting(row, entry);
                None
            }
        }
    }

    /// Ends a unit that was given up on outside of a worker.
    pub(crate) fn discard(&mut self, row: Row, now: u64) {
        let entry = self.entry;
        self.stage(entry).stats.dead_lettered += 1;
        self.dead_lettered += 1;
        self.leave(row, now);
        self.flow_on(now);
    }

    /// Takes the ways to wake submitters at the entrance, with their places: the first if it may enter, all if none
    /// ever will.
    pub(crate) fn wake_entering(&mut self) -> Entering {
        match self.is_closed() {
            true => self.entrance.wake_all(),
            false => self.wake_entrance().into_iter().collect(),
        }
    }

    /// Takes the way to wake the first submitter at the entrance, if it may enter.
    fn wake_entrance(&mut self) -> Option<(u64, Wake)> {
        let mut entrance = std::mem::take(&mut self.entrance);
        let may_enter = |bytes, is_source: bool| self.has_room(bytes) && (!is_source || self.wants_more());
        let wake = entrance.wake_head(self.left_the_gate, may_enter);
        self.entrance = entrance;
        wake
    }

    /// Whether admitting more units would keep workers busier. If not, the source may sleep on until half of the flow
    /// is empty: waking it for every unit would cost more than the units do.
    pub(crate) fn wants_more(&self) -> bool {
        let enough = 2 * self.settings.shared_workers as u64;
        let room = self.settings.inflight.saturating_sub(self.in_flight);
        room > 0
            && (room >= self.settings.inflight / 2 || {
                let batch = self.stages[usize::from(self.entry)].batch_target();
                (self.could_run() as u64) < enough * batch as u64
            })
    }

    /// The number of units that could run as soon as a worker is free and their needs are met.
    pub(crate) fn could_run(&self) -> usize {
        self.stages.iter().map(|stage| stage.waiting.len() + stage.granted).sum()
    }
}
