//! The numbers of a replay.

use millstream_flow::Replayed;
use serde::Serialize;

/// The numbers of a run that was replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) wall_s: f64,
    /// Units that retired, a second.
    pub(super) throughput: f64,
    /// A unit's time from its admission to its departure.
    pub(super) p50_s: f64,
    pub(super) p99_s: f64,
    pub(super) retired: u64,
    /// The bottleneck, in words.
    pub(super) limit: String,
}

impl Answer {
    pub(super) fn of(replayed: &Replayed) -> Self {
        let report = &replayed.report;
        let seconds = |ns: u64| ns as f64 / 1e9;
        Answer {
            wall_s: report.wall_s,
            throughput: report.retired as f64 / report.wall_s.max(1e-9),
            p50_s: seconds(report.latency_ns.p50),
            p99_s: seconds(report.latency_ns.p99),
            retired: report.retired,
            limit: report.bottleneck.clone(),
        }
    }
}
