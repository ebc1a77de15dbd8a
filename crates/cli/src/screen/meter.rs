//! Rates from successive snapshots, and an estimate of the remaining time.
//!
//! A snapshot contains totals, but users want to see how fast the totals grow *now*. [`Meter`] stores the totals of the
//! last few seconds and computes rates from them. The remaining time is estimated only if the total number of units is
//! known, because the source stated it in advance or has ended. Without that number, an estimate would be a guess.

use std::collections::VecDeque;

use millstream_flow::Snapshot;

/// The span of time over which a rate is computed.
const WINDOW_NS: u64 = 3_000_000_000;
/// Rates over a shorter span vary too much to estimate the remaining time.
const YOUNGEST_ESTIMATE_NS: u64 = 1_000_000_000;

/// Totals at one moment.
#[derive(Debug, Clone)]
struct Sample {
    wall_ns: u64,
    gone: u64,
    stages: Vec<u64>,
}

impl Sample {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            wall_ns: snapshot.wall_ns,
            gone: snapshot.retired.saturating_add(snapshot.dead_lettered).saturating_add(snapshot.gathered),
            stages: snapshot.stages.iter().map(|stage| stage.units).collect(),
        }
    }
}

/// The result of a [`Meter`]: units per second, and the remaining time if it can be estimated.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pace {
    /// Units that leave the flow, per second.
    pub gone_per_s: f64,
    /// Units that leave each stage, per second, in the flow's order.
    pub stages_per_s: Vec<f64>,
    /// The total number of units of this run, if that number is known.
    pub total: Option<u64>,
    /// Nanoseconds until all units have left the flow at this pace.
    pub left_ns: Option<u64>,
}

impl Pace {
    /// The mean pace since the flow's start, for a program that has only one snapshot.
    pub(crate) fn mean(snapshot: &Snapshot) -> Self {
        let start = Sample { wall_ns: 0, gone: 0, stages: vec![0; snapshot.stages.len()] };
        Self::between(&start, &Sample::of(snapshot))
    }

    fn between(from: &Sample, to: &Sample) -> Self {
        let span_s = to.wall_ns.saturating_sub(from.wall_ns) as f64 / 1e9;
        let per_s = |a: u64, b: u64| if span_s > 0.0 { b.saturating_sub(a) as f64 / span_s } else { 0.0 };
        Self {
            gone_per_s: per_s(from.gone, to.gone),
            stages_per_s: from.stages.iter().zip(&to.stages).map(|(a, b)| per_s(*a, *b)).collect(),
            total: None,
            left_ns: None,
        }
    }
}

/// Turns successive snapshots of one flow into a [`Pace`].
#[derive(Debug, Default)]
pub(crate) struct Meter {
    samples: VecDeque<Sample>,
}

impl Meter {
    /// Adds the next snapshot. `total` is the number of units that the source will yield, if that number is known.
    pub(crate) fn read(&mut self, snapshot: &Snapshot, total: Option<u64>) -> Pace {
        let now = Sample::of(snapshot);
        // The first sample stays until the second sample is old enough to replace the first, so the window is never too
        // short.
        while self.samples.get(1).is_some_and(|next| now.wall_ns.saturating_sub(next.wall_ns) >= WINDOW_NS) {
            self.samples.pop_front();
        }
        let from = self.samples.front().unwrap_or(&now);
        let mut pace = Pace::between(from, &now);
        // Pieces of split units are also units, and their number grows during the run.
        pace.total = total.map(|total| total.saturating_add(snapshot.split));
        if let Some(total) = pace.total {
            let left = total.saturating_sub(now.gone);
            let old_enough = now.wall_ns.saturating_sub(from.wall_ns) >= YOUNGEST_ESTIMATE_NS;
            if left > 0 && old_enough && pace.gone_per_s > 0.0 {
                pace.left_ns = Some((left as f64 / pace.gone_per_s * 1e9) as u64);
            }
        }
        self.samples.push_back(now);
        pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    fn at(seconds: u64, gone: u64) -> Snapshot {
        let mut s = snapshot();
        s.wall_ns = seconds * 1_000_000_000;
        s.retired = gone;
        s.dead_lettered = 0;
        for stage in &mut s.stages {
            stage.units = gone;
        }
        s
    }

    #[test]
    fn rates_follow_the_last_seconds_and_forget_the_start() {
        let mut meter = Meter::default();
        for second in 0..10 {
            meter.read(&at(second, second * 1000), None);
        }
        for second in 10..=14 {
            meter.read(&at(second, 10_000 + (second - 10) * 10), None);
        }
        let pace = meter.read(&at(15, 10_050), None);
        assert!((pace.gone_per_s - 10.0).abs() < 1e-9, "{pace:?}");
        assert!(pace.stages_per_s.iter().all(|r| (r - 10.0).abs() < 1e-9), "{pace:?}");
        assert!(meter.samples.len() <= 5, "the window is bounded: {}", meter.samples.len());
    }

    #[test]
    fn the_time_left_is_told_only_when_the_total_is_known() {
        let mut meter = Meter::default();
        meter.read(&at(0, 0), None);
        assert_eq!(meter.read(&at(2, 200), None).left_ns, None);
        assert_eq!(meter.read(&at(3, 300), Some(1_000)).left_ns, Some(7_000_000_000));
        assert_eq!(meter.read(&at(4, 1_000), Some(1_000)).left_ns, None, "nothing is left");
    }

    #[test]
    fn a_stalled_flow_has_no_estimate() {
        let mut meter = Meter::default();
        for second in 0..8 {
            meter.read(&at(second, 500), Some(1_000));
        }
        let pace = meter.read(&at(8, 500), Some(1_000));
        assert_eq!((pace.gone_per_s, pace.left_ns), (0.0, None));
    }
}
