//! Snapshots as metrics: the grammar of both formats, hostile names, and the counts of a run.

#[path = "support/openmetrics.rs"]
mod openmetrics;

use millstream_flow::metrics::{Exposition, Format};
use millstream_flow::{Failure, Flow, Need, Rate, Retry, Snapshot};
use openmetrics::{Sample, open_metrics, prometheus};

fn text(snapshot: &Snapshot, format: Format) -> String {
    let mut metrics = Exposition::new(String::new(), format).label("run", "r\"\\\n1");
    snapshot.write_metrics(&mut metrics).unwrap();
    metrics.end().unwrap()
}

/// The samples of a snapshot; they are the same in both formats.
fn samples(snapshot: &Snapshot) -> Vec<Sample> {
    let open = open_metrics(&text(snapshot, Format::OpenMetrics)).unwrap();
    assert_eq!(open, prometheus(&text(snapshot, Format::Prometheus)).unwrap());
    assert!(open.iter().all(|sample| sample.label("run") == Some("r\"\\\n1")));
    open
}

fn sum(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&Sample| {
        sample.name == name && labels.iter().all(|(label, value)| sample.label(label) == Some(*value))
    };
    samples.iter().filter(fits).map(|sample| sample.value).sum()
}

/// A flow of stages in a row with hostile names. The first stage needs a token by key.
fn long(stages: usize, keys: u64) -> Flow<u64, u64> {
    let mut flow = Flow::builder::<u64>("f\"\\\n{},=");
    let name = |i: usize| format!("stage \"{i}\"\\\n{{}}=,\u{202e}ü");
    let by_key = flow.keyed_tokens("by\nkey", 1);
    let inlets: Vec<_> = (0..stages).map(|i| flow.inlet::<u64>(&name(i))).collect();
    let done = flow.retire();
    for (i, inlet) in inlets.iter().enumerate() {
        let stage = flow.stage(*inlet, |unit: &mut u64, _| Ok(*unit));
        let stage =
            if i == 0 { stage.need(Need::keyed(by_key, move |unit: &u64| (unit % keys).to_string())) } else { stage };
        match inlets.get(i + 1) {
            Some(next) => stage.to(*next),
            None => stage.to(done),
        };
    }
    flow.max_keys(by_key, 200_000).inflight(200_000);
    flow.build(inlets[0]).unwrap()
}

/// A flow of 60 stages: some units have gone through it, and 10^5 units wait in it, each for a different key.
fn crowded(look: impl FnOnce(&dyn Fn() -> Snapshot)) {
    let service = long(60, 100_000).start();
    let control = service.control();
    service.send_all(0..10_000).unwrap();
    while control.snapshot().retired < 10_000 {
        std::thread::yield_now();
    }
    control.set_capacity("by\nkey", 0).unwrap();
    service.send_all(0..100_000).unwrap();
    while control.snapshot().resources[0].waiters < 100_000 {
        std::thread::yield_now();
    }
    look(&|| control.snapshot());
    control.abandon();
    service.drain();
}

#[test]
fn series_do_not_grow_with_keys_and_units_and_hostile_names_are_escaped() {
    let idle = samples(&long(60, 1).control().snapshot());
    crowded(|snapshot| {
        let crowded = samples(&snapshot());
        // The series for waits and quantiles exist only after the first wait or time has been recorded.
        assert!(crowded.len() <= idle.len() + 60 * (3 * 2 + 2 * 4), "{} and {}", idle.len(), crowded.len());
        assert_eq!(sum(&crowded, "millstream_resource_keys", &[("resource", "by\nkey")]), 100_000.0);
        let first = "stage \"0\"\\\n{}=,\u{202e}ü";
        let waits = [("flow", "f\"\\\n{},="), ("stage", first), ("resource", "by\nkey")];
        assert_eq!(sum(&crowded, "millstream_stage_waiting_for", &waits), 100_000.0);
        let labels = ["run", "flow", "stage", "resource", "outcome", "quantile"];
        assert!(crowded.iter().flat_map(|sample| &sample.labels).all(|(name, _)| labels.contains(&name.as_str())));
    });
}

#[test]
fn the_metrics_of_a_run_account_for_every_unit_and_attempt() {
    let mut flow = Flow::builder("counts");
    // This also tests the names of waits that are not for resources.
    let (memory, worker) = (flow.tokens("memory", 1), flow.rate("a worker", Rate::per_second(1e6).burst(1)));
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    flow.stage(work, |unit: &mut u64, cx| match *unit % 4 {
        0 if cx.attempt() == 1 => Err(Failure::msg("once")),
        1 => Err(Failure::permanent("never")),
        _ => Ok(()),
    })
    .need(Need::tokens(memory, 1))
    .need(Need::tokens(worker, 1))
    .retry(Retry::times(1))
    .to(done);
    let flow = flow.build(work).unwrap();
    let control = flow.control();
    assert_eq!(sum(&samples(&control.snapshot()), "millstream_units_admitted_total", &[]), 0.0);
    let service = flow.start();
    let mut before: Vec<Sample> = Vec::new();
    for _ in 0..20 {
        service.send_all(0..40).unwrap();
        let now = samples(&control.snapshot());
        let rising = |sample: &&Sample| ["_total", "_sum", "_count"].iter().any(|end| sample.name.ends_with(end));
        for then in before.iter().filter(rising) {
            let same = now.iter().find(|sample| (&sample.name, &sample.labels) == (&then.name, &then.labels));
            assert!(same.is_some_and(|now| now.value >= then.value), "{then:?} became {same:?}");
        }
        before = now;
    }
    let report = service.drain();
    let end = samples(&control.snapshot());
    let of = |name: &str, labels: &[(&str, &str)]| sum(&end, name, labels);
    assert_eq!(of("millstream_units_admitted_total", &[("flow", "counts")]), 800.0);
    assert_eq!(of("millstream_units_retired_total", &[]), 600.0);
    assert_eq!(of("millstream_units_dead_lettered_total", &[]), 200.0);
    for (outcome, count) in [("done", 600.0), ("failed", 400.0), ("requeued", 0.0)] {
        assert_eq!(
            of("millstream_stage_attempts_total", &[("stage", "work"), ("outcome", outcome)]),
            count,
            "{outcome}"
        );
    }
    assert_eq!(of("millstream_stage_retries_total", &[]), 200.0);
    let service_s = report.stages[0].service_ns.total as f64 / 1e9;
    assert!((of("millstream_stage_service_seconds_sum", &[]) - service_s).abs() < 1e-6);
    assert_eq!(of("millstream_resource_tokens_per_second", &[("resource", "a worker")]), 1e6);
}

#[test]
fn the_reader_refuses_texts_that_are_not_metrics() {
    for wrong in [
        "a 1\n",
        "# TYPE a gauge\na 1",
        "# TYPE a gauge\na{b=\"c} 1\n",
        "# TYPE a gauge\na{b=\"\\x\"} 1\n",
        "# TYPE a gauge\na{b=\"1\",b=\"2\"} 1\n",
        "# TYPE a gauge\na 1\na 1\n",
        "# TYPE a gauge\nb 1\n",
        "# TYPE a gauge\na 1\n# TYPE a gauge\n",
        "# TYPE a counter\na -1\n",
        "# TYPE a summary\na 1\n",
    ] {
        assert!(prometheus(wrong).is_err(), "{wrong:?}");
        assert!(open_metrics(&format!("{wrong}# EOF\n")).is_err(), "{wrong:?}");
    }
    assert!(open_metrics("# TYPE a counter\na 1\n# EOF\n").is_err(), "a counter without its `_total` suffix");
    assert!(open_metrics("").is_err(), "no end");
}
