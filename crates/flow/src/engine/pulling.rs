//! Pulling: how units enter the flow from a source that the flow's workers pull.

use std::sync::Arc;
use std::time::Duration;

use super::intake::source::PullOrder;
use super::intake::source_state::SourceState;
use super::intake::staging::Staging;
use super::state::State;
use super::units::column::Row;
use super::units::stamp::Stamp;

impl State {
    /// Whether a worker may pull now: the source is ready, and there is room for a unit.
    #[inline]
    pub(super) fn can_pull(&self) -> bool {
        self.intake.is_ready_to_pull() && self.life.is_running() && self.has_room(1)
    }

    /// Begins a pull that pushes to `staging`, and fills `rows` with free rows for the pulled units.
    pub(super) fn begin_pull(
        &mut self,
        rows: &mut Vec<Row>,
        staging: &Arc<Staging>,
        in_place: bool,
        now: u64,
    ) -> Option<PullOrder> {
        let batch = self.stages.at(self.intake.entry()).batch_target();
        let (pull, chunk) = self.intake.source_mut()?.begin(staging, in_place, batch, now);
        self.crew.begin(pull.is_soon());
        // Rows and numbers are taken beforehand, so the puller needs no lock for them.
        let places = self.intake.entry_place().map_or(usize::MAX, |place| self.grants.units_for(place.into(), 1));
        let units = chunk.min(self.intake.budget().room()).min(places as u64);
        while (rows.len() as u64) < units {
            rows.push(self.units.take_row());
        }
        self.crew.watch(&mut self.timers, now);
        let budget = self.intake.budget_mut();
        let first = Stamp::new(budget.take_ids(units), now);
        let max_bytes = budget.room_for_bytes().max(1);
        self.intake.source_mut()?.set_next_id(first.id() + units);
        Some(PullOrder { max_bytes, first })
    }

    /// Ends a pull, and takes back the unused rows. `open` says that the source may have more units. The next
    /// `grant_all` admits the pulled units.
    pub(super) fn end_pull(&mut self, rows: &mut Vec<Row>, open: bool, now: u64) {
        let unused = rows.len() as u64;
        self.units.free_rows(rows.drain(..));
        let Some(source) = self.intake.source_mut() else { return };
        let (next_id, ended) = (source.next_id(), source.end(open, now));
        self.intake.budget_mut().give_ids_back(next_id, unused);
        if let Some(pull) = ended {
            self.crew.end_pull(pull.is_soon());
        }
    }

    /// Admits pulled units while there is room. Returns whether any unit was admitted.
    #[inline]
    pub(super) fn admit_pulled(&mut self, now: u64) -> bool {
        // The staging is checked last, because its cache line may belong to the core of a worker that pulls.
        let waits = |source: &SourceState| !source.pull_ends_soon() && !source.is_empty();
        if self.life.is_finished() || !self.intake.source().is_some_and(waits) {
            return false;
        }
        let Some(source) = self.intake.take_source() else { return false };
        let admitted = self.admit_rows_of(&source, now);
        self.intake.put_source(source);
        admitted
    }

    fn admit_rows_of(&mut self, source: &SourceState, now: u64) -> bool {
        let staging = source.staging();
        let staged = staging.len();
        let mut left = staged;
        if source.stamps_hold(now) && self.has_room_for_all(staged as usize, 0) {
            left -= self.admit_plain_rows(staging, staged, now);
        }
        let mut arrivals = self.units.take_list();
        let mut all_plain = true;
        for _ in 0..left {
            let (mut row, plain) = staging.first();
            let bytes = if plain { 0 } else { self.units.record(&mut row).bytes() };
            if !self.has_room(bytes) {
                break;
            }
            staging.advance();
            self.restamp(&mut row, now);
            all_plain &= self.admit_row(row, plain, 0, &mut arrivals, now);
        }
        let admitted = left < staged || !arrivals.is_empty();
        self.enter(arrivals, all_plain, now);
        admitted
    }

    /// Admits plain units with the stamps of their pull; there must be room for all of them. Returns their number.
    fn admit_plain_rows(&mut self, staging: &Staging, staged: u64, now: u64) -> u64 {
        let batch = self.stages.at(self.intake.entry()).batch_target();
        let mut left = staged as usize;
        while left > 0 {
            // Each list contains one batch, so dispatch need not split the list.
            let mut arrivals = self.units.take_list();
            arrivals.extend(std::iter::from_fn(|| staging.next_plain()).take(left.min(batch)));
            let units = arrivals.len();
            self.enter(arrivals, true, now);
            left -= units;
            if units < batch {
                break;
            }
        }
        let units = staged - left as u64;
        self.ledger.admit(units);
        self.intake.budget_mut().add_units(units);
        units
    }

    fn restamp(&self, row: &mut Row, now: u64) {
        let id = self.units.stamp(row).id();
        self.units.set_stamp(row, Stamp::new(id, now));
    }

    /// Admits all pulled units when a flow is abandoned, even if there is no room, so that the report counts them.
    pub(super) fn admit_all_pulled(&mut self, now: u64) {
        let Some(source) = self.intake.take_source() else { return };
        let mut arrivals = self.units.take_list();
        for _ in 0..source.staging().len() {
            let (mut row, plain) = source.staging().first();
            source.staging().advance();
            self.restamp(&mut row, now);
            self.admit_row(row, plain, 0, &mut arrivals, now);
        }
        self.intake.put_source(source);
        self.enter(arrivals, false, now);
    }

    /// Takes the worker's slot from a pull that lasts long, so that another worker can use the slot.
    pub(super) fn displace_long_pull(&mut self, now: u64) {
        if self.intake.source_mut().is_some_and(|source| source.displace(now)) {
            self.crew.expect_no_longer();
        }
    }

    /// Whether the timekeeper should check on the source after a while, in case the pull blocks or no worker comes to
    /// pull.
    #[inline]
    pub(super) fn source_needs_watch(&self) -> bool {
        let Some(source) = self.intake.source() else { return false };
        if self.crew.is_watched() {
            return false;
        }
        if source.is_pulling() { source.is_in_place() } else { !self.crew.is_stalled() && self.can_pull() }
    }

    /// Sets a timer at which the timekeeper checks whether workers still come to pull the source.
    pub(super) fn watch_source(&mut self, now: u64) {
        self.crew.watch_source(self.intake.is_pulling(), &mut self.timers, now);
    }

    /// The time for which the end of the flow should still wait for a pull that has lost its worker's slot.
    pub(super) fn pull_grace_remaining(&self, now: u64) -> Option<Duration> {
        let source = self.intake.source().filter(|_| !self.life.is_abandoned())?;
        source.grace_remaining(now)
    }

    /// Adds to the total wait for admission the time during which a lack of room was the only reason not to pull the
    /// source.
    #[inline]
    pub(super) fn note_room(&mut self, now: u64) {
        if self.intake.source().is_none() {
            return;
        }
        let has_room = self.has_room(1);
        let Some(source) = self.intake.source_mut() else { return };
        let waited_ns = source.note_room(has_room, now);
        self.ledger.add_wait_for_admission(waited_ns);
    }

    /// Gives the flow a source.
    pub(super) fn attach_source(&mut self) {
        self.intake.attach();
        self.resize();
    }
}
