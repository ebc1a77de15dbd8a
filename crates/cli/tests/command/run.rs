//! `millstream run`: reports, dead letters, exit statuses, and the texts on standard output and standard error.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Instant;

use millstream_command::hex;

use crate::support::{Room, code, ended, text, until};

/// Each line is the exit status with which a shell exits.
const EXIT: &str = r#"
name = "exit"
inflight = 8
[resources]
slot = 2
[source]
lines = "{input}"
[[stage]]
name = "check"
op = "exec"
exec = ["sh", "-c", "exit $0", "{line}"]
needs = { slot = 1 }
"#;

#[test]
fn a_run_without_failure_reports_every_unit() {
    let room = Room::new(EXIT);
    room.write("in", "0\n".repeat(20));
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in", "--report", "report.json"]), 0);
    assert_eq!(out, "", "standard output belongs to the stages");
    assert!(err.contains("admitted 20 = retired 20 + dead-lettered 0 + left 0"), "{err}");
    assert!(err.contains("bottleneck"), "{err}");
    assert!(err.contains("control socket"), "{err}");
    let report = room.json("report.json");
    assert_eq!(report["flow"], "exit");
    assert_eq!(report["outcome"], "complete");
    for (member, expected) in [("admitted", 20), ("retired", 20), ("dead_lettered", 0), ("left", 0)] {
        assert_eq!(report[member], expected, "{member}");
    }
    assert!(report["wall_s"].as_f64().unwrap() > 0.0);
    assert!((1..=8).contains(&report["peak_in_flight"].as_u64().unwrap()));
    let stage = &report["stages"][0];
    assert_eq!((&stage["name"], &stage["units"], &stage["failures"]), (&"check".into(), &20.into(), &0.into()));
    for times in ["service_ns", "wait_ns"] {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|quantile| stage[times][quantile].as_u64().unwrap());
        assert!(p50 <= p99 && p99 <= max, "{times}: {p50} {p99} {max}");
    }
    let slot = &report["resources"][0];
    assert_eq!((&slot["name"], &slot["capacity"]), (&"slot".into(), &2.into()));
    assert!((1..=2).contains(&slot["peak_in_use"].as_u64().unwrap()));
    assert_eq!(report["dead_letters_file"], serde_json::Value::Null);
    assert!(!room.path("report.dead-letters.jsonl").exists(), "no dead letter, no file");
}

#[test]
fn dead_letters_are_counted_named_and_kept_beside_the_report() {
    let room = Room::new(EXIT);
    room.write("in", "0\n7\n0\n9\n");
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in", "--report", "report.json"]), 1);
    assert_eq!(out, "");
    assert!(err.contains("admitted 4 = retired 2 + dead-lettered 2 + left 0"), "{err}");
    assert!(err.contains("exit: 2 of 4 units dead-lettered in "), "not complete: {err}");
    assert!(err.contains('2') && err.contains("report.dead-letters.jsonl"), "{err}");
    let mut letters = room.json_lines("report.dead-letters.jsonl");
    letters.sort_by_key(|letter| letter["unit"].as_u64());
    let units: Vec<_> =
        letters.iter().map(|letter| (letter["unit"].as_u64().unwrap(), letter["line"].clone())).collect();
    assert_eq!(units, [(1, "7".into()), (3, "9".into())]);
    for letter in &letters {
        assert_eq!(letter["stage"], "check");
        assert_eq!(letter["cause"], "error");
        assert!(letter["attempts"].as_u64().unwrap() >= 1);
        assert!(letter["message"].as_str().unwrap().contains(letter["line"].as_str().unwrap()), "{letter}");
    }
    assert_eq!(room.json("report.json")["dead_letters_file"], "report.dead-letters.jsonl");
}

#[test]
fn a_file_of_dead_letters_belongs_to_one_run() {
    let room = Room::new(EXIT);
    room.write("in", "1\n2\n");
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("in", "3\n");
    ended(&room.run(&["run", "flow.toml", "in", "--quiet"]), 1);
    let (letters, earlier) =
        (room.json_lines("exit.dead-letters.jsonl"), room.json_lines("exit.dead-letters.jsonl.old"));
    assert_eq!((letters.len(), earlier.len()), (1, 2));
    assert_eq!(letters[0]["line"], "3");
    room.write("in", "0\n");
    ended(&room.run(&["run", "flow.toml", "in"]), 0);
    assert!(!room.path("exit.dead-letters.jsonl").exists(), "a run without dead letters leaves none");
    assert_eq!(room.json_lines("exit.dead-letters.jsonl.old").len(), 1);
}

#[test]
fn bytes_that_are_not_utf_8_are_in_the_dead_letter() {
    let room = Room::new(&EXIT.replace(r#""exit $0", "{line}""#, r#""exit 5""#));
    room.write("in", b"a\xffb\n");
    ended(&room.run(&["run", "flow.toml", "in", "--dead-letters", "dead"]), 1);
    let letters = room.json_lines("dead");
    assert_eq!(letters[0]["line"], "a\u{fffd}b");
    assert_eq!(letters[0]["line_hex"], "61ff62");
}

#[test]
fn quiet_shows_nothing_but_errors() {
    let room = Room::new(EXIT);
    room.write("in", "0\n0\n");
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in", "--quiet"]), 0);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    room.write("in", "0\n3\n");
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in", "--quiet"]), 1);
    assert_eq!(out, "");
    assert_eq!(err.lines().count(), 1, "the dead letters and nothing else: {err}");
}

#[test]
fn an_html_report_is_the_frozen_page() {
    let room = Room::new(EXIT);
    room.write("in", "0\n");
    ended(&room.run(&["run", "flow.toml", "in", "--report", "report.html"]), 0);
    let page = room.read("report.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("admitted 1 = retired 1"), "{page}");
    let (_, data) = page.split_once("id=\"frozen\">").expect("data");
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["state"]["totals"]["phase"], "done");
    assert_eq!((&data["state"]["totals"]["retired"], &data["report"]["retired"]), (&1.into(), &1.into()));
    assert_eq!(data["flow"]["steerable"], false);
}

#[test]
fn an_unwritable_file_is_refused_before_anything_runs() {
    let room = Room::new(&EXIT.replace("exit $0", "touch ran"));
    room.write("in", "0\n");
    room.write("file", "");
    for wrong in [
        ["--report", "report.pdf"],
        ["--report", "report"],
        ["--report", "missing/report.json"],
        ["--report", "file/report.json"],
        ["--dead-letters", "missing/dead"],
        ["--dead-letters", "."],
        ["--control", "missing/socket"],
        ["--control", "file"],
    ] {
        let output = room.run(&["run", "flow.toml", "in", wrong[0], wrong[1]]);
        let (out, err) = ended(&output, 2);
        assert_eq!(out, "", "{wrong:?}");
        assert!(!err.is_empty(), "{wrong:?}");
        assert!(!room.path("ran").exists(), "{wrong:?} ran the flow");
    }
    assert_eq!(room.read("file"), "", "what is not a socket is left alone");
}

#[test]
fn a_closed_standard_output_changes_nothing() {
    let room = Room::new(EXIT);
    for (lines, expected) in [("0\n", 0), ("1\n", 1)] {
        room.write("in", lines);
        let mut child =
            room.command(&["run", "flow.toml", "in"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        ended(&output, expected);
    }
}

#[test]
fn a_full_standard_output_changes_nothing() {
    let room = Room::new(EXIT);
    room.write("in", "0\n");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = room.command(&["run", "flow.toml", "in"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let (_, err) = ended(&output, 0);
    assert!(err.contains("admitted 1 = retired 1"), "{err}");
}

#[test]
fn standard_output_contains_only_what_stages_write() {
    let inherit = EXIT.replace("exit $0", "echo $0; exit $0").replace("needs =", "stdout = \"inherit\"\nneeds =");
    let append = "name = \"exit\"\n[source]\nlines = \"{input}\"\n[[stage]]\nname = \"say\"\nop = \"append\"\n\
                  path = \"/dev/stdout\"\nline = \"{line}\"\n";
    for flow in [inherit.as_str(), append] {
        let room = Room::new(flow);
        room.write("in", "0\n0\n0\n");
        let (out, err) = ended(&room.run(&["run", "flow.toml", "in"]), 0);
        assert_eq!(out, "0\n0\n0\n");
        assert!(err.contains("exit: complete in "), "{err}");
    }
}

#[test]
fn no_report_leaves_progress_and_errors() {
    let room = Room::new(EXIT);
    room.write("in", "0\n5\n");
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in", "--no-report", "--report", "report.json"]), 1);
    assert_eq!(out, "");
    assert!(!err.contains("bottleneck") && !err.contains("admitted"), "{err}");
    assert!(err.contains("control socket") && err.contains("1 unit dead-lettered: "), "{err}");
    assert_eq!(room.json("report.json")["dead_lettered"], 1);
}

#[test]
fn a_report_identifies_its_run_and_says_why_units_died() {
    let flow = EXIT.replace("[resources]", "[params]\ncode = 0\n[resources]").replace("exit $0", "exit {param.code}$0");
    let room = Room::new(&flow);
    room.write("in", "0\n7\n0\n7\n9\n");
    ended(&room.run(&["run", "flow.toml", "in", "-p", "code=1", "--report", "report.json"]), 1);
    let report = room.json("report.json");
    let run = &report["run"];
    assert_eq!((&run["params"]["code"], &run["inputs"][0]), (&"1".into(), &"in".into()));
    assert!(
        run["flow_file"].as_str().unwrap().ends_with("/flow.toml")
            && run["flow_file"].as_str().unwrap().starts_with('/')
    );
    assert!(run["name"].as_str().unwrap().starts_with("exit-") && !run["host"].as_str().unwrap().is_empty());
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    let started = run["started"].as_str().unwrap();
    assert!(started.starts_with("20") && started.ends_with('Z'), "{started}");
    let groups = report["dead_letter_causes"]["groups"].as_array().unwrap();
    let units: Vec<_> = groups.iter().map(|group| group["units"].as_u64().unwrap()).collect();
    assert_eq!(units, [2, 2, 1], "{groups:?}");
    assert!(groups.iter().any(|group| group["message"] == "`sh` exited with status 17" && group["example"] == "7"));
    let last = report["throughput"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["retired"], &last["dead_lettered"]), (&0.into(), &5.into()));
}

#[test]
fn an_empty_input_is_a_run_of_no_units() {
    let room = Room::new(EXIT);
    room.write("in", "");
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "--report", "report.json"]), 0);
    assert!(err.contains("admitted 0 = retired 0 + dead-lettered 0 + left 0"), "{err}");
    assert_eq!(room.json("report.json")["admitted"], 0);
}

#[test]
fn without_a_terminal_progress_is_a_line_now_and_then() {
    let room = Room::new(&EXIT.replace("exit $0", "while [ ! -e open ]; do sleep 0.05; done"));
    room.write("in", "0\n");
    let begun = Instant::now();
    let mut running = room.start(&["run", "flow.toml", "in"]);
    let line = running.line_with("held by");
    assert!(line.contains("0 retired") && line.contains("1 in flight"), "{line}");
    room.write("open", "");
    let (status, out, err) = running.end();
    assert_eq!(code(status), 0, "{err}");
    let lines = err.lines().filter(|line| line.contains("held by")).count() as u64;
    assert!(lines <= begun.elapsed().as_secs() / 2, "one each two seconds: {err}");
    assert!(!err.contains('\x1b') && !out.contains('\x1b'), "no escapes where there is no terminal");
}

#[test]
fn inputs_need_not_be_utf_8() {
    let room = Room::new(
        r#"
        name = "bytes"
        [source]
        walk = "{input}"
        [[stage]]
        name = "fail"
        op = "exec"
        exec = ["false"]
        "#,
    );
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(room.path("files")).unwrap();
    room.write(std::path::Path::new("files").join(name), "x");
    let output = room.run(&["run", "flow.toml", "files"]);
    assert_eq!(code(output.status), 1, "{}", text(&output.stderr));
    let letters = room.json_lines("bytes.dead-letters.jsonl");
    assert_eq!(letters[0]["path_hex"], hex::encode(b"files/caf\xe9"));
}

#[test]
fn programs_get_the_threads_that_their_needs_allow() {
    let room = Room::new(
        r#"
        name = "wide"
        workers = 2
        [resources]
        db = 10
        [source]
        lines = "{input}"
        [[stage]]
        name = "ask"
        op = "exec"
        exec = ["sh", "-c", "touch began.$0; while [ ! -e open ]; do sleep 0.05; done", "{line}"]
        needs = { db = 1 }
        "#,
    );
    room.write("in", (0..14).map(|i| format!("{i}\n")).collect::<String>());
    let running = room.start(&["run", "flow.toml", "in"]);
    let began = || {
        let entries = std::fs::read_dir(room.path(".")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("began.")).count()
    };
    until("ten programs run", || began() == 10);
    assert_eq!(room.status("wide")["resources"][0]["in_use"], 10);
    assert_eq!(began(), 10, "and no more");
    room.write("open", "");
    let (status, _, err) = running.end();
    assert_eq!(code(status), 0, "{err}");
}

#[test]
fn a_rehearsal_shows_what_would_be_done_and_does_nothing() {
    let room = Room::new(concat!(
        "[params]\nout = \"o\"\n[source]\nlines = \"-\"\n",
        "[[stage]]\nname = \"parse\"\nop = \"parse\"\n",
        "[[stage]]\nname = \"large\"\nop = \"filter\"\nwhen = { number = \"{json.n}\", at_least = 5 }\n",
        "[[stage]]\nname = \"name\"\nop = \"set\"\nfields = { to = \"{param.out}/{json.id}\" }\n",
        "[[stage]]\nname = \"make\"\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"touch oops; echo $1\", \"sh\", \"{json.id}\"]\n",
        "stdin = \"null\"\nretry = { times = 9 }\n",
        "[[stage]]\nname = \"hash\"\nop = \"blake3\"\n",
        "[[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"{set.to}-{blake3[..4]}\"\n",
        "[[stage]]\nname = \"list\"\nop = \"append\"\npath = \"list\"\nline = \"{json:json.id} {blake3}\"\n",
    ));
    room.write("lines", "{\"n\":7,\"id\":\"a b\"}\n{\"n\":2,\"id\":\"b\"}\nno JSON\n{\"n\":9,\"id\":\"d\"}\n");
    let (out, _) = ended(&room.run(&["run", "--dry-run=3", "flow.toml", "lines"]), 1);
    let expected = concat!(
        "{\"n\":7,\"id\":\"a b\"}\n",
        "  parse  as expected\n",
        "  large  true: on to name\n",
        "  name   to = o/a b\n",
        "  make   sh -c 'touch oops; echo $1' sh 'a b'\n",
        "  hash   blake3 of the result of make, which is not known\n",
        "  keep   the result of make to o/a b-{blake3[..4]}\n",
        "  list   \"a b\" {blake3} to list\n",
        "{\"n\":2,\"id\":\"b\"}\n",
        "  parse  as expected\n",
        "  large  false: leaves the flow\n",
        "no JSON\n",
        "  fails in parse: not a JSON object: ",
    );
    assert!(out.starts_with(expected), "{out}");
    assert!(out.ends_with("… the first 3 units; `--dry-run=30` shows more\n"), "{out}");
    for made in ["oops", "o", "list", "flow.dead-letters.jsonl"] {
        assert!(!room.path(made).exists(), "{made}");
    }
    let (_, err) = ended(&room.run(&["run", "-n", "flow.toml", "no-such-file"]), 2);
    assert!(err.contains("no-such-file"), "{err}");
}
