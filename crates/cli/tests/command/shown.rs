//! Output on terminals and in logs: names, arguments, contents of files and messages of other processes are shown with
//! visible characters.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::Output;
use std::thread;

use serde_json::json;

use crate::steer::{GATE, gated, stop};
use crate::support::{Room, code, text};

/// A text that clears the screen in two ways, sets a title, reverses the order of text, begins a new line, and contains
/// invisible characters.
const HOSTILE: &str = "a\x1b[2J\u{9b}2J\x1b]0;t\x07\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}c\u{200b}\u{e0041}d";

/// The first character that must not be in the output.
fn hidden(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200f}' | '\u{2028}' | '\u{202e}' | '\u{2066}' | '\u{e0041}')
    })
}

/// Checks that the output contains the visible form of `HOSTILE` and no hidden character.
fn assert_shown(what: &str, output: &Output) {
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(hidden(&said), None, "{what}: {said:?}");
    let is_told = ["\\u{9b}", "\\u009b", "\\u{202e}", "\\u202e"].iter().any(|form| said.contains(form));
    assert!(is_told, "{what} says nothing of it: {said}");
}

const FLOW: &str = r#"
name = "flow"
[params]
out = "out"
[source]
lines = "{input}"
[[stage]]
name = "keep"
op = "append"
path = "list"
line = "{line}"
"#;

#[test]
fn arguments_are_shown_by_every_command() {
    let room = Room::new(FLOW);
    room.write("in", "1\n");
    let [in_folder, report, param, option, setting] = [
        format!("no/{HOSTILE}"),
        format!("{HOSTILE}.txt"),
        format!("{HOSTILE}=1"),
        format!("--{HOSTILE}"),
        format!("{HOSTILE}=2"),
    ];
    let commands: &[&[&str]] = &[
        &[HOSTILE],
        &[&option],
        &["run", HOSTILE],
        &["run", "flow.toml", HOSTILE, &option],
        &["run", "flow.toml", "in", "--report", &report],
        &["run", "flow.toml", "in", "--report", &format!("{in_folder}.json")],
        &["run", "flow.toml", "in", "--dead-letters", &in_folder],
        &["run", "flow.toml", "in", "--control", &in_folder],
        &["run", "flow.toml", "in", "-p", HOSTILE],
        &["run", "flow.toml", "in", "-p", &param],
        &["run", "flow.toml", "in", "--inflight", HOSTILE],
        &["run", "flow.toml", "in", "--memory", HOSTILE],
        &["plan", HOSTILE],
        &["plan", "flow.toml", "-p", &format!("out={HOSTILE}")],
        &["retry", HOSTILE],
        &["status", HOSTILE],
        &["status", &in_folder],
        &["set", HOSTILE, "inflight=1"],
        &["set", &in_folder, &setting],
        &["slab", "stat", HOSTILE],
        &["slab", "check", HOSTILE],
        &["slab", "dump", HOSTILE],
        &["slab", "create", HOSTILE, "--object", HOSTILE],
        &["history", "check", HOSTILE, "--spec", "queue"],
        &["history", "check", "in", "--spec", HOSTILE],
        &["slo", "--at-least", HOSTILE],
        &["slo", "--at-least", "0.9", "--", HOSTILE],
        &["compare", HOSTILE, "in"],
        &["compare", "--run", HOSTILE, HOSTILE],
        &["csm", HOSTILE],
        &["doctor", HOSTILE],
        &["barrierd", HOSTILE],
    ];
    for command in commands {
        let output = room.run(command);
        assert_shown(&format!("{command:?}"), &output);
    }
}

#[test]
fn a_colour_in_an_argument_is_shown_escaped_beside_those_of_the_command() {
    let room = Room::new(FLOW);
    for command in [&["plan", "\x1b[8mhidden"][..], &["run", "--in\x1b[8mflight"], &["status", "\x1b[8m"]] {
        let output = room.run(command);
        assert!(text(&output.stderr).contains("\\u{1b}[8m") || text(&output.stderr).contains("\\x1b[8m"), "{output:?}");
    }
}

#[test]
fn a_name_with_a_line_end_makes_no_line_of_its_own() {
    let room = Room::new(FLOW);
    for command in ["run", "plan", "retry"] {
        let (_, said) = crate::support::ended(&room.run(&[command, "x\nerror: forged"]), 2);
        assert!(said.contains(r"x\nerror: forged'"), "{said}");
    }
}

#[test]
fn a_flow_files_words_are_shown() {
    let room = Room::new("");
    for (what, flow) in [
        ("no TOML", format!("name = \"flow\"\n{} = = \n", HOSTILE.replace(char::is_control, "\u{9b}"))),
        ("controls as they are", format!("{FLOW}{HOSTILE}")),
        ("an unknown key", format!("\"{}\" = 1\n{FLOW}", escaped())),
        ("an unknown op", FLOW.replace("append", &escaped())),
        ("an unknown field", FLOW.replace("{line}", &format!("{{{}}}", escaped()))),
    ] {
        room.write("hostile.toml", flow);
        for command in [&["plan", "hostile.toml"][..], &["run", "hostile.toml", "in"]] {
            let output = room.run(command);
            assert_eq!(code(output.status), 2, "{what}");
            assert_shown(what, &output);
        }
    }
}

/// `HOSTILE` as a TOML string.
fn escaped() -> String {
    HOSTILE
        .chars()
        .map(|c| if c.is_ascii_graphic() { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) })
        .collect()
}

#[test]
fn names_and_other_programs_words_are_shown_in_progress_reports_and_letters() {
    let flow = r#"
name = "NAME"
[source]
walk = "tree"
[resources]
slot = 1
[[stage]]
name = "NAME"
op = "exec"
exec = ["sh", "-c", "cat words >&2; exit 3"]
needs = { slot = 1 }
"#;
    // Names with control characters are refused; other hidden characters are allowed.
    let name: String = HOSTILE.chars().filter(|c| !c.is_control()).collect();
    let room = Room::new(&flow.replace("NAME", &name));
    std::fs::create_dir(room.path("tree")).unwrap();
    room.write(format!("tree/{HOSTILE}"), "");
    room.write("words", HOSTILE);
    assert_shown("plan", &room.run(&["plan", "flow.toml"]));
    for report in ["report.json", "report.html"] {
        let output = room.run(&["run", "flow.toml", "--report", report, "--dead-letters", "letters.jsonl"]);
        assert_eq!(code(output.status), 1, "{output:?}");
        assert_shown("run", &output);
        for file in [report, "letters.jsonl"] {
            let content = room.read(file);
            assert_eq!(hidden(&content), None, "{file}: {content:?}");
        }
    }
    // The file escapes the names. A JSON parser returns the original names.
    let letter = &room.json_lines("letters.jsonl")[0];
    assert_eq!(letter["path"], format!("tree/{HOSTILE}"));
    assert_eq!(letter["stage"], name);
    assert_shown("retry", &room.run(&["retry", "letters.jsonl"]));
}

#[test]
fn observed_programs_and_histories_are_shown() {
    let room = Room::new("");
    room.write("words", HOSTILE);
    for json in [&[][..], &["--json"]] {
        let slo = ["slo", "--at-least", "0.9", "--limit", "20"];
        let output = room.run(&[&slo, json, &["--", "sh", "-c", "cat words >&2; exit 1", HOSTILE]].concat());
        assert_shown("slo", &output);
        let commands = ["compare", "--run", "--limit", "2"].map(str::to_owned);
        let hostile = format!("true '{HOSTILE}'");
        let commands: Vec<_> =
            commands.iter().map(String::as_str).chain([&*hostile, "true"]).chain(json.iter().copied()).collect();
        assert_shown("compare", &room.run(&commands));
        let line = |op: &str, value: serde_json::Value, out: serde_json::Value, call: u32| {
            json!({ "process": 1, "op": op, "in": value, "out": out, "call": call, "return": call + 1 }).to_string()
                + "\n"
        };
        room.write(
            "history",
            line("enqueue", "x".into(), true.into(), 1) + &line("dequeue", json!(null), HOSTILE.into(), 3),
        );
        assert_shown("history", &room.run(&[&["history", "check", "history", "--spec", "queue"], json].concat()));
    }
    room.write("numbers", format!("{HOSTILE}\n"));
    assert_shown("numbers", &room.run(&["compare", "numbers", "numbers"]));
}

#[test]
fn a_hostile_socket_cannot_control_the_terminal() {
    let room = Room::new(GATE);
    let listener = UnixListener::bind(room.path("socket")).unwrap();
    let running = gated(&room, &[]);
    let mut snapshot = room.status(running.control.to_str().unwrap());
    stop(&room, running, 0);
    snapshot["flow"] = HOSTILE.into();
    snapshot["stages"][0]["name"] = HOSTILE.into();
    // The largest numbers are sent, because sums must not overflow.
    snapshot["retired"] = u64::MAX.into();
    snapshot["dead_lettered"] = u64::MAX.into();
    let refusal = json!({ "ok": false, "error": HOSTILE, "settable": [HOSTILE] });
    let change = json!({ "ok": true, "changed": [HOSTILE] });
    let status = json!({ "ok": true, "snapshot": snapshot });
    let no_answer = format!("{{\"{HOSTILE}");
    let mut strange = status.clone();
    strange["snapshot"]["phase"] = json!(HOSTILE);
    let asked: [(&[&str], String, i32); 7] = [
        (&["set", "./socket", "inflight=1"], refusal.to_string(), 2),
        (&["set", "./socket", "inflight=1"], change.to_string(), 0),
        (&["status", "./socket"], refusal.to_string(), 2),
        (&["status", "./socket"], status.to_string(), 0),
        (&["status", "./socket", "--json"], status.to_string(), 0),
        (&["status", "./socket"], json!({ "ok": HOSTILE }).to_string(), 2),
        // The error quotes an unknown variant.
        (&["status", "./socket"], strange.to_string(), 2),
    ];
    let answers: Vec<_> = asked.iter().map(|(_, answer, _)| answer.clone()).chain([no_answer]).collect();
    let server = thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let _ = BufReader::new(&stream).read_line(&mut String::new());
            let _ = (&stream).write_all(format!("{answer}\n").as_bytes());
        }
    });
    for (command, answer, expected) in &asked {
        let output = room.run(command);
        assert_eq!(code(output.status), *expected, "{answer}: {output:?}");
        assert_shown(answer, &output);
    }
    let output = room.run(&["status", "./socket"]);
    assert_eq!((code(output.status), hidden(&text(&output.stderr))), (2, None), "{output:?}");
    server.join().unwrap();
}
