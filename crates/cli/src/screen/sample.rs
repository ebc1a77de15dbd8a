//! Hand-made snapshots and reports for the tests of the screens.

use millstream_flow::{
    Cause, Outcome, Phase, Quantiles, Report, ResourceSnapshot, Snapshot, StageSnapshot, WaitedFor, Waiting,
};

use super::run_report::RunReport;
use super::throughput::{Sample, Throughput};
use crate::causes::{Group, Groups};
use crate::retry::live::RanAgain;
use crate::run::identity::Identity;
use crate::steer::facts::{Change, Steered};

pub(crate) use crate::filled::filled;

/// The facts about a run that are not in the flow's report.
pub(crate) struct RunSample {
    pub(crate) identity: Identity,
    pub(crate) throughput: Throughput,
    pub(crate) causes: Groups,
    pub(crate) steered: Steered,
}

impl RunSample {
    pub(crate) fn new() -> Self {
        let identity = Identity {
            name: "archive-4711".into(),
            flow_file: "/flows/archive.toml".into(),
            folder: "/home/u".into(),
            params: [("out".to_owned(), "/backup".to_owned())].into(),
            inputs: vec!["photos".into()],
            host: "mill".into(),
            started: "2026-11-23T15:00:00Z".into(),
            version: "0.1.0".into(),
        };
        let mut throughput = Throughput::default();
        for (at_s, retired) in [(10.0, 2_000), (20.0, 6_000), (30.0, 6_100), (42.1, 12_398)] {
            throughput.note(Sample { at_s, retired, dead_lettered: 2 });
        }
        let change = Change {
            at: "2026-11-23T15:00:21Z".into(),
            at_s: 21.0,
            user: 1000,
            process: 4712,
            did: vec!["inflight=256 (was 64)".into()],
        };
        let steered = Steered { changes: [change].into(), older: 0 };
        let group = Group {
            stage: "zstd".into(),
            cause: Cause::Error,
            message: "cannot read {path}: `disk` is gone".into(),
            units: 2,
            example: "photos/a".into(),
        };
        Self { identity, throughput, causes: Groups { groups: vec![group], others: 0 }, steered }
    }

    pub(crate) fn of<'a>(&'a self, report: &'a Report) -> RunReport<'a> {
        let Self { identity, throughput, causes, steered } = self;
        RunReport {
            report,
            identity,
            throughput,
            causes,
            steered,
            ran_again: RanAgain::default(),
            metrics_lost: None,
            dead_letters: None,
            gathered: &[],
            page: r#""flow":{"flow":"archive"},"state":{"totals":{}}"#,
        }
    }
}

const STAGES: [&str; 4] = ["read", "blake3", "zstd", "write"];

fn quantiles(p50: u64) -> Quantiles {
    filled!(Quantiles {
        p50: p50,
        p90: p50 * 2,
        p99: p50 * 5,
        max: p50 * 9,
        mean: p50 + p50 / 4,
        count: 1_000,
        total: 1_000 * (p50 + p50 / 4),
    })
}

/// A flow of four stages in the middle of its work, limited by its disk.
pub(crate) fn snapshot() -> Snapshot {
    let stages = STAGES
        .iter()
        .zip(1..)
        .map(|(name, i)| {
            filled!(StageSnapshot {
                name: (*name).to_owned(),
                waiting: 3 * i,
                waiting_for: if i == 4 {
                    vec![filled!(Waiting { resource: "disk".into(), units: 10 })]
                } else {
                    vec![]
                },
                granted: i,
                running: i % 3,
                units: 12_345 - 40 * i,
                failures: if i == 3 { 2 } else { 0 },
                retries: 0,
                dead_lettered: if i == 3 { 2 } else { 0 },
                requeued: 0,
                open_groups: 0,
                torn: 0,
                busy_ns: 2_500_000_000 * i,
                workers_busy: i % 3,
                workers_min: 1,
                workers_max: 4,
                blocking: i == 1,
                oldest_ns: 1_500_000 * i,
                service_ns: quantiles(120_000 * i),
                wait_ns: quantiles(900_000 * i),
                waited_for: vec![filled!(WaitedFor {
                    resource: "a worker".into(),
                    total_ns: 80_000_000 * i,
                    units: 700
                })],
            })
        })
        .collect();
    filled!(Snapshot {
        flow: "archive".into(),
        wall_ns: 42_100_000_000,
        admitted: 12_400,
        split: 0,
        retired: 12_185,
        skipped: 0,
        dead_lettered: 2,
        gathered: 0,
        in_flight: 213,
        inflight_cap: 256,
        bytes_in_flight: 13_107_200,
        memory_cap: 64 << 20,
        peak_in_flight: 256,
        peak_bytes_in_flight: 60 << 20,
        oversize: 1,
        waiting_for_memory: 0,
        delayed: 0,
        phase: Phase::Running,
        workers: 2,
        workers_busy: 2,
        stages: stages,
        resources: vec![
            filled!(ResourceSnapshot {
                name: "disk".into(),
                kind: "tokens".into(),
                capacity: 2,
                rate_per_s: None,
                in_use: 2,
                peak_in_use: 2,
                waiters: 10,
                keys: 0,
            }),
            filled!(ResourceSnapshot {
                name: "api".into(),
                kind: "rate".into(),
                capacity: 10,
                rate_per_s: Some(50.0),
                in_use: 0,
                peak_in_use: 10,
                waiters: 0,
                keys: 0,
            }),
        ],
    })
}

/// The same flow after its end.
pub(crate) fn report() -> Report {
    let mut report = Report::unfinished(&snapshot());
    for stage in &mut report.stages {
        stage.units = 12_398;
        if stage.name == "write" {
            stage.waited_for = vec![
                filled!(WaitedFor { resource: "disk".into(), total_ns: 31_000_000_000, units: 9_000 }),
                filled!(WaitedFor { resource: "a worker".into(), total_ns: 4_000_000_000, units: 11_000 }),
            ];
        }
    }
    report.outcome = Outcome::Complete;
    (report.retired, report.left) = (12_398, 0);
    report.bottleneck = "disk: units waited 31 s for its 2 tokens in write".into();
    report.latency_ns = quantiles(5_000_000);
    report
}
