//! The numbers of a replay.

use millstream_flow::{ReplayError, Replayed, Trace, WhatIf};
use serde::Serialize;

/// The numbers of a run that was replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) wall_s: f64,
    /// Units that retired, a second.
    pub(super) throughput: f64,
    /// A unit's time from its admission to its departure.
    pub(super) p50_s: f64,
    pub(super) p99_s: f64,
    pub(super) retired: u64,
    pub(super) dead_lettered: u64,
    /// The bottleneck, in words.
    pub(super) limit: String,
    /// The least time that the work can take, and on what, by the bottleneck law.
    pub(super) at_least_s: f64,
    pub(super) at_least_by: String,
}

impl Answer {
    /// The numbers of a trace that is replayed with these changes.
    pub(super) fn to(trace: &Trace, what_if: &WhatIf) -> Result<Self, ReplayError> {
        let (at_least, at_least_by) = trace.at_least(what_if)?;
        let answer = Self::of(&trace.replay(what_if)?);
        Ok(Answer { at_least_s: at_least.as_secs_f64(), at_least_by, ..answer })
    }

    pub(super) fn of(replayed: &Replayed) -> Self {
        let report = &replayed.report;
        let seconds = |ns: u64| ns as f64 / 1e9;
        Answer {
            wall_s: report.wall_s,
            throughput: report.retired as f64 / report.wall_s.max(1e-9),
            p50_s: seconds(report.latency_ns.p50),
            p99_s: seconds(report.latency_ns.p99),
            retired: report.retired,
            dead_lettered: report.dead_lettered,
            limit: report.bottleneck.clone(),
            at_least_s: 0.0,
            at_least_by: String::new(),
        }
    }
}
