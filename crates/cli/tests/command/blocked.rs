//! Runs that are blocked by full pipes, or by file systems that do not respond: time limits and interrupts still work.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_long;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Room, code, end_of, ended, signal, until};
use crate::syscalls::{Answer, answer};

/// A room with a flow that appends each line to `path`.
fn appending(path: &str, more: &str) -> Room {
    Room::new(&format!(
        "name = \"blocked\"\n[source]\nlines = \"in\"\n[[stage]]\nname = \"list\"\nop = \"append\"\npath = \"{path}\"\n\
         line = \"{{line}}\"\n{more}\n"
    ))
}

fn pipe(room: &Room) -> PathBuf {
    let path = room.path("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    path
}

/// Waits until a command handles SIGINT and SIGTERM, and sends both. Returns the exit status.
fn interrupted_twice(child: &mut Child) -> i32 {
    until("it hears signals", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let both = (1_u64 << (libc::SIGINT - 1)) | (1_u64 << (libc::SIGTERM - 1));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & both == both)
    });
    // Two different signals are sent, because two pending signals of the same kind count as one.
    signal(child, libc::SIGINT);
    signal(child, libc::SIGTERM);
    code(end_of(child))
}

/// Checks that a run has left no temporary file, no socket and no list of files. On a busy machine, a run may have no
/// time to remove its files. Then the next run removes them.
fn assert_nothing_left(room: &Room) {
    let found = left(room);
    if found.is_empty() {
        return;
    }
    println!("left for the next run: {found:?}");
    room.write("none", "");
    room.write(
        "next.toml",
        "name = \"next\"\n[source]\nlines = \"none\"\n[[stage]]\nname = \"list\"\nop = \"append\"\n\
         path = \"never\"\nline = \"{line}\"\n",
    );
    ended(&room.run(&["run", "next.toml"]), 0);
    assert_eq!(left(room), [""; 0]);
}

/// The files that runs have left behind.
fn left(room: &Room) -> Vec<String> {
    let names = ["", "out", "runtime/millstream"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(room.path(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(move |name| name.contains(".millstream-") || folder.starts_with("runtime"))
    });
    names.collect()
}

#[test]
fn the_time_limit_reaches_a_unit_that_appends_to_a_pipe_without_a_reader() {
    let room = appending("pipe", "timeout = \"100ms\"");
    pipe(&room);
    room.write("in", "a\nb\nc\n");
    let (status, _, err) = room.start(&["run", "flow.toml"]).end();
    assert_eq!(code(status), 1, "{err}");
    assert!(err.contains("admitted 3 = retired 0 + dead-lettered 3 + left 0"), "{err}");
    let letters = room.json_lines("blocked.dead-letters.jsonl");
    assert!(letters.iter().all(|letter| letter["cause"] == "timeout"), "{letters:?}");
}

#[test]
fn a_pipe_whose_reader_stalls_holds_whole_lines() {
    const LINES: usize = 40;
    let room = appending("pipe", "timeout = \"100ms\"");
    let mut reader = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(pipe(&room)).unwrap();
    let line = |number: usize| format!("{number:04}").repeat(1000) + "\n";
    room.write("in", (0..LINES).map(line).collect::<String>());
    let (status, _, err) = room.start(&["run", "flow.toml"]).end();
    assert_eq!(code(status), 1, "{err}");
    let mut held = String::new();
    reader.read_to_string(&mut held).unwrap();
    let retired =
        held.split_inclusive('\n').inspect(|found| assert_eq!(*found, line(found[..4].parse().unwrap()))).count();
    assert!(retired > 0 && retired < LINES);
    assert!(err.contains(&format!("retired {retired} + dead-lettered {} + left 0", LINES - retired)), "{err}");
}

#[test]
fn two_interrupts_end_a_run_whose_lines_are_not_read() {
    for path in ["pipe", "/dev/stdout"] {
        let room = appending(path, "");
        pipe(&room);
        room.write("in", format!("{}\n", "x".repeat(1000)).repeat(1000));
        let mut child = room
            .command(&["run", "flow.toml", "--quiet"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("it runs", || room.path("runtime/millstream").exists());
        assert_eq!(interrupted_twice(&mut child), 3, "{path}");
        assert_nothing_left(&room);
    }
}

#[test]
fn two_interrupts_end_a_run_whose_messages_are_not_read() {
    let room = appending("list", "");
    room.write("in", "a\n");
    let (_reader, mut stderr) = std::io::pipe().unwrap();
    let room_in_pipe = rustix::pipe::fcntl_setpipe_size(&stderr, 4096).unwrap();
    stderr.write_all(&vec![b'x'; room_in_pipe]).unwrap();
    let mut child = room.command(&["run", "flow.toml"]).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
    assert_eq!(interrupted_twice(&mut child), 3);
    assert_nothing_left(&room);
}

/// Copies a file through a program.
const COPY: &str = r#"
    name = "copy"
    [source]
    args = true
    [[stage]]
    name = "read"
    op = "read"
    path = "{line}"
    [[stage]]
    name = "write"
    op = "write"
    path = "out/{line}"
    [[stage]]
    name = "list"
    op = "append"
    path = "out/list"
    line = "{line}"
    fresh = true
"#;

#[test]
fn two_interrupts_end_a_run_whose_file_system_does_not_answer() {
    let stuck: [(&str, c_long, &str); 6] = [
        ("read", libc::SYS_read, "/file"),
        ("open", libc::SYS_openat, "out/.millstream-"),
        ("write", libc::SYS_write, "/out/.millstream-"),
        ("close", libc::SYS_close, "/out/.millstream-"),
        ("rename", libc::SYS_renameat2, "out/file"),
        ("report", libc::SYS_write, "/reports/.millstream-"),
    ];
    for (what, number, name) in stuck {
        let room = Room::new(COPY);
        fs::create_dir(room.path("reports")).unwrap();
        room.write("file", "content");
        let mut command = room.command(&["run", "flow.toml", "file", "--quiet", "--report", "reports/report.json"]);
        command.stderr(Stdio::null());
        let asked = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&asked);
        let Some((mut child, serving)) = answer(&mut command, &[number], move |call| {
            if !call.path.to_string_lossy().contains(name) {
                return Answer::Go;
            }
            seen.store(true, Ordering::SeqCst);
            Answer::Never
        }) else {
            return;
        };
        until(what, || asked.load(Ordering::SeqCst));
        if what == "report" {
            // The main loop of the run is over, so a signal has its default effect again.
            signal(&child, libc::SIGTERM);
            assert!(!end_of(&mut child).success());
        } else {
            assert_eq!(interrupted_twice(&mut child), 3, "{what}");
            assert_nothing_left(&room);
        }
        serving.join().unwrap();
        assert!(!room.path("out/file").exists() && !room.path("out/list").exists() || what == "report", "{what}");
    }
}
