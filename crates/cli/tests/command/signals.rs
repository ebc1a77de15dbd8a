//! `millstream run` and signals: the first signal stops admission, and the second abandons the units in flight.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Room, Running, code, signal, until};

/// Units run two at a time, until there is a file `open`.
const GATE: &str = r#"
name = "gate"
inflight = 4
[source]
lines = "{input}"
[[stage]]
name = "pass"
op = "exec"
exec = ["sh", "-c", "echo $$ > began.$0; while [ ! -e open ]; do sleep 0.02; done", "{line}"]
workers = 2
"#;

fn gated(args: &[&str]) -> (Room, Running) {
    let room = Room::new(GATE);
    room.write("in", (0..50).map(|i| format!("{i}\n")).collect::<String>());
    let args: Vec<_> = ["run", "flow.toml", "in", "--report", "report.json"].iter().chain(args).copied().collect();
    let running = room.start(&args);
    until("two units run and two wait", || {
        let pass = &room.status("gate")["stages"][0];
        pass["running"] == 2 && pass["waiting"] == 2
    });
    (room, running)
}

#[test]
fn one_interrupt_stops_admission_and_lets_units_in_flight_finish() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let (room, mut running) = gated(&[]);
        running.signal(signal);
        running.line_with("no more units are admitted");
        room.write("open", "");
        let (status, out, err) = running.end();
        assert_eq!(code(status), 3, "{err}");
        let report = room.json("report.json");
        assert_eq!(report["outcome"], "stopped");
        let admitted = report["admitted"].as_u64().unwrap();
        assert!((2..50).contains(&admitted), "{report}");
        assert_eq!((&report["retired"], &report["left"]), (&admitted.into(), &0.into()));
        assert!(err.contains("left 0") && out.is_empty(), "{err}");
    }
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let room = Room::new(GATE);
    room.write("in", (0..50).map(|i| format!("{i}\n")).collect::<String>());
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        "trap '' HUP INT QUIT; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_millstream"),
        "run",
        "flow.toml",
        "in",
    ]);
    room.at_home(&mut command);
    let mut running = Running::start(command);
    room.wait_for("began.0");
    for ignored in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        running.signal(ignored);
    }
    assert_eq!(room.status("gate")["phase"], "running");
    running.signal(libc::SIGTERM);
    running.line_with("no more units are admitted");
    until("the status says so", || room.status("gate")["phase"] == "draining");
    room.write("open", "");
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
}

#[test]
fn two_interrupts_abandon_a_hung_stage_and_say_what_was_left() {
    // On a busy machine, a run may not end within a second, and is then ended without a message. So several attempts
    // are made.
    assert!((0..5).any(|_| two_interrupts_say_what_was_left()), "every run was cut short");
}

/// Whether the run ended normally within a second of the second interrupt.
fn two_interrupts_say_what_was_left() -> bool {
    let (room, mut running) = gated(&[]);
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    let programs = ["began.0", "began.1"].map(|unit| room.process(unit));
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    for program in programs {
        until("its programs are gone", || !program.runs());
    }
    if err.contains("still blocked") {
        return false;
    }
    assert!(err.contains("units left; when abandoned: 2 running and 2 waiting in pass"), "{err}");
    let report = room.json("report.json");
    assert_eq!(report["outcome"], "abandoned");
    let [admitted, retired, dead, left] =
        ["admitted", "retired", "dead_lettered", "left"].map(|member| report[member].as_u64().unwrap());
    assert_eq!(admitted, retired + dead + left);
    assert!(dead + left > 0, "{report}");
    true
}

#[test]
fn a_source_that_waits_for_standard_input_does_not_delay_an_interrupt() {
    let room = Room::new(&GATE.replace("{input}", "-"));
    let mut command = room.command(&["run", "flow.toml"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all(b"0\n").unwrap();
    room.wait_for("began.0");
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    room.write("open", "");
    let (status, out, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(err.contains("admitted 1 = retired 1 + dead-lettered 0 + left 0") && out.is_empty(), "{err}");
    drop(stdin);
}

#[test]
fn quiet_says_nothing_about_an_interrupt() {
    let room = Room::new(GATE);
    room.write("in", (0..50).map(|i| format!("{i}\n")).collect::<String>());
    let mut child = room
        .command(&["run", "flow.toml", "in", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    room.wait_for("began.0");
    signal(&child, libc::SIGINT);
    until("it has seen the interrupt", || room.status(&format!("gate-{}", child.id()))["phase"] == "draining");
    room.write("open", "");
    until("the run ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    let (out, err) = crate::support::ended(&output, 3);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
}
