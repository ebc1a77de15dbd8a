//! `millstream retry`, and the files that stages gather over runs and retries.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use millstream_command::hex;

use crate::support::{Room, code, ended, until};

/// Lines that start with `bad` die until there is a file `mended`. Each line for which a program runs is appended to
/// the file `ran`, in hexadecimal.
const MEND: &str = r#"
name = "mend"
inflight = 2
[params]
mark = "ran"
[source]
lines = "{input}"
[[stage]]
name = "try"
op = "exec"
exec = ["sh", "-c", "printf %s \"$0\" | od -An -tx1 | tr -d ' \n' >> $1; echo >> $1; case $0 in bad*) test -e mended;; esac", "{line}", "{param.mark}"]
workers = 1
[[stage]]
name = "list"
op = "append"
path = "list"
line = "{line}"
fresh = true
"#;

const LETTERS: &str = "mend.dead-letters.jsonl";

fn ran(room: &Room, mark: &str) -> Vec<Vec<u8>> {
    let mut ran: Vec<_> = room.read(mark).lines().map(|line| hex::decode(line).expect("hexadecimal")).collect();
    ran.sort();
    ran
}

fn sorted(room: &Room, name: &str) -> Vec<String> {
    let mut lines: Vec<_> = room.read(name).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_retry_runs_exactly_the_dead_units_again() {
    let room = Room::new(MEND);
    room.write("in", b"good 1\nbad \xff\nbad 1\ngood 2\n");
    ended(&room.run(&["run", "flow.toml", "in", "-p", "mark=marks"]), 1);
    assert_eq!(ran(&room, "marks").len(), 4);

    fs::remove_file(room.path("marks")).unwrap();
    let (_, err) = ended(&room.run(&["retry"]), 1);
    assert!(err.contains("retrying 2 units of mend-"), "{err}");
    assert_eq!(ran(&room, "marks"), [&b"bad 1"[..], b"bad \xff"]);

    room.write("mended", "");
    fs::remove_file(room.path("marks")).unwrap();
    let (_, err) = ended(&room.run(&["retry", LETTERS, "--report", "again.json"]), 0);
    assert!(err.contains("admitted 2 = retired 2"), "{err}");
    assert_eq!(ran(&room, "marks"), [&b"bad 1"[..], b"bad \xff"]);
    assert_eq!(room.json("again.json")["retired"], 2);
    assert!(!room.path(LETTERS).exists());
    assert_eq!(room.json_lines(&format!("{LETTERS}.old")).len(), 2);
    let (_, err) = ended(&room.run(&["retry"]), 2);
    assert!(err.contains("no file `*.dead-letters.jsonl` here"), "{err}");
}

#[test]
fn files_of_a_walk_are_retried_from_any_folder() {
    let room = Room::new(
        r#"
        name = "walk"
        [source]
        walk = "{input}"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "try"
        op = "exec"
        exec = ["sh", "-c", "test -e mended && cat"]
        [[stage]]
        name = "keep"
        op = "write"
        path = "out/{rel}"
        "#,
    );
    let strange = Path::new("in/deep").join(OsStr::from_bytes(b"caf\xe9\n\"x"));
    fs::create_dir_all(room.path("in/deep")).unwrap();
    fs::create_dir(room.path("elsewhere")).unwrap();
    room.write(&strange, "coffee");
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("mended", "");
    let mut retry = room.command(&["retry", "../walk.dead-letters.jsonl"]);
    ended(&retry.current_dir(room.path("elsewhere")).output().unwrap(), 0);
    let kept = Path::new("out/deep").join(OsStr::from_bytes(b"caf\xe9\n\"x"));
    assert_eq!(fs::read(room.path(kept)).unwrap(), b"coffee");
    assert_eq!(fs::read_dir(room.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_changed_flow_is_refused_unless_that_is_allowed() {
    let room = Room::new(MEND);
    room.write("in", "bad\n");
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("flow.toml", MEND.replace("test -e mended", "true"));
    let (_, err) = ended(&room.run(&["retry"]), 2);
    assert!(err.contains("flow.toml has changed since its run") && err.contains("--changed"), "{err}");
    assert_eq!(room.json_lines(LETTERS).len(), 1, "nothing was run");
    ended(&room.run(&["retry", "--changed"]), 0);
    assert_eq!(ran(&room, "ran"), [b"bad", b"bad"]);
}

#[test]
fn a_file_that_has_no_dead_letters_is_refused() {
    let room = Room::new(MEND);
    room.write("in", "bad\n");
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    let letter = room.read(LETTERS);
    let other = letter.replace("\"inputs\":[\"in\"]", "\"inputs\":[\"on\"]");
    assert_ne!(letter, other);
    for (content, expected) in [
        ("{\"run\":\"old-1\"".to_owned(), "letters:1 is not a dead letter"),
        (format!("{letter}{{\n"), "letters:2 is not a dead letter"),
        (format!("{letter} \n{{\n"), "letters:3 is not a dead letter"),
        ("{\"run\":\"old-1\",\"line\":\"x\"}\n".to_owned(), "does not say how its run was started"),
        (letter.replace("\"line\":\"bad\"", "\"text\":\"bad\""), "neither a `path` nor a `line`"),
        (format!("{letter}{other}"), "letters:2 comes from another run"),
        (letter.replace("/flow.toml", "/gone.toml"), "gone.toml"),
    ] {
        room.write("letters", &content);
        let (_, err) = ended(&room.run(&["retry", "letters"]), 2);
        assert!(err.contains(expected), "{expected}: {err}");
    }
    room.write("letters", "");
    ended(&room.run(&["retry", "letters"]), 0);
    room.write("b.dead-letters.jsonl", &letter);
    let (_, err) = ended(&room.run(&["retry"]), 2);
    assert!(err.contains("b.dead-letters.jsonl, mend.dead-letters.jsonl"), "{err}");
    assert_eq!(ran(&room, "ran").len(), 1);
}

#[test]
fn letters_that_an_interrupted_retry_did_not_reach_are_kept() {
    let room = Room::new(&MEND.replace("printf", "echo $$ > began; while [ -e shut ]; do sleep 0.02; done; printf"));
    room.write("in", (0..9).map(|i| format!("bad {i}\n")).collect::<String>());
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("mended", "");
    room.write("shut", "");
    fs::remove_file(room.path("began")).unwrap();
    fs::remove_file(room.path("ran")).unwrap();
    let mut running = room.start(&["retry"]);
    room.process("began");
    until("two are in flight", || room.status("mend")["in_flight"] == 2);
    running.signal(libc::SIGINT);
    running.line_with("interrupted");
    fs::remove_file(room.path("shut")).unwrap();
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(err.contains("7 letters not retried"), "{err}");
    assert_eq!(ran(&room, "ran").len(), 2);
    ended(&room.run(&["retry"]), 0);
    let all: Vec<Vec<u8>> = (0..9).map(|i| format!("bad {i}").into_bytes()).collect();
    assert_eq!(ran(&room, "ran"), all, "each once");
    assert_eq!(sorted(&room, "list").len(), 9, "and each in the list");
}

/// The name of the file with the letters that a retry is running; `None` if there is no such file.
fn set_apart(room: &Room) -> Option<String> {
    let names = fs::read_dir(room.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.into_iter().find(|name| name.ends_with(".again-0"))
}

#[test]
fn a_retry_that_is_killed_loses_no_letter() {
    let room = Room::new(&MEND.replace("printf", "echo $$ > began; while [ -e shut ]; do sleep 0.02; done; printf"));
    room.write("in", (0..5).map(|i| format!("bad {i}\n")).collect::<String>());
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("mended", "");
    room.write("shut", "");
    fs::remove_file(room.path("began")).unwrap();
    fs::remove_file(room.path("ran")).unwrap();
    let mut running = room.start(&["retry"]);
    let program = room.process("began");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    until("the program ends with its run", || !program.runs());
    fs::remove_file(room.path("shut")).unwrap();
    let apart = set_apart(&room).expect("a retry that was killed leaves its letters");
    // If there are also letters of other units, these letters are retried, and a message names the file of the
    // unfinished round.
    room.write(LETTERS, room.read(&apart).lines().next().unwrap().to_owned() + "\n");
    let (_, err) = ended(&room.run(&["retry"]), 0);
    assert!(err.contains(&format!("`millstream retry {apart}`")), "{err}");
    fs::remove_file(room.path(&(LETTERS.to_owned() + ".old"))).unwrap();
    fs::remove_file(room.path("ran")).unwrap();
    // If there are no other letters, `retry` finds this file by itself.
    ended(&room.run(&["retry"]), 0);
    let all: Vec<Vec<u8>> = (0..5).map(|i| format!("bad {i}").into_bytes()).collect();
    assert_eq!(ran(&room, "ran"), all);
    assert_eq!(set_apart(&room), None);
}

#[test]
fn a_letter_about_a_fault_of_the_source_stays() {
    let room = Room::new(MEND);
    room.write("in", [b"bad\n".to_vec(), vec![b'x'; (16 << 20) + 1], b"\n".to_vec()].concat());
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    assert_eq!(room.json_lines(LETTERS).len(), 2);
    room.write("mended", "");
    let (_, err) = ended(&room.run(&["retry"]), 1);
    assert!(err.contains("1 letter not retried"), "{err}");
    assert_eq!(ran(&room, "ran"), [b"bad", b"bad"], "what is left of a line is no unit");
    let letters = room.json_lines(LETTERS);
    assert_eq!((letters.len(), &letters[0]["source_fault"]), (1, &true.into()));
}

#[test]
fn a_list_is_not_replaced_by_one_with_gaps_and_a_retry_completes_it() {
    let room = Room::new(MEND);
    room.write("in", "good 1\ngood 2\n");
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in"]), 0);
    assert!(err.contains("list: list has 2 lines of this run"), "{err}");

    room.write("in", "");
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "--quiet"]), 0);
    assert!(err.contains("list is unchanged, because the run had no units"), "{err}");
    assert_eq!(sorted(&room, "list"), ["good 1", "good 2"]);

    room.write("in", "good 3\nbad 1\nbad 2\n");
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "--report", "report.json"]), 1);
    assert!(err.contains("list is unchanged, because units died; this run's list is list.mend-"), "{err}");
    let file = room.json("report.json")["gathered_files"][0].clone();
    assert_eq!((&file["placed"], &file["lines"], &file["because"]), (&false.into(), &1.into(), &"units died".into()));
    assert_eq!(sorted(&room, "list"), ["good 1", "good 2"]);

    ended(&room.run(&["retry", "report.dead-letters.jsonl"]), 1);
    assert_eq!(sorted(&room, "list"), ["good 1", "good 2"]);
    room.write("mended", "");
    let letters = room.read("report.dead-letters.jsonl");
    for (letter, page) in letters.lines().zip(["is unchanged, because units died", "the earlier file is list.old"]) {
        assert_eq!(sorted(&room, "list"), ["good 1", "good 2"], "not before the last of them");
        room.write("some", letter);
        ended(&room.run(&["retry", "some", "--report", "page.html"]), 0);
        assert!(room.read("page.html").contains(page), "{page}");
    }
    assert_eq!(sorted(&room, "list"), ["bad 1", "bad 2", "good 3"]);
    assert_eq!(sorted(&room, "list.old"), ["good 1", "good 2"]);
    let left = fs::read_dir(room.path(".")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".partial")));
}

#[test]
fn a_list_that_may_have_gaps_is_replaced_by_every_complete_run() {
    let room = Room::new(&MEND.replace("fresh = true", "fresh = \"always\""));
    for (input, status, expected) in [("good\n", 0, &["good"][..]), ("good 2\nbad\n", 1, &["good 2"]), ("", 0, &[])] {
        room.write("in", input);
        ended(&room.run(&["run", "flow.toml", "in"]), status);
        assert_eq!(sorted(&room, "list"), expected);
    }
}

#[test]
fn a_second_retry_of_letters_that_are_being_retried_is_refused() {
    let room = Room::new(&MEND.replace("printf", "echo $$ > began; while [ -e shut ]; do sleep 0.02; done; printf"));
    room.write("in", "bad 1\nbad 2\n");
    ended(&room.run(&["run", "flow.toml", "in"]), 1);
    room.write("mended", "");
    for args in [&["retry"][..], &["retry", "--dead-letters", "new"]] {
        let letters = room.read(LETTERS);
        room.write("shut", "");
        fs::remove_file(room.path("ran")).unwrap();
        fs::remove_file(room.path("began")).unwrap();
        let running = room.start(args);
        room.process("began");
        let others = set_apart(&room).unwrap_or_else(|| LETTERS.to_owned());
        let (_, err) = ended(&room.run(&["retry", &others]), 2);
        assert!(err.contains(&format!("{others} is in use by a run or another retry")), "{err}");
        fs::remove_file(room.path("shut")).unwrap();
        let (status, _, err) = running.end();
        assert_eq!(code(status), 0, "{err}");
        assert_eq!(ran(&room, "ran"), [b"bad 1", b"bad 2"], "each once");
        room.write(LETTERS, letters);
    }
}
