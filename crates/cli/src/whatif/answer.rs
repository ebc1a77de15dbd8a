//! The numbers of a replay.

use millstream_flow::{ReplayError, Replayed, Trace, WhatIf};
use serde::Serialize;

/// The numbers of a replayed run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) wall_s: f64,
    /// Retired units per second.
    pub(crate) throughput: f64,
    /// The median of the time from a unit's admission until it leaves the flow.
    pub(crate) p50_s: f64,
    /// The 99th percentile of that time.
    pub(crate) p99_s: f64,
    pub(crate) retired: u64,
    pub(crate) dead_lettered: u64,
    /// The bottleneck, in words.
    pub(crate) limit: String,
    /// The minimum time for the work, according to the bottleneck law.
    pub(crate) at_least_s: f64,
    /// The resource that determines this minimum.
    pub(crate) at_least_by: String,
}

impl Answer {
    /// Replays a trace with these changes, and returns the numbers.
    pub(crate) fn to(trace: &Trace, what_if: &WhatIf) -> Result<Self, ReplayError> {
        let (at_least, at_least_by) = trace.at_least(what_if)?;
        let answer = Self::of(trace, &trace.replay(what_if)?);
        Ok(Answer { at_least_s: at_least.as_secs_f64(), at_least_by, ..answer })
    }

    pub(crate) fn of(trace: &Trace, replayed: &Replayed) -> Self {
        let report = &replayed.report;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let steady_s = replayed.steady_wall.as_secs_f64();
        // A window of a live run has neither the start nor the end of the run, so its time is that of the steady part.
        // A sample has the start and the end of the run, but only some of the units between. Each of these represents
        // several units, and the time of the steady part is multiplied by that number.
        let wall_s =
            if trace.is_live() { steady_s } else { report.wall_s + steady_s * (trace.weight() - 1.0).max(0.0) };
        let units = |units: u64| (units as f64 * trace.weight()).round() as u64;
        let retired = units(report.retired);
        Answer {
            wall_s,
            throughput: retired as f64 / wall_s.max(1e-9),
            p50_s: seconds(report.latency_ns.p50),
            p99_s: seconds(report.latency_ns.p99),
            retired,
            dead_lettered: units(report.dead_lettered),
            limit: report.bottleneck.clone(),
            at_least_s: 0.0,
            at_least_by: String::new(),
        }
    }
}
