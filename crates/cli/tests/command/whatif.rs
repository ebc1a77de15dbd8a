//! Tests of traces and of `millstream whatif`.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Room, Running, code, end_of, ended, signal, text, until};

/// A flow with two stages of programs that sleep. The resource `disk` is the bottleneck of the first stage.
const NAPS: &str = r#"
    name = "naps"
    inflight = 16
    [resources]
    disk = 1
    net = 8
    [source]
    args = true
    [[stage]]
    name = "load"
    op = "exec"
    exec = ["sleep", "{path}"]
    needs = { disk = 1 }
    [[stage]]
    name = "send"
    op = "exec"
    exec = ["sleep", "0.01"]
    needs = { net = 1 }
"#;

/// A room with the trace of a run of [`NAPS`].
pub(crate) fn traced() -> Room {
    let room = Room::new(NAPS);
    let naps = ["0.02"; 24];
    let run = room.run(&[&["run", "flow.toml", "--trace", "run.trace"][..], &naps].concat());
    assert_eq!(code(run.status), 0, "{}", text(&run.stderr));
    assert!(text(&run.stderr).contains("millstream whatif run.trace"), "{}", text(&run.stderr));
    room
}

fn json(room: &Room, args: &[&str]) -> Value {
    // On a busy machine, the replay may not reproduce the run. The tests do not depend on that.
    let output = room.run(&[&["whatif", "run.trace", "--anyway", "--json"][..], args].concat());
    assert!(matches!(code(output.status), 0 | 1), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_trace_shows_which_setting_would_help() {
    let room = traced();
    let found = json(&room, &[]);
    assert_eq!(found["flow"], "naps");
    let help = &found["helps"][0];
    assert_eq!(help["setting"], "resource.disk", "{found}");
    assert!(found["as_it_was"]["limit"].as_str().unwrap().starts_with("disk"), "{found}");
    let (before, after) = (&found["as_it_was"]["wall_s"], &help["answer"]["wall_s"]);
    let gain = after.as_f64().unwrap() / before.as_f64().unwrap();
    assert!((0.4..0.7).contains(&gain), "{found}");
    let page = room.run(&["whatif", "run.trace", "--anyway"]);
    let page = text(&page.stdout);
    for line in ["replay of the run itself: ", "What helps, each alone:", "resource.disk=2", "no less than", "assumes"]
    {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn changes_are_answered_beside_the_run_as_it_was() {
    let room = traced();
    let found = json(&room, &["resource.disk=3", "stage.send.service=-50%", "inflight=8"]);
    let wall = |answer: &Value| answer["wall_s"].as_f64().unwrap();
    let changed = &found["changed"];
    assert!(wall(&changed["answer"]) < wall(&found["as_it_was"]) * 0.6, "{found}");
    let least = changed["answer"]["at_least_s"].as_f64().unwrap();
    assert!(least > 0.0 && least <= wall(&changed["answer"]), "{found}");
    let (low, high) = (changed["wall_s"][0].as_f64().unwrap(), changed["wall_s"][1].as_f64().unwrap());
    assert!(low <= wall(&changed["answer"]) && wall(&changed["answer"]) <= high, "{found}");
}

#[test]
fn a_sweep_shows_each_value_and_a_goal_the_least_setting() {
    let room = traced();
    let sweep = json(&room, &["--sweep", "resource.disk=1..4"]);
    let points = sweep["sweep"]["points"].as_array().unwrap();
    let walls: Vec<f64> = points.iter().map(|point| point["answer"]["wall_s"].as_f64().unwrap()).collect();
    assert!(walls.len() == 4 && walls.is_sorted_by(|a, b| a > b), "{sweep}");
    let goal = format!("wall<{}ms", (walls[2] * 1010.0) as u64);
    let reached = json(&room, &["--goal", &goal]);
    assert_eq!(reached["goal"]["reached"], true, "{reached}");
    assert_eq!(reached["goal"]["settings"][0]["setting"], "resource.disk");
    assert_eq!(reached["goal"]["settings"][0]["to"], 3, "{reached}");
    let out_of_reach = room.run(&["whatif", "run.trace", "--anyway", "--goal", "wall<1ms"]);
    assert_eq!(code(out_of_reach.status), 1);
    assert!(text(&out_of_reach.stdout).contains("is not reached"), "{}", text(&out_of_reach.stdout));
}

#[test]
fn a_prediction_is_checked_by_the_run_with_that_setting() {
    let room = traced();
    let found = json(&room, &["resource.disk=4", "--check=1"]);
    assert!(found["judged"].is_null(), "one run is no test: {found}");
    let (predicted, measured) = (&found["changed"]["answer"], &found["checked"]);
    assert_eq!(measured["retired"], 24, "{found}");
    let ratio = predicted["wall_s"].as_f64().unwrap() / measured["wall_s"].as_f64().unwrap();
    // On a busy machine, the measured times are longer.
    assert!(ratio < 1.3, "{found}");
    // The checking run does not write the dead letters or any other file of the traced run.
    assert!(!room.path("naps.dead-letters.jsonl").exists());
}

#[test]
fn a_prediction_is_judged_by_alternate_runs_with_and_without_the_setting() {
    let room = traced();
    let output = room.run(&["whatif", "run.trace", "--anyway", "--json", "resource.disk=4", "--check=2"]);
    let said = text(&output.stderr);
    assert_eq!(said.matches("runs again in").count(), 4, "{said}");
    assert_eq!(said.matches("--set resource.disk=4").count(), 2, "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let judged = &found["judged"];
    assert_eq!((&judged["pairs"], &judged["faster"]), (&2.into(), &Value::Null), "two pairs decide nothing: {found}");
    let number = |name: &str| judged[name].as_f64().unwrap();
    assert!(number("ratio") < 1.0 && number("predicted") < 0.6, "{found}");
    // With so few pairs, one end of the interval may be open.
    assert!(judged["low"].as_f64().is_none_or(|low| low <= number("ratio")), "{found}");
}

#[test]
fn two_runs_show_how_a_disk_slows_down() {
    let room = traced();
    let slower = ["0.05"; 12];
    let other = &["run", "flow.toml", "--trace", "two.trace", "--set", "resource.disk=2"][..];
    ended(&room.run(&[other, &slower].concat()), 0);
    let alone = json(&room, &["resource.disk=3"]);
    let fitted = json(&room, &["--with", "two.trace", "resource.disk=3"]);
    let line = &fitted["slope"]["stages"][0];
    assert_eq!((&fitted["slope"]["resource"], &line["stage"]), (&"disk".into(), &"load".into()), "{fitted}");
    assert!(line["per_token"].as_f64().unwrap() > 0.3, "{fitted}");
    let wall = |found: &Value| found["changed"]["answer"]["wall_s"].as_f64().unwrap();
    assert!(wall(&fitted) > wall(&alone) * 1.3, "{fitted}");
    assert_eq!(fitted["as_it_was"], alone["as_it_was"], "what is as it was stays so");
    let same = room.run(&["whatif", "run.trace", "--with", "run.trace"]);
    assert_eq!(code(same.status), 2);
    assert!(text(&same.stderr).contains("both runs had the same resources"), "{}", text(&same.stderr));
}

#[test]
fn a_run_that_begins_without_tokens_says_how_it_goes_on() {
    let (room, running) = busy(&["--set", "resource.disk=0"]);
    ended(&room.run(&["set", "busy", "resource.disk=1"]), 0);
    until("units retire", || room.status("busy")["retired"].as_u64() > Some(0));
    room.write("open", "");
    running.signal(libc::SIGINT);
    let id = running.child.id();
    let (_, _, said) = running.end();
    assert!(said.contains(&format!("`millstream set busy-{id} resource.disk=1`")), "{said}");
}

#[test]
fn a_run_that_read_standard_input_is_not_checked() {
    let room = Room::new(
        "name = \"in\"\n[source]\nlines = \"-\"\n[[stage]]\nname = \"a\"\nop = \"set\"\nfields = { x = \"1\" }\n",
    );
    let run = room.run(&["run", "flow.toml", "--trace", "run.trace"]);
    assert_eq!(code(run.status), 0, "{}", text(&run.stderr));
    let check = room.run(&["whatif", "run.trace", "--anyway", "--check"]);
    assert_eq!(code(check.status), 2);
    assert!(text(&check.stderr).contains("standard input"), "{}", text(&check.stderr));
}

#[test]
fn a_run_writes_its_events_with_a_trace_and_without() {
    let room = Room::new(NAPS);
    for trace in [&[][..], &["--trace", "run.trace"]] {
        let run = room.run(&[&["run", "flow.toml", "--events", "events.json"][..], trace, &["0.01", "0.02"]].concat());
        assert_eq!(code(run.status), 0, "{}", text(&run.stderr));
        let events = room.json("events.json");
        let named = |name: &str| {
            let events = events["traceEvents"].as_array().unwrap().iter();
            events.filter(|event| event["ph"] == "X" && event["name"] == name).count()
        };
        assert_eq!((named("load"), named("send")), (2, 2), "{events}");
        assert_eq!(room.path("run.trace").exists(), !trace.is_empty());
        std::fs::remove_file(room.path("events.json")).unwrap();
    }
    let same = room.run(&["run", "flow.toml", "--events", "x", "--trace", "x", "0.01"]);
    assert_eq!(code(same.status), 2);
}

#[test]
fn a_run_can_begin_with_a_setting() {
    let room = Room::new(NAPS);
    let run = room.run(&["run", "flow.toml", "--set", "resource.disk=3", "--report", "report.json", "0.01", "0.01"]);
    assert_eq!(code(run.status), 0, "{}", text(&run.stderr));
    assert_eq!(room.json("report.json")["resources"][0]["capacity"], 3);
    let wrong = room.run(&["run", "flow.toml", "--set", "resource.dsk=3", "0.01"]);
    assert_eq!(code(wrong.status), 2);
    assert!(
        text(&wrong.stderr).contains("--set") && text(&wrong.stderr).contains("resource.dsk"),
        "{}",
        text(&wrong.stderr)
    );
}

/// A flow of many short programs that wait for one disk. It continues until there is a file `open`.
pub(crate) const BUSY: &str = r#"
    name = "busy"
    inflight = 8
    [resources]
    disk = 1
    api = { rate = "5000/s", burst = 10 }
    [source]
    lines = "{input}"
    [[stage]]
    name = "load"
    op = "exec"
    exec = ["sh", "-c", "[ -e open ] || sleep 0.01"]
    needs = { disk = 1, api = 1 }
"#;

/// A live run of [`BUSY`].
pub(crate) fn busy(args: &[&str]) -> (Room, Running) {
    let room = Room::new(BUSY);
    room.write("in", (0..4000).map(|n| format!("{n}\n")).collect::<String>());
    let running = room.start(&[&["run", "flow.toml", "in"], args].concat());
    (room, running)
}

pub(crate) fn let_end(room: &Room, running: Running) {
    room.write("open", "");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert!(matches!(code(status), 0 | 1 | 3 | 130), "{status:?}: {err}");
}

#[test]
fn a_live_run_is_asked_like_a_trace() {
    let (room, running) = busy(&[]);
    until("units retire", || room.status("busy")["retired"].as_u64() > Some(3));
    let ask = |args: &[&str]| {
        let output = room.run(&[&["whatif", "busy", "--anyway", "--json"][..], args].concat());
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        (serde_json::from_slice::<Value>(&output.stdout).unwrap(), text(&output.stderr))
    };
    let (found, said) = ask(&["resource.disk=3"]);
    assert!(said.contains("now keeps its newest units"), "{said}");
    assert!(found["window"]["units"].as_u64() >= Some(20), "{found}");
    let pace = |answer: &Value| answer["throughput"].as_f64().unwrap();
    let gain = pace(&found["changed"]["answer"]) / pace(&found["as_it_was"]);
    assert!((2.0..3.3).contains(&gain), "{found}");
    let page = room.run(&["whatif", &format!("busy-{}", running.child.id()), "--anyway"]);
    let page = text(&page.stdout);
    for line in
        ["window: the newest ", "replay of the window itself: ", "resource.disk=2", "the run goes on as in the window"]
    {
        assert!(page.contains(line), "{page}");
    }

    // All units of a window ran with the same settings. A change of a setting begins a new window.
    ended(&room.run(&["set", "busy", "resource.disk=2"]), 0);
    let (changed, _) = ask(&["resource.disk=1"]);
    assert!(changed["window"]["units"].as_u64() < Some(4000), "{changed}");
    let loss = pace(&changed["changed"]["answer"]) / pace(&changed["as_it_was"]);
    assert!((0.4..0.7).contains(&loss), "{changed}");

    let check = room.run(&["whatif", "busy", "resource.disk=4", "--check"]);
    assert_eq!(code(check.status), 2);
    assert!(text(&check.stderr).contains("the run is live"), "{}", text(&check.stderr));
    let_end(&room, running);
    let gone = room.run(&["whatif", "busy"]);
    assert_eq!(code(gone.status), 2);
    assert!(text(&gone.stderr).contains("there is no run busy"), "{}", text(&gone.stderr));
}

/// A flow with one slow host and many fast hosts. The source keeps the queue full until there is a file `open`.
pub(crate) const HOSTS: &str = r#"
    name = "hosts"
    inflight = 24
    [resources]
    slots = 32
    "host:*" = 1
    [source]
    lines = "{input}"
    [[stage]]
    name = "fetch"
    op = "exec"
    exec = ["sh", "-c", "[ -e open ] || case $0 in slow) sleep 0.2;; *) sleep 0.01;; esac", "{line}"]
    needs = { slots = 1, "host:{line}" = 1 }
"#;

/// A run of [`HOSTS`] whose queue has reached its full length.
pub(crate) fn behind_a_slow_host(args: &[&str]) -> (Room, Running) {
    let room = Room::new(HOSTS);
    let hosts = ["slow", "a", "b", "c", "d", "e"];
    room.write("in", hosts.iter().cycle().take(12_000).map(|host| format!("{host}\n")).collect::<String>());
    let running = room.start(&[&["run", "flow.toml", "in"], args].concat());
    until("the slow host has the whole flow waiting", || {
        let status = room.status("hosts");
        status["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["waiters"].as_u64() >= Some(20)))
    });
    (room, running)
}

#[test]
fn a_run_behind_a_slow_host_is_helped_by_more_of_that_host() {
    let (room, running) = behind_a_slow_host(&[]);
    let output = room.run(&["whatif", "hosts", "--anyway", "--json"]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["window"]["waiting"].as_u64() >= Some(18), "{found}");
    assert!(found["as_it_was"]["limit"].as_str().unwrap().starts_with("host: "), "{found}");
    let helps: Vec<&str> =
        found["helps"].as_array().unwrap().iter().filter_map(|help| help["setting"].as_str()).collect();
    assert_eq!(helps.first(), Some(&"resource.host"), "{found}");
    assert!(!helps.contains(&"resource.slots") && !helps.contains(&"workers"), "{found}");
    // A higher cap on units in flight mainly lengthens the queue for the slow host. In such a short window, it still
    // gains a little, because a few more units for other hosts overtake that queue.
    let pace = |answer: &Value| answer["throughput"].as_f64().unwrap();
    let inflight = found["helps"].as_array().unwrap().iter().find(|help| help["setting"] == "inflight");
    let gain = inflight.map_or(1.0, |help| pace(&help["answer"]) / pace(&found["as_it_was"]));
    assert!(gain < 1.3, "{found}");
    let_end(&room, running);
}

#[test]
fn pieces_without_a_whole_unit_are_no_answer() {
    let flow = r#"
        name = "pieces"
        [source]
        lines = "{input}"
        [[stage]]
        name = "read"
        op = "read"
        path = "{line}"
        [[stage]]
        name = "lines"
        op = "split"
        by = "lines"
        [[stage]]
        name = "work"
        op = "exec"
        exec = ["sh", "-c", "[ -e open ] || sleep 0.02"]
    "#;
    let room = Room::new(flow);
    room.write("in", "big\n");
    room.write("big", "line\n".repeat(20_000));
    let running = room.start(&["run", "flow.toml", "in"]);
    until("pieces retire", || room.status("pieces")["retired"].as_u64() > Some(3));
    let answer = room.run(&["whatif", "pieces", "workers=4"]);
    assert_eq!(code(answer.status), 2, "{}", text(&answer.stdout));
    let said = text(&answer.stderr);
    assert!(said.contains("has finished 0 units since it began to keep them"), "{said}");
    let_end(&room, running);
}

#[test]
fn an_answer_about_units_that_never_left_is_withheld() {
    let flow = r#"
        name = "stuck"
        inflight = 24
        [resources]
        "host:*" = 1
        [source]
        lines = "{input}"
        [[stage]]
        name = "content"
        op = "set"
        payload = "{line}"
        [[stage]]
        name = "words"
        op = "split"
        by = "lines"
        [[stage]]
        name = "fetch"
        op = "exec"
        exec = ["sh", "-c", "until [ -e open ] || [ $0 != slow ]; do sleep 0.05; done", "{line}"]
        needs = { "host:{line}" = 1 }
    "#;
    let room = Room::new(flow);
    // After the first 200 units, every second unit is for the slow host. Each other unit has a host of its own.
    let host = |nth: u32| if nth < 200 || nth.is_multiple_of(2) { format!("{nth}\n") } else { "slow\n".to_owned() };
    room.write("in", (0..4000).map(host).collect::<String>());
    // With a page, the window begins with the run.
    let running = room.start(&["run", "flow.toml", "in", "--page"]);
    until("only the slow host's units are left", || {
        let status = room.status("stuck");
        status["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["waiters"].as_u64() >= Some(8)))
    });
    let answer = room.run(&["whatif", "stuck"]);
    assert_eq!(code(answer.status), 1, "{}", text(&answer.stderr));
    let said = text(&answer.stdout);
    assert!(
        said.contains(
            "units that wait for host have not left, and the replay, which has only units that left, lacks them"
        ),
        "{said}"
    );
    let_end(&room, running);
}

#[test]
fn a_trace_is_sent_in_parts_of_one_snapshot() {
    use base64::Engine as _;
    let (room, running) = busy(&[]);
    let mut stream = std::os::unix::net::UnixStream::connect(&running.control).unwrap();
    let mut ask = |request: &str| -> Value { crate::steer::ask(&mut stream, format!("{request}\n").as_bytes()) };
    let first = ask(r#"{"do":"trace"}"#);
    assert_eq!(first["ok"], true, "{first}");
    let number = first["trace"]["number"].as_u64().unwrap();
    let bytes = base64::prelude::BASE64_STANDARD.decode(first["trace"]["bytes"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(b"{\"millstream_trace\":1"));
    let rest = ask(&format!(r#"{{"do":"trace","number":{number},"from":{}}}"#, bytes.len() - 10));
    assert_eq!(rest["trace"]["total"], first["trace"]["total"], "{rest}");
    let behind = ask(&format!(r#"{{"do":"trace","number":{number},"from":18446744073709551615}}"#));
    assert_eq!(behind["trace"]["bytes"], "", "{behind}");
    let other = ask(r#"{"do":"trace","number":77}"#);
    assert!(other["error"].as_str().unwrap().contains("from its beginning"), "{other}");
    let_end(&room, running);
}

#[test]
fn bad_traces_and_settings_are_refused_with_their_reason() {
    let room = traced();
    room.write("other", "{\"a\": 1}\n");
    let bytes = std::fs::read(room.path("run.trace")).unwrap();
    room.write("cut", &bytes[..bytes.len() - 9]);
    for (args, says) in [
        (&["other"][..], "this is not a trace"),
        (&["cut"], "without the summary"),
        (&["missing"], "No such file"),
        (&["run.trace", "--anyway", "resource.dsk=4"], "there are resource.disk, resource.net, workers"),
        (&["run.trace", "--anyway", "resource.disk"], "no setting `resource.disk`"),
        (&["run.trace", "--anyway", "resource.disk=many"], "whole number"),
        (&["run.trace", "--anyway", "resource.disk=0"], "at least 1"),
        (&["run.trace", "--anyway", "resource.disk=3/s"], "tokens, not a rate"),
        (&["run.trace", "--anyway", "stage.load.service=3ms"], "-20%"),
        (&["run.trace", "--anyway", "stage.lod.service=-20%"], "stages: load, send"),
        (&["run.trace", "--anyway", "--sweep", "resource.disk"], "KEY=FROM..TO"),
        (&["run.trace", "--anyway", "--sweep", "resource.disk=4..1"], "KEY=FROM..TO"),
        (&["run.trace", "--anyway", "--goal", "p95<3s"], "p99<200ms"),
    ] {
        let output = room.run(&[&["whatif"][..], args].concat());
        assert_eq!(code(output.status), 2, "{args:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_reported_before_the_run_or_at_its_end() {
    let room = Room::new(NAPS);
    let before = room.run(&["run", "flow.toml", "--trace", "nowhere/run.trace", "0.01"]);
    assert_eq!(code(before.status), 2);
    assert!(text(&before.stderr).contains("make the folder nowhere first"), "{}", text(&before.stderr));
    room.write("letters", "");
    for (args, says) in [
        (&["--trace", "flow.toml"][..], "the run uses it as flow.toml"),
        (&["--trace", "./letters", "--dead-letters", "letters"], "the run uses it as letters"),
        (&["--trace", "r.json", "--report", "r.json"], "the run uses it as r.json"),
        (&["--trace", "runtime"], "it is not a regular file"),
        (&["--trace", "/dev/full"], "it is not a regular file"),
    ] {
        let refused = room.run(&[&["run", "flow.toml"][..], args, &["0.01"]].concat());
        assert_eq!(code(refused.status), 2, "{args:?}");
        assert!(text(&refused.stderr).contains(says), "{args:?}: {}", text(&refused.stderr));
    }
    assert_eq!(room.read("flow.toml"), NAPS);
}

#[test]
fn an_interrupt_ends_a_search_also_after_a_check() {
    // The flow has three resources, so that the search has many settings to try.
    let flow = "[resources]\na = 1\nb = 1\nc = 1\n[source]\nlines = \"{input}\"\n\
        [[stage]]\nname = \"one\"\nop = \"set\"\nfields = { a = \"b\" }\nneeds = { a = 1, b = 1, c = 1 }\n";
    let room = Room::new(flow);
    room.write("in", "line\n".repeat(100_000));
    ended(&room.run(&["run", "flow.toml", "in", "--trace", "run.trace"]), 0);
    let args = ["whatif", "run.trace", "--anyway", "--check=1", "--goal", "wall<1ms"];
    let mut search = room.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(search.stderr.take().unwrap()).lines();
    let told: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.contains("^C ends it")).collect();
    assert!(told.iter().any(|line| line.contains("runs again in")), "{told:?}");
    signal(&search, libc::SIGINT);
    assert_eq!(end_of(&mut search).signal(), Some(libc::SIGINT));
}
