//! The counts of units that entered and left the flow.
//!
//! A unit enters the flow by [`admit`](Ledger::admit) or [`split`](Ledger::split), and leaves it by
//! [`depart`](Ledger::depart). No other code counts units, and all three are called under the flow's mutex. Plain units
//! are counted by the batch, after they have retired (see `run::settlement::retire_early`). A listener that must see
//! each unit leave, such as a journal, must be called in that function, too.

use crate::engine::histogram::Times;
use crate::engine::units::families::Parting;
use crate::snapshot::Quantiles;

pub(crate) struct Ledger {
    admitted: u64,
    split: u64,
    retired: u64,
    skipped: u64,
    dead_lettered: u64,
    gathered: u64,
    latency: Times,
    /// The time at which admission opened.
    started_ns: Option<u64>,
    /// The time at which the flow ended.
    ended_ns: Option<u64>,
    /// The total time that submitters and the source have waited for admission.
    admission_waited_ns: u64,
}

/// The counts at one moment.
pub(crate) struct Counts {
    pub(crate) admitted: u64,
    pub(crate) split: u64,
    pub(crate) retired: u64,
    pub(crate) skipped: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) gathered: u64,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Ledger {
            admitted: 0,
            split: 0,
            retired: 0,
            skipped: 0,
            dead_lettered: 0,
            gathered: 0,
            latency: Times::new(),
            started_ns: None,
            ended_ns: None,
            admission_waited_ns: 0,
        }
    }

    /// Counts units that are admitted.
    #[inline]
    pub(crate) fn admit(&mut self, units: u64) {
        self.admitted += units;
    }

    /// Counts children that entered the flow because their parents were split.
    pub(crate) fn split(&mut self, units: u64) {
        self.split += units;
    }

    /// Counts units that leave in the same way. One call counts the units of a batch that have retired early (see
    /// `run/settlement`), all units of a batch, or a single unit, such as a dead letter.
    #[inline]
    pub(crate) fn depart(&mut self, units: u64, parting: Parting) {
        match parting {
            Parting::Retired => self.retired += units,
            Parting::Skipped => {
                self.retired += units;
                self.skipped += units;
            }
            Parting::Dead => self.dead_lettered += units,
            Parting::Gathered => self.gathered += units,
        }
    }

    /// The number of units that have left.
    pub(crate) fn departures(&self) -> u64 {
        self.retired + self.dead_lettered + self.gathered
    }

    /// Records how long units that were admitted together have been in the flow.
    #[inline]
    pub(crate) fn record_latency(&mut self, admitted_ns: u64, units: u64, now: u64) {
        if units > 0 {
            self.latency.record(now.saturating_sub(admitted_ns), units);
        }
    }

    /// Adds a wait of a submitter, or of the source, to the total wait for admission.
    pub(crate) fn add_wait_for_admission(&mut self, waited_ns: u64) {
        self.admission_waited_ns += waited_ns;
    }

    pub(crate) fn admission_waited_ns(&self) -> u64 {
        self.admission_waited_ns
    }

    pub(crate) fn start(&mut self, now: u64) {
        self.started_ns = Some(now);
    }

    /// Notes the time at which the flow ended. Only the first call counts.
    pub(crate) fn end(&mut self, now: u64) {
        self.ended_ns.get_or_insert(now);
    }

    /// The time from the start to the end; if the flow has not ended, the time until now.
    pub(crate) fn wall_ns(&self, now: u64) -> u64 {
        self.ended_ns.unwrap_or(now).saturating_sub(self.started_ns.unwrap_or(now))
    }

    pub(crate) fn counts(&self) -> Counts {
        let Ledger { admitted, split, retired, skipped, dead_lettered, gathered, .. } = *self;
        Counts { admitted, split, retired, skipped, dead_lettered, gathered }
    }

    pub(crate) fn latency(&self) -> Quantiles {
        self.latency.quantiles()
    }

    /// Asserts that every unit that entered is in flight or was counted when it left.
    #[inline]
    pub(crate) fn assert_conserved(&self, in_flight: u64) {
        assert_eq!(self.admitted + self.split, self.departures() + in_flight, "a unit was lost or counted twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_departure_is_counted_once() {
        let mut ledger = Ledger::new();
        ledger.admit(3);
        ledger.split(4);
        let partings = [(1, Parting::Skipped), (1, Parting::Dead), (2, Parting::Retired), (2, Parting::Gathered)];
        partings.into_iter().for_each(|(units, parting)| ledger.depart(units, parting));
        ledger.assert_conserved(1);
        let Counts { admitted, split, retired, skipped, dead_lettered, gathered } = ledger.counts();
        assert_eq!((admitted, split, retired, skipped, dead_lettered, gathered), (3, 4, 3, 1, 1, 2));
    }

    #[test]
    #[should_panic(expected = "lost or counted twice")]
    fn a_lost_unit_is_noticed() {
        let mut ledger = Ledger::new();
        ledger.admit(2);
        ledger.depart(1, Parting::Retired);
        ledger.assert_conserved(0);
    }

    #[test]
    fn the_clock_of_a_run_stops_at_its_end() {
        let mut ledger = Ledger::new();
        assert_eq!(ledger.wall_ns(9), 0);
        ledger.start(10);
        assert_eq!(ledger.wall_ns(25), 15);
        ledger.end(30);
        ledger.end(40);
        assert_eq!(ledger.wall_ns(99), 20);
    }
}
