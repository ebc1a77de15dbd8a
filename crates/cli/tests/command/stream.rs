//! `millstream stream`.

use std::process::{Command, Stdio};

use crate::support::Room;

fn run(room: &Room, args: &[&str]) -> (i32, String, String) {
    let output = room.command(args).output().expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}

fn numbers(count: u64) -> String {
    (0..count).map(|n| format!("{n}\n")).collect()
}

#[test]
fn a_program_reads_its_inputs_and_prints_its_values() {
    let room = Room::new("");
    room.write("a", "one\ntwo\nthree\n");
    room.write("b", "{\"n\": 1}\n{\"n\": 2}\n");
    let zip = run(&room, &["stream", "zip(lines(), map(json(), it.n * 10))", "a", "b"]);
    assert_eq!(zip, (0, "one\t10\ntwo\t20\n".to_owned(), String::new()));
    let mut child = room.command(&["stream", "x = lines(); zip(skip(x, 1), x)"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"1\n2\n\xff\n").expect("it reads");
    assert_eq!(child.wait_with_output().expect("it ends").stdout, b"2\t1\n\xff\t2\n");
}

#[test]
fn a_refused_program_is_shown_with_both_paths_and_the_text_to_write() {
    let room = Room::new("");
    room.write("lines", numbers(10));
    let (status, out, error) = run(&room, &["stream", "x = lines(); zip(every(x, 2), x)", "lines"]);
    assert_eq!((status, out.as_str()), (2, ""));
    for part in [
        "at different rates: 1 of 2 against 1 of 1",
        "after n values of `x`, n/2 values",
        "1 of 2 of `x`",
        "EXPR",
        "zip(every(x, 2), buffer(x, 100000))",
        "after 200001 values of `x`",
        "zip(every(x, 2), reread(x))",
        "spill(x, \"/tmp\")",
        "zip(align(every(x, 2), x), x)",
        "zip(hold(every(x, 2), x), x)",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    // Read again, as the message says.
    let (status, out, _) = run(&room, &["stream", "x = lines(); zip(every(x, 2), reread(x))", "lines"]);
    assert_eq!((status, out.as_str()), (0, "0\t0\n2\t1\n4\t2\n6\t3\n8\t4\n"));
}

#[test]
fn explain_shows_clocks_and_bounds_and_reads_nothing() {
    let room = Room::new("");
    let text = "x = lines(\"none\"); zip(skip(every(x, 2), 3), map(every(x, 2, 1), length(it)))";
    let (status, out, error) = run(&room, &["stream", text, "--explain"]);
    assert_eq!((status, error.as_str()), (0, ""), "{out}");
    for part in ["000000(10)", "(01)", "1 of 2", "proven", "constant space: "] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert_eq!(run(&room, &["stream", "x = lines(); zip(every(x, 2), x)", "--explain"]).0, 2);
}

#[test]
fn mistakes_are_shown_in_the_text_whatever_is_in_it() {
    let room = Room::new("");
    for text in ["", "evry(lines(), 2)", "x = lines()", "\u{1b}[2J", "map(lines(), \"\u{9b}", "é ü", "lines(\n)\n;;"]
    {
        let (status, out, error) = run(&room, &["stream", text]);
        assert_eq!((status, out.as_str()), (2, ""), "{text:?}");
        assert!(error.starts_with("error: ") && !error.contains('\u{1b}') && !error.contains('\u{9b}'), "{error:?}");
    }
    assert!(run(&room, &["stream", "evry(lines(), 2)"]).2.contains("every"));
}

#[test]
fn a_run_that_ends_early_has_printed_what_came_before() {
    let room = Room::new("");
    room.write("lines", numbers(100));
    let (status, out, error) = run(&room, &["stream", "x = lines(); zip(every(x, 2), buffer(x, 10))", "lines"]);
    assert_eq!(status, 1);
    assert!(out.starts_with("0\t0\n2\t1\n") && error.contains("is full with 10 values"), "{out}{error}");
    let (status, out, error) = run(&room, &["stream", "map(lines(), 100 / number(it) * 0)", "lines"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(error.contains("division by zero"), "{error}");
    let (status, _, error) = run(&room, &["stream", "lines()", "missing"]);
    assert_eq!(status, 1);
    assert!(error.contains("missing") && error.contains("No such file"), "{error}");
    assert_eq!(run(&room, &["stream", "lines(\"flow.toml\")", "lines"]).0, 2, "an input that no source reads");
}

#[test]
fn a_spill_runs_what_was_refused_and_a_full_disk_is_told() {
    let room = Room::new("");
    room.write("lines", numbers(100_000));
    let text = "x = lines(); zip(every(x, 2), spill(x, \".\"))";
    let (status, out, error) = run(&room, &["stream", text, "lines"]);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.lines().enumerate().all(|(n, line)| line == format!("{}\t{n}", 2 * n)));
    assert_eq!(out.lines().count(), 50_000);
    // No file may have more than 100 KiB.
    let mut limited = Command::new("bash");
    limited.args([
        "-c",
        "ulimit -f 100; exec \"$0\" stream \"$1\" lines | tail -1",
        env!("CARGO_BIN_EXE_millstream"),
        text,
    ]);
    room.at_home(&mut limited);
    let output = limited.output().expect("bash runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot spill values of") && error.contains("File too large"), "{error}");
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let room = Room::new("");
    let mut head = Command::new("bash");
    let script = "\"$0\" stream 'numbers(1, 9000000000000000000)' | head -2; echo ${PIPESTATUS[0]}";
    room.at_home(head.args(["-c", script, env!("CARGO_BIN_EXE_millstream")]));
    assert_eq!(String::from_utf8_lossy(&head.output().expect("bash runs").stdout), "1\n2\n0\n");
}
