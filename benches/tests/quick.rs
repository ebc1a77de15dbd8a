//! Every workload runs to its end and reports every competitor. The times do not matter here.

use std::process::Command;

/// Runs the program with `args` at tiny sizes, and returns its report.
fn report(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream-benches"))
        .args(args)
        .args(["--quick", "--rounds", "2"])
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("the report is text")
}

fn assert_rows(report: &str, names: &[&str]) {
    for name in names {
        let rows = report.lines().filter(|line| line.starts_with(&format!("| {name} ")));
        assert!(rows.count() > 0, "no row for `{name}` in\n{report}");
    }
}

#[test]
fn archive_reports_time_and_memory_of_every_competitor() {
    let report = report(&["archive"]);
    let names = ["millstream 128 MiB", "rayon par_bridge", "crossbeam threads", "tokio spawn_blocking", "sequential"];
    assert_rows(&report, &names);
    let (_, memory) = report.split_once("peak RSS").expect("a table of peak memory");
    assert_rows(memory, &names);
    assert_rows(memory, &["millstream 32 MiB", "millstream 512 MiB"]);
}

#[test]
fn archive_accepts_a_given_tree() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", ".hidden", "naïve name"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let report = report(&["archive", "--files", folder.path().to_str().unwrap()]);
    assert!(report.contains("3 files"), "{report}");
}

#[test]
fn noop_reports_peers_and_references() {
    let report = report(&["noop"]);
    assert_rows(
        &report,
        &[
            "millstream, batch 64",
            "crossbeam, a thread per stage",
            "crossbeam, workers call all four, 64 a message",
            "tokio mpsc, a task per stage",
            "(rayon task, no queues)",
        ],
    );
    assert!(report.contains("millstream, batch 64 / "), "{report}");
}

#[test]
fn queued_compares_many_waiting_with_few() {
    let report = report(&["queued"]);
    assert_eq!(report.matches("10000 waiting / 1000 waiting: ").count(), 2, "{report}");
}

#[test]
fn ring_reports_every_part() {
    let report = report(&["ring"]);
    assert_rows(
        &report,
        &[
            "spsc, spinning",
            "rtrb, yielding",
            "mpmc",
            "ArrayQueue, yielding",
            "disruptor, yielding",
            "mpsc",
            "256 producers",
            "graph",
            "bare futex",
        ],
    );
    assert!(report.contains("100 blocked consumers, 50ms: "), "{report}");
    assert!(report.contains("throughput of mpsc / disruptor, yielding: "), "{report}");
}

#[test]
fn reclaim_reports_readers_writers_and_structures() {
    let report = report(&["reclaim"]);
    assert_rows(
        &report,
        &["Hazard::protect", "haphazard", "epoch::pin", "seize enter", "Snapshot::read", "arc-swap load"],
    );
    assert_rows(&report, &["crossbeam-epoch", "Stack on Hazards", "Queue on Epochs", "the same on crossbeam-epoch"]);
}

#[test]
fn history_decides_every_kind_of_object() {
    let report = report(&["history"]);
    assert_rows(&report, &["register", "queue", "stack", "priority-queue", "set", "allocator", "mutex"]);
    assert!(report.contains("millstream / porcupine: ") || report.contains("Go is not installed"), "{report}");
}

#[test]
fn fence_reports_every_kind_and_the_cost_of_the_daemon() {
    let report = report(&["fence"]);
    if report.contains("Not measured here: ") {
        return println!("skipped: {report}");
    }
    assert_rows(&report, &["expedited", "mprotect", "global", "barrierd, real time", "barrierd, virtual time"]);
    assert_rows(&report, &["idle, no waiter", "busy, one thread, always"]);
    assert!(report.contains("times as fast as global in geometric mean"), "{report}");
}

#[test]
fn slab_reports_every_part() {
    let report = report(&["slab"]);
    assert_rows(
        &report,
        &["slab, private", "slab, published", "slab, by parcel", "slab, parcels to and fro", "one list, wide CAS"],
    );
    if cfg!(feature = "allocators") {
        assert_rows(&report, &["mimalloc", "jemalloc"]);
    }
    assert!(report.contains("one process allocates, another frees"), "{report}");
    assert!(report.contains("alone, made afresh: "), "{report}");
}

#[test]
fn stream_reports_every_part() {
    let report = report(&["stream"]);
    assert_rows(
        &report,
        &["millstream", "a loop", "crossbeam, a thread per branch", "crossbeam, a thread for the source"],
    );
    assert_eq!(report.matches("## stream: ").count(), 5, "{report}");
}

#[test]
fn exec_compares_two_commands() {
    // The stand-in does nothing: this test checks the harness.
    let report = report(&["exec", "--millstream", "/bin/true"]);
    assert_rows(&report, &["millstream", "xargs -P2"]);
}

#[test]
fn a_competitor_that_does_not_exist_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream-benches"))
        .args(["archive", "--one", "unknown", "--files", ".", "--scratch", "."])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("`unknown`"));
}

#[test]
fn fiber_reports_every_competitor_of_every_row() {
    let report = report(&["fiber"]);
    assert_rows(&report, &["corosensei", "generator", "millstream", "may", "tokio", "threads", "epoll"]);
    assert_rows(&report, &["millstream, 2 workers", "may, 2 workers", "tokio, 2 workers"]);
    assert_eq!(report.matches("## fiber: ").count(), 9, "{report}");
    if !report.contains("Go is not installed") {
        assert_rows(&report, &["go", "go, 2 workers"]);
    }
}
