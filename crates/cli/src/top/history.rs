//! The history of one run: its newest state, and its numbers over the last five minutes.

use std::collections::VecDeque;

use millstream_flow::Snapshot;

use crate::screen::meter::{Meter, Pace};
use crate::steer::facts::Facts;

/// The span of time that the history covers.
pub(crate) const SPAN_NS: u64 = 300_000_000_000;
/// The maximum number of points in a history, two per second.
const MAX_POINTS: usize = 600;

/// The flow at one moment.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    wall_ns: u64,
    /// The number of units that have left the flow.
    gone: u64,
    /// The number of waiting units, by stage.
    waiting: Vec<u64>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct History {
    newest: Option<Snapshot>,
    facts: Facts,
    pace: Pace,
    meter: Meter,
    points: VecDeque<Point>,
    ended: bool,
}

impl History {
    /// Adds the next state.
    pub(crate) fn add(&mut self, now: Snapshot, facts: Facts) {
        // A new run may have the same name.
        if self
            .newest
            .as_ref()
            .is_some_and(|before| now.wall_ns < before.wall_ns || now.stages.len() != before.stages.len())
        {
            *self = Self::default();
        }
        self.pace = self.meter.read(&now, facts.total);
        let gone = now.retired.saturating_add(now.dead_lettered).saturating_add(now.gathered);
        let waiting = now.stages.iter().map(|stage| stage.waiting).collect();
        self.points.push_back(Point { wall_ns: now.wall_ns, gone, waiting });
        let is_old = |point: &Point| now.wall_ns.saturating_sub(point.wall_ns) > SPAN_NS;
        while self.points.len() > MAX_POINTS || self.points.front().is_some_and(is_old) {
            self.points.pop_front();
        }
        (self.newest, self.facts, self.ended) = (Some(now), facts, false);
    }

    /// Marks the run as ended.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the newest state, if there is one.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.newest.as_ref()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the rate at which units left the flow, for each of `columns` equal parts of the last five minutes. A
    /// part before the start of the history is `None`.
    pub(crate) fn rates(&self, columns: usize) -> Vec<Option<f64>> {
        let mut rates = vec![None; columns];
        for (from, to) in self.points.iter().zip(self.points.iter().skip(1)) {
            let span_s = to.wall_ns.saturating_sub(from.wall_ns) as f64 / 1e9;
            if let (Some(column), true) = (self.column(to.wall_ns, columns), span_s > 0.0) {
                let rate = to.gone.saturating_sub(from.gone) as f64 / span_s;
                let cell: &mut Option<f64> = &mut rates[column];
                *cell = Some(cell.map_or(rate, |most| most.max(rate)));
            }
        }
        rates
    }

    /// Returns the maximum number of units that waited in a stage, for each of `columns` equal parts of the last five
    /// minutes.
    pub(crate) fn waiting(&self, stage: usize, columns: usize) -> Vec<Option<f64>> {
        let mut waiting = vec![None; columns];
        for point in &self.points {
            if let (Some(column), Some(&units)) = (self.column(point.wall_ns, columns), point.waiting.get(stage)) {
                let cell: &mut Option<f64> = &mut waiting[column];
                *cell = Some(cell.map_or(units as f64, |most| most.max(units as f64)));
            }
        }
        waiting
    }

    /// Returns the column of a moment. The last column is the present.
    fn column(&self, wall_ns: u64, columns: usize) -> Option<usize> {
        let now_ns = self.points.back()?.wall_ns;
        let back = now_ns.saturating_sub(wall_ns) as f64 / SPAN_NS as f64 * columns as f64;
        columns.checked_sub(1 + back as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    fn at(seconds: u64, retired: u64, waiting: u64) -> Snapshot {
        let mut now = snapshot();
        (now.wall_ns, now.retired, now.dead_lettered) = (seconds * 1_000_000_000, retired, 0);
        now.stages[0].waiting = waiting;
        now
    }

    #[test]
    fn five_minutes_are_kept_and_no_more() {
        let mut history = History::default();
        for second in 0..1_000 {
            history.add(at(second, second * 10, second), Facts::default());
        }
        assert_eq!(history.points.len(), 301);
        let rates = history.rates(10);
        assert!(rates.iter().all(|rate| rate.is_some_and(|rate| (rate - 10.0).abs() < 1e-9)), "{rates:?}");
        assert_eq!(history.waiting(0, 3), [Some(799.0), Some(899.0), Some(999.0)]);
        assert_eq!(history.waiting(99, 2), [None, None]);
        assert!(history.rates(0).is_empty());
    }

    #[test]
    fn a_young_history_fills_from_the_right() {
        let mut history = History::default();
        assert_eq!(history.rates(4), [None; 4]);
        history.add(at(10, 0, 7), Facts::default());
        history.add(at(11, 5, 2), Facts::default());
        assert_eq!(history.rates(4), [None, None, None, Some(5.0)]);
        assert_eq!(history.waiting(0, 4), [None, None, None, Some(7.0)]);
    }

    #[test]
    fn a_run_that_begins_anew_has_a_history_of_its_own() {
        let mut history = History::default();
        history.add(at(100, 900, 7), Facts::default());
        history.end();
        history.add(at(1, 5, 2), Facts::default());
        assert!(!history.has_ended() && history.points.len() == 1);
    }
}
