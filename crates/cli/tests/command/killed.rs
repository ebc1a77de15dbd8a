//! The files and programs that a killed run leaves behind, and their removal by the next run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Room, code, ended, until};

/// A flow whose program writes half of a file and waits. It starts two other programs, and one of these leaves the
/// session.
const HALF: &str = r#"
name = "half"
[source]
args = true
[[stage]]
name = "write"
op = "exec"
exec = ["sh", "-c", "echo half; sleep 7777 & echo $! > inner; setsid sleep 7778 & echo $! > daemon; echo $$ > outer; wait"]
stdout = { file = "out/{name}" }
"#;

/// Another flow, which runs next.
const NEXT: &str = r#"
name = "next"
[source]
args = true
[[stage]]
name = "pass"
op = "filter"
when = { text = "{name}", equals = "x" }
"#;

fn entries(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    fs::read_dir(folder).into_iter().flatten().map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn the_programs_of_a_killed_run_die_and_the_next_run_clears_up() {
    let room = Room::new(HALF);
    room.write("next.toml", NEXT);
    let running = room.start(&["run", "flow.toml", "unit"]);
    let [outer, inner, daemon] = ["outer", "inner", "daemon"].map(|name| room.process(name));
    let socket = running.control.clone();
    let (out, runtime) = (room.path("out"), room.path("runtime/millstream"));
    assert!(entries(&out).iter().all(|name| name.starts_with(".millstream-")), "{:?}", entries(&out));
    assert_eq!(entries(&out).len(), 1);

    // Another run that ends meanwhile does not remove the files of this run.
    ended(&room.run(&["run", "next.toml", "unit", "--quiet"]), 0);
    assert_eq!(entries(&out).len(), 1);
    assert!(socket.exists() && outer.runs() && inner.runs());

    running.signal(libc::SIGKILL);
    let (status, ..) = running.end();
    assert_eq!(status.code(), None);
    until("its program is gone", || !outer.runs());
    until("what the program has started is gone", || !inner.runs());
    assert!(daemon.runs(), "what has left the session is its own master");
    // SAFETY: `kill` takes two numbers. The process is the daemon, which no other code ends.
    unsafe { libc::kill(daemon.0.parse().unwrap(), libc::SIGKILL) };

    assert!(socket.exists() && entries(&out).len() == 1, "nobody has cleared up yet");
    let (_, err) = ended(&room.run(&["run", "next.toml", "unit"]), 0);
    assert!(err.contains("removed 1 temporary file of runs that were killed"), "{err}");
    assert_eq!((entries(&out), entries(&runtime)), (vec![], vec![]));
}

#[test]
fn a_run_whose_terminal_is_closed_leaves_nothing() {
    for signal in [libc::SIGHUP, libc::SIGQUIT] {
        let room = Room::new(HALF);
        let mut running = room.start(&["run", "flow.toml", "unit"]);
        let [outer, inner, daemon] = ["outer", "inner", "daemon"].map(|name| room.process(name));
        running.signal(signal);
        running.line_with("no more units are admitted");
        running.signal(signal);
        let (status, _, err) = running.end();
        // SAFETY: `kill` takes two numbers. The process is the daemon, which no other code ends.
        unsafe { libc::kill(daemon.0.parse().unwrap(), libc::SIGKILL) };
        assert_eq!(code(status), 3, "{err}");
        until("its programs are gone", || !outer.runs() && !inner.runs());
        assert_eq!((entries(&room.path("out")), entries(&room.path("runtime/millstream"))), (vec![], vec![]));
    }
}

#[test]
fn a_run_that_ends_normally_leaves_no_process_and_nothing_in_the_run_time_folder() {
    let room = Room::new(&HALF.replace("; wait", "; kill $! $(cat inner)"));
    let output = room.run(&["run", "flow.toml", "unit"]);
    let (_, err) = ended(&output, 0);
    assert!(!err.contains("killed"), "{err}");
    assert_eq!(room.read("out/unit"), "half\n");
    assert_eq!(entries(&room.path("out")), ["unit"]);
    assert_eq!(entries(&room.path("runtime/millstream")), [""; 0]);
    until("no supervisor is left", || !supervisors_of(&room.path("")));
}

#[test]
fn the_programs_of_killed_instruments_die_too() {
    let script = "sleep 7777 & echo $! > inner; echo $$ > outer; wait";
    let slo = ["slo", "--at-least", "0.9", "--", "sh", "-c", script];
    let compared = format!("sh -c '{script}'");
    for args in [&slo[..], &["compare", "--run", &compared, "true"]] {
        let room = Room::new("");
        let mut child = room.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let [outer, inner] = ["outer", "inner"].map(|name| room.process(name));
        assert!(outer.runs() && inner.runs());
        child.kill().unwrap();
        child.wait().unwrap();
        until("its program is gone", || !outer.runs());
        until("the program's own child is gone", || !inner.runs());
    }
}

/// Whether a supervisor of a run in `folder` exists. The environment of such a process contains the folder.
fn supervisors_of(folder: &Path) -> bool {
    let text = folder.to_str().unwrap().trim_end_matches('/').to_owned();
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&read("cmdline")).starts_with("flow-supervisor")
            && String::from_utf8_lossy(&read("environ")).contains(&text)
    })
}

#[test]
fn programs_that_cannot_run_are_found_before_anything_runs() {
    let flow = "[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"exec\"\nexec = [\"./tool\"]\n";
    let room = Room::new(flow);
    for (content, mode, reason) in [
        (None, 0, "there is no program ./tool"),
        (Some("#!/bin/sh\n"), 0o644, "./tool is not executable"),
        (Some("echo\n"), 0o755, "./tool does not name its interpreter"),
        (Some("#!/no/such\n"), 0o755, "which does not exist"),
    ] {
        if let Some(content) = content {
            room.write("tool", content);
            fs::set_permissions(room.path("tool"), fs::Permissions::from_mode(mode)).unwrap();
        }
        for command in ["plan", "run"] {
            let args = if command == "run" { vec!["run", "flow.toml", "x"] } else { vec!["plan", "flow.toml"] };
            let (_, err) = ended(&room.run(&args), 2);
            assert!(err.contains(reason), "{err}");
        }
    }
    room.write("tool", "#!/bin/sh\n");
    assert_eq!(code(room.run(&["run", "flow.toml", "x"]).status), 0);
}
