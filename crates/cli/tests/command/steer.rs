//! `millstream status` and `millstream set`, and the control socket that both use.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde_json::{Value, json};

use crate::support::{Room, Running, code, ended, text, until};

/// The stage runs until there is a file `open`. Meanwhile, units wait for a token each.
pub(crate) const GATE: &str = r#"
name = "gate"
inflight = 4
memory = "1MiB"
[resources]
slot = 1
api = { rate = "1000/s", burst = 10 }
[source]
lines = "{input}"
[[stage]]
name = "pass"
op = "exec"
exec = ["sh", "-c", "echo $$ > began; while [ ! -e open ]; do sleep 0.02; done"]
needs = { slot = 1, api = 1 }
workers = "1..4"
"#;

pub(crate) fn gated(room: &Room, args: &[&str]) -> Running {
    // The file is written only once. Another run in this room may be reading the file, and would end early if it found
    // the file empty.
    if !room.path("in").exists() {
        room.write("in", (0..20).map(|i| format!("{i}\n")).collect::<String>());
    }
    room.start(&["run", "flow.toml", "in"].iter().chain(args).copied().collect::<Vec<_>>())
}

pub(crate) fn stop(room: &Room, running: Running, expected: i32) {
    room.write("open", "");
    let (status, _, err) = running.end();
    assert_eq!(code(status), expected, "{err}");
}

/// Sends a request to the socket and reads one line.
pub(crate) fn ask(stream: &mut UnixStream, request: &[u8]) -> Value {
    // The write may fail, because the run stops reading a request that is too long. The run still answers such a
    // request.
    let _ = stream.write_all(request);
    let mut line = String::new();
    BufReader::new(&*stream).read_line(&mut line).expect("the run answers");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn only_its_owner_can_reach_the_socket_and_it_goes_with_the_run() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let socket = running.control.clone();
    assert!(socket.starts_with(room.path("runtime/millstream")), "{socket:?}");
    assert_eq!(socket.file_name().unwrap().to_str().unwrap(), format!("gate-{}", running.child.id()));
    let found = fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    stop(&room, running, 0);
    assert!(!socket.exists());
}

#[test]
fn a_run_is_shown_by_name_flow_process_and_path() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    until("four units are in flight", || room.status("gate")["in_flight"] == 4);
    let id = running.child.id().to_string();
    for run in ["gate", &format!("gate-{id}"), &id, running.control.to_str().unwrap()] {
        let now = room.status(run);
        assert_eq!((&now["flow"], &now["phase"]), (&"gate".into(), &"running".into()), "{run}");
        let (out, _) = ended(&room.run(&["status", run]), 0);
        assert!(out.contains("held by slot") && out.contains("pass"), "{run}: {out}");
    }
    let (out, _) = ended(&room.run(&["status"]), 0);
    assert!(out.contains(&format!("gate-{id}")), "{out}");
    let output = room.run(&["status", "nope"]);
    assert_eq!(code(output.status), 2);
    assert!(text(&output.stderr).contains(&format!("gate-{id}")), "{}", text(&output.stderr));
    stop(&room, running, 0);
    let output = room.run(&["status", &format!("gate-{id}")]);
    assert_eq!(code(output.status), 2);
    assert!(text(&output.stderr).contains("there is no run gate"), "{}", text(&output.stderr));
}

#[test]
fn every_setting_reaches_the_flow() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let settings = ["inflight=7", "memory=2MiB", "resource.slot=3", "resource.api=20/s", "stage.pass.workers=2..3"];
    let args: Vec<_> = ["set", "gate"].iter().chain(&settings).copied().collect();
    let (out, _) = ended(&room.run(&args), 0);
    assert_eq!(out.lines().count(), settings.len(), "{out}");
    assert!(out.contains("inflight=7 (was 4)"), "{out}");
    let now = room.status("gate");
    assert_eq!((&now["inflight_cap"], &now["memory_cap"]), (&7.into(), &(2 << 20).into()));
    assert_eq!(now["resources"][0]["capacity"], 3);
    assert_eq!((&now["resources"][1]["rate_per_s"], &now["resources"][1]["capacity"]), (&20.0.into(), &10.into()));
    assert_eq!((&now["stages"][0]["workers_min"], &now["stages"][0]["workers_max"]), (&2.into(), &3.into()));
    until("three slots are in use", || room.status("gate")["resources"][0]["in_use"] == 3);
    stop(&room, running, 0);
}

#[test]
fn a_wrong_setting_changes_nothing_and_says_what_can_be_set() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    for (wrong, expected) in [
        ("resource.solt=2", "resource.slot=1"),
        ("stage.pss.workers=2", "stage.pass.workers=1..4"),
        ("speed=11", "inflight=4"),
        ("inflight=0", "cap of zero"),
        ("resource.slot=fast", "whole number"),
        ("memory=big", "memory=big"),
    ] {
        let output = room.run(&["set", "gate", "inflight=99", wrong]);
        assert_eq!(code(output.status), 2, "{wrong}");
        assert!(text(&output.stderr).contains(expected), "{wrong}: {}", text(&output.stderr));
        assert_eq!(room.status("gate")["inflight_cap"], 4, "{wrong}: all or none");
    }
    stop(&room, running, 0);
}

#[test]
fn the_protocol_answers_line_by_line_and_bounds_its_requests() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let connect = || UnixStream::connect(&running.control).unwrap();
    let mut stream = connect();
    for _ in 0..3 {
        let answer = ask(&mut stream, b"{\"do\":\"status\"}\n");
        assert_eq!((&answer["ok"], &answer["snapshot"]["flow"]), (&true.into(), &"gate".into()));
    }
    let answer = ask(&mut stream, b"{\"do\":\"set\",\"settings\":[\"inflight=5\"]}\n");
    assert_eq!(answer, json!({ "ok": true, "changed": ["inflight=5 (was 4)"] }));
    for garbage in [&b"\xff\n"[..], b"\n", b"{\"do\":\"stop\"}\n", &[b'['; 100_000]] {
        let answer = ask(&mut connect(), garbage);
        assert_eq!(answer["ok"], false, "{answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    let silent: Vec<_> = (0..40).map(|_| connect()).collect();
    drop(silent);
    // Until the run has noticed that the silent clients have disconnected, it may close the connection of a new client.
    until("it answers again", || {
        let mut stream = connect();
        let mut answer = String::new();
        stream.write_all(b"{\"do\":\"status\"}\n").is_ok()
            && BufReader::new(stream).read_line(&mut answer).is_ok()
            && serde_json::from_str::<Value>(&answer).is_ok_and(|answer| answer["ok"] == true)
    });
    stop(&room, running, 0);
}

#[test]
fn a_socket_that_was_left_behind_is_removed() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &[]);
    // A program that is being started has a copy of the socket, so the test waits until it has been started.
    let program = room.process("began");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(running.control.exists(), "nobody could remove it");
    let (out, err) = {
        let output = room.run(&["status"]);
        (text(&output.stdout), text(&output.stderr))
    };
    assert!(!out.contains("gate-") && !err.contains("gate-"), "{out}{err}");
    assert!(!running.control.exists());
    room.write("open", "");
    until("its program has ended", || !program.runs());
}

#[test]
fn several_runs_are_listed_and_must_be_named() {
    let room = Room::new(GATE);
    let runs = [gated(&room, &[]), gated(&room, &[])];
    let (out, _) = ended(&room.run(&["status"]), 0);
    for run in &runs {
        assert!(out.contains(&format!("gate-{}", run.child.id())), "{out}");
    }
    let output = room.run(&["status", "gate"]);
    assert_eq!(code(output.status), 2);
    assert!(text(&output.stderr).contains("runs 2 times"), "{}", text(&output.stderr));
    for run in runs {
        stop(&room, run, 0);
    }
}

/// Connects without blocking. Fails if the backlog is full.
fn connect_at_once(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

#[test]
fn a_run_that_says_nothing_is_named() {
    let room = Room::new(GATE);
    let (silent, other) = (gated(&room, &[]), gated(&room, &[]));
    silent.signal(libc::SIGSTOP);
    // In the second iteration, the backlog is full, so the connection is not queued.
    let mut offered = Vec::new();
    for _ in 0..2 {
        let (out, err) = ended(&room.run(&["status"]), 0);
        assert!(out.contains(&format!("gate-{}", other.child.id())), "{out}");
        assert!(err.contains(&format!("gate-{} does not answer", silent.child.id())), "{err}");
        offered.extend((0..100).map_while(|_| connect_at_once(&silent.control).ok()));
    }
    assert!(offered.len() < 100, "there is an end to what it is offered");
    drop(offered);
    silent.signal(libc::SIGCONT);
    stop(&room, silent, 0);
    stop(&room, other, 0);
}

#[test]
fn a_socket_at_a_requested_path_replaces_a_dead_one_but_no_live_one() {
    let room = Room::new(GATE);
    let socket = room.path("socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let running = gated(&room, &["--control", "socket"]);
    assert_eq!(room.status("./socket")["flow"], "gate");
    let output = room.run(&["run", "flow.toml", "in", "--control", "socket"]);
    let (_, err) = ended(&output, 2);
    assert!(err.contains("still there"), "{err}");
    assert_eq!(room.status("./socket")["flow"], "gate", "the live one is untouched");
    stop(&room, running, 0);
}

#[test]
fn a_folder_that_others_can_reach_is_not_used() {
    let room =
        Room::new(&GATE.replace("gate", "elsewhere").replace("while [ ! -e open ]; do sleep 0.02; done", "true"));
    room.write("in", "0\n");
    fs::create_dir(room.path("runtime/millstream")).unwrap();
    fs::set_permissions(room.path("runtime/millstream"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output =
        room.command(&["run", "flow.toml", "in"]).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let (_, err) = ended(&output, 0);
    assert!(err.contains("/tmp/millstream-"), "{err}");
    assert_eq!(fs::read_dir(room.path("runtime/millstream")).unwrap().count(), 0);
}

#[test]
fn workers_are_set_for_all_stages_and_never_without_effect() {
    let room = Room::new(
        r#"
        name = "shared"
        workers = 1
        [source]
        lines = "{input}"
        [[stage]]
        name = "pass"
        op = "exec"
        exec = ["sh", "-c", "while [ ! -e open ]; do sleep 0.02; done"]
        "#,
    );
    room.write("in", "x\n".repeat(9));
    let running = room.start(&["run", "flow.toml", "in"]);
    let busy = |workers: u64| {
        until(&format!("{workers} run"), || room.status("shared")["stages"][0]["running"] == workers);
    };
    busy(1);
    let (_, err) = ended(&room.run(&["set", "shared", "stage.pass.workers=40"]), 2);
    assert!(err.contains("no effect") && err.contains("workers=40"), "{err}");
    let (out, _) = ended(&room.run(&["set", "shared", "workers=3"]), 0);
    assert_eq!(out, "workers=3 (was 1)\n");
    busy(3);
    let (out, _) = ended(&room.run(&["status", "shared"]), 0);
    assert!(out.contains("workers 3 shared"), "{out}");
    let (out, _) = ended(&room.run(&["set", "shared", "stage.pass.workers=4", "workers=5"]), 0);
    assert!(out.contains("stage.pass.workers=0..4 (was 0..3)"), "{out}");
    busy(4);
    stop(&room, running, 0);
}
