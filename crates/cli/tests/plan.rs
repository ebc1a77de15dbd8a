//! `millstream plan`: its output for correct flows.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn flows() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../flows")
}

fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millstream")).arg("plan").args(arguments).output().expect("the command runs")
}

/// The output of `millstream plan` about `text`, which must be accepted.
fn planned(text: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.toml");
    std::fs::write(&file, text).unwrap();
    let output = plan(&[&[file.to_str().unwrap()], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

/// The first line that begins with spaces and `name`, with single spaces between the words.
#[track_caller]
fn line(plan: &str, name: &str) -> String {
    let found = plan.lines().find(|line| line.split_whitespace().next() == Some(name));
    let found = found.unwrap_or_else(|| panic!("no line begins with `{name}` in:\n{plan}"));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

const FETCH: &str = r#"
name = "pages"
inflight = 64
memory = "64MiB"
workers = 4
[params]
out = "pages"
[resources]
net = 16
"host:*" = 2
api = { rate = "50/s", burst = 10 }
"polite:*" = { rate = "5/s", burst = 2, max_keys = 100 }
disk = { capacity = 2, hold = "batch" }
[source]
lines = "-"
[[stage]]
name = "get"
op = "http-get"
url = "{line}"
needs = { net = 1, "host:{host}" = { amount = 1, until = "strip" }, "polite:{host}" = 1, api = 2 }
retry = { times = 3, backoff = "100ms..5s" }
timeout = "30s"
[[stage]]
name = "html"
op = "filter"
queue = 32
when = { text = "{name}", ends_with = ".html" }
else = "keep"
[[stage]]
name = "strip"
op = "exec"
exec = ["sed", "s/<[^>]*>//g"]
workers = "1..cores"
idempotent = true
after_failure = "skip"
needs = { net = 1 }
[[stage]]
name = "keep"
op = "write"
path = "{param.out}/{name}"
needs = { disk = 1 }
batch = { size = 16, wait = "5ms" }
"#;

#[test]
fn the_ready_flows_are_accepted_and_fit_80_columns() {
    let mut seen = 0;
    for entry in std::fs::read_dir(flows()).unwrap() {
        let path = entry.unwrap().path();
        // A file of cases is not a flow.
        if path.to_str().unwrap().ends_with(".test.toml") {
            continue;
        }
        let output = plan(&[path.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        // The first line contains the file's path, which may have any length.
        for line in text.lines().skip(1) {
            assert!(line.chars().count() <= 80, "{}: {line}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= 4, "archive, verify, commands and fetch are there");
}

#[test]
fn a_plan_shows_graph_bounds_needs_order_and_memory() {
    let plan = planned(FETCH, &[]);
    assert!(plan.starts_with("pages: 4 stages, from "), "{plan}");
    assert!(plan.contains("source → get → html → strip → keep → end"), "{plan}");
    assert!(plan.contains("html, else → keep"), "{plan}");
    assert_eq!(line(&plan, "workers"), "workers 4 shared by all stages, and up to 20 for stages that block");
    assert_eq!(line(&plan, "strip"), "strip exec 64 1..4 own by time");
    assert_eq!(line(&plan, "keep"), "keep write 64 0..4 16, waits 5ms");
    assert_eq!(line(&plan, "html"), "html filter 32 0..4 by time");
    let words = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("together: 1 net, 1 host:{host} (held until `strip`), 1 polite:{host}, 2 api"), "{plan}");
    assert_eq!(line(&plan, "net"), "net 16 tokens");
    assert_eq!(line(&plan, "host:*"), "host:* 2 tokens for each key, at most 65,536 keys");
    assert_eq!(line(&plan, "polite:*"), "polite:* 5/s, burst 2 for each key, at most 100 keys");
    assert!(words.contains("api 50/s, burst 10"), "{plan}");
    assert_eq!(line(&plan, "disk"), "disk 2 tokens, held by a batch");
    assert!(plan.contains("at most 30s an attempt, 3 retries after 100ms..5s, then a dead letter"), "{plan}");
    assert!(plan.contains("strip  then skipped"), "{plan}");
    assert!(plan.contains("host → net → disk"), "what is held comes before what is then asked for: {plan}");
    assert!(plan.contains("`strip` asks for net while holding host"), "{plan}");
    assert!(plan.contains("64 MiB of payload, in at most 64 units"), "{plan}");
}

#[test]
fn a_plan_is_one_json_object_with_the_facts_of_the_page() {
    let plan: serde_json::Value = serde_json::from_str(&planned(FETCH, &["--json"])).unwrap();
    let fact = |pointer: &str| plan.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {plan:#}")).clone();
    let expected = [
        ("/flow", serde_json::json!("pages")),
        ("/uses_input", false.into()),
        ("/inflight", 64.into()),
        ("/memory", (64 << 20).into()),
        ("/workers", 4.into()),
        ("/params", serde_json::json!({ "out": "pages" })),
        ("/stages/0/op", "http-get".into()),
        ("/stages/0/timeout_ns", 30_000_000_000_u64.into()),
        ("/stages/0/retries", 3.into()),
        ("/stages/0/backoff_ns", serde_json::json!([100_000_000, 5_000_000_000_u64])),
        ("/stages/0/needs/1", {
            serde_json::json!({ "resource": "host", "amount": 1, "key": "{host}", "until": "strip" })
        }),
        ("/stages/1/queue_bound", 32.into()),
        ("/stages/1/next", "strip".into()),
        ("/stages/1/else", "keep".into()),
        ("/stages/2/blocking", true.into()),
        ("/stages/2/workers_max", 4.into()),
        ("/stages/2/after_failure", "skip".into()),
        ("/stages/3/batch_size", 16.into()),
        ("/stages/3/batch_wait_ns", 5_000_000.into()),
        ("/stages/3/next", serde_json::Value::Null),
        ("/resources/2", {
            serde_json::json!({
                "name": "api", "kind": "rate", "capacity": 10, "rate_per_s": 50.0, "max_keys": null, "held_by": "unit"
            })
        }),
        ("/resources/4/held_by", "batch".into()),
        ("/warnings", serde_json::json!([])),
    ];
    for (pointer, value) in expected {
        assert_eq!(fact(pointer), value, "{pointer}");
    }
    assert!(plan.pointer("/stages/0/else").is_none(), "only a filter has two ways");
    let pairs = fact("/pairs");
    let pair = serde_json::json!({ "stage": "strip", "holds": "host", "asks": "net" });
    assert!(pairs.as_array().unwrap().contains(&pair), "{pairs:#}");
}

#[test]
fn caps_of_the_command_line_take_the_place_of_the_flows() {
    let plan = planned(FETCH, &["--inflight", "8", "--memory", "1MiB", "--workers", "2", "-p", "out=elsewhere"]);
    assert!(plan.contains("1 MiB of payload, in at most 8 units"), "{plan}");
    assert_eq!(line(&plan, "strip"), "strip exec 8 1..2 own by time");
    assert!(plan.contains("out = elsewhere"), "{plan}");
}

#[test]
fn a_flow_without_a_cap_on_bytes_is_described_as_such() {
    let plan = planned("[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"read\"", &[]);
    assert!(plan.contains("Not bounded in bytes: the payloads of 256 units, however large."), "{plan}");
    assert!(plan.contains("units from  the INPUTs, one each"), "{plan}");
}

#[test]
fn a_stage_that_may_go_beyond_the_cap_is_named() {
    let stage = "[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"exec\"\nexec = [\"cat\", \"{line}\"]\n";
    let text = format!("memory = \"1MiB\"\n{stage}");
    assert!(planned(&text, &[]).contains("`a` may go beyond that while a payload grows"));
    assert!(!planned(&format!("{text}idempotent = true"), &[]).contains("may go beyond"));
    assert!(!planned(&format!("{text}stdout = \"null\""), &[]).contains("may go beyond"));
}

/// The warning of `plan` about a flow whose stage `work` needs `db`. The arguments are additional lines for the flow,
/// the resource and the stage.
fn warned(flow: &str, resource: &str, stage: &str) -> Option<String> {
    let text = format!(
        "workers = 2\n{flow}\n[resources]\n{resource}\n[source]\nlines = \"-\"\n[[stage]]\nname = \"work\"\n{stage}\n"
    );
    let plan = planned(&text, &[]);
    let warnings = plan.split_once("\nwarnings\n")?.1;
    Some(warnings.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn resources_that_the_workers_cannot_use_up_are_warned_about() {
    let exec = "op = \"exec\"\nexec = [\"true\", \"{line}\"]\nneeds = { db = 1 }";
    let append = "op = \"append\"\npath = \"x\"\nline = \"x\"\nneeds = { db = 1 }";
    let keyed = "op = \"append\"\npath = \"x\"\nline = \"x\"\nneeds = { \"db:{line}\" = 2 }";
    for (flow, resource, stage, expected) in [
        (
            "",
            "db = 40",
            append,
            "at most 2 can be in use at once: `work` runs on the flow's 2 workers. Write `blocking = true`",
        ),
        (
            "",
            "db = 40",
            &format!("{exec}\nworkers = 8"),
            "at most 8 can be in use at once: `work` runs on 8 threads of its own",
        ),
        ("", "db = 40", &format!("{exec}\nworkers = 8"), "Write `workers = 40` in `work`"),
        ("", "db = 40", &format!("{exec}\nblocking = false"), "the flow's 2 workers"),
        ("inflight = 30", "db = 40", exec, "at most 30 units are in flight: write `inflight = 40`"),
        ("inflight = 5000", "db = 2000", &format!("{exec}\nblocking = true"), "Write `workers = 2000` in `work`"),
        ("", "\"db:*\" = 40", keyed, "`db` has 40 tokens for each key, and at most 4 can be in use at once"),
    ] {
        let said = warned(flow, resource, stage).unwrap_or_else(|| panic!("{resource} {stage}"));
        assert!(said.contains(expected), "{said}");
    }
    for (flow, resource, stage) in [
        ("", "db = 40", exec),
        ("", "db = 2", append),
        ("", "db = { rate = \"50/s\", burst = 40 }", exec),
        ("inflight = 40", "db = 40", exec),
        // More units may run at once than there can be threads, so the units run on fibers.
        ("inflight = 5000", "db = 2000", exec),
    ] {
        assert_eq!(warned(flow, resource, stage), None, "{resource} {stage}");
    }
}

#[test]
fn a_plan_runs_nothing_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let text = format!(
        "[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"exec\"\nexec = [\"touch\", \"{mark}\", \"{{line}}\"]\n\
         [[stage]]\nname = \"b\"\nop = \"append\"\npath = \"{mark}\"\nline = \"x\"\nfresh = true",
        mark = mark.display()
    );
    planned(&text, &[]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let file = flows().join("archive.toml");
    let mut child = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["plan", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let file = flows().join("archive.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["plan", file.to_str().unwrap()])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8(output.stderr).unwrap().contains("could not be written to standard output"));
}
