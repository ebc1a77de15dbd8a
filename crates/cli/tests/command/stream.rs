//! `millstream stream`.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::support::{PATIENCE, Room, end_of, signal, until};

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
    // The input is read again, which is the advice in the message.
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
fn a_spill_runs_a_refused_program_and_a_full_disk_is_reported() {
    let room = Room::new("");
    room.write("lines", numbers(400_000));
    let text = "x = lines(); zip(every(x, 2), spill(x, \".\"))";
    let (status, out, error) = run(&room, &["stream", text, "lines"]);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.lines().enumerate().all(|(n, line)| line == format!("{}\t{n}", 2 * n)));
    assert_eq!(out.lines().count(), 200_000);
    // The shell limits file sizes to 100 KiB.
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
fn a_spill_on_a_full_disk_ends_with_an_error_after_whole_values() {
    let room = Room::new("");
    room.write("lines", numbers(400_000));
    std::fs::create_dir(room.path("small")).expect("a folder");
    let mut mounted = Command::new("unshare");
    let script = "mount -t tmpfs -o size=1m none small || exit 99
        \"$0\" stream 'x = lines(); zip(every(x, 2), spill(x, \"small\"))' lines
        status=$?; ls -A small; exit $status";
    mounted.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_millstream")]);
    room.at_home(&mut mounted);
    let output = match mounted.output() {
        Ok(output) if output.status.code() != Some(99) && !output.stdout.is_empty() => output,
        _ => return println!("skipped: no disk of a megabyte can be mounted here"),
    };
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot spill values of") && error.contains("No space left on device"), "{error}");
    assert!(error.contains("the output is incomplete"), "{error}");
    // No file is left in the folder, and each line of the output is a value.
    assert!(out.lines().enumerate().all(|(n, line)| line == format!("{}\t{n}", 2 * n)), "{out:.200}");
    assert!(out.ends_with('\n') && out.lines().count() > 10_000, "{}", out.lines().count());
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let room = Room::new("");
    let mut head = Command::new("bash");
    let script = "\"$0\" stream 'numbers(1, 9000000000000000000)' | head -2; echo ${PIPESTATUS[0]}";
    room.at_home(head.args(["-c", script, env!("CARGO_BIN_EXE_millstream")]));
    assert_eq!(String::from_utf8_lossy(&head.output().expect("bash runs").stdout), "1\n2\n0\n");
}

/// A program whose input stays open, and a channel for the lines of its output.
fn filter(room: &Room, text: &str, input: &str) -> (Child, PipeWriter, Receiver<String>) {
    let (reader, mut writer) = pipe().expect("a pipe");
    writer.write_all(input.as_bytes()).expect("it has room");
    let mut child = room.command(&["stream", text]);
    let mut child = child.stdin(reader).stdout(Stdio::piped()).spawn().expect("it starts");
    let (send, lines) = channel();
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    (child, writer, lines)
}

/// The number of bytes in a pipe.
fn waiting_in(pipe: &impl AsRawFd) -> i32 {
    let mut bytes = 0;
    // SAFETY: the call writes one number to `bytes`, and the descriptor is open.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

#[test]
fn each_value_is_out_before_the_program_waits_for_more_input() {
    let room = Room::new("");
    for (text, input, expected) in [
        ("lines()", "a\nb\n", "a\nb\n"),
        ("x = lines(); zip(skip(x, 1), x)", "a\nb\nc\n", "b\ta\nc\tb\n"),
        ("map(csv(), it.n)", "n\n1\n2\n", "1\n2\n"),
        ("map(json(), it)", "7\n8\n", "7\n8\n"),
        ("records(2)", "abcd", "ab\ncd\n"),
    ] {
        let (mut child, mut input_of, lines) = filter(&room, text, input);
        for line in expected.lines() {
            assert_eq!(lines.recv_timeout(PATIENCE).as_deref(), Ok(line), "{text}");
        }
        input_of.write_all(input.as_bytes()).expect("it reads");
        assert!(lines.recv_timeout(PATIENCE).is_ok(), "{text}");
        // The program waits for input and has no output in a buffer.
        signal(&child, libc::SIGTERM);
        assert_eq!(end_of(&mut child).signal(), Some(libc::SIGTERM), "{text}");
    }
}

#[test]
fn a_program_that_is_asked_to_end_leaves_all_its_lines_whole() {
    let room = Room::new("");
    for number in [libc::SIGINT, libc::SIGTERM] {
        // The program prints one line, and then searches for another line forever.
        let endless = "merge(lines(), filter(numbers(1, 9000000000000000000), it < 0))";
        let (mut child, input, lines) = filter(&room, endless, "first\n");
        until("the line is read", || waiting_in(&input) == 0);
        signal(&child, number);
        assert_eq!(lines.recv_timeout(PATIENCE).as_deref(), Ok("first"));
        assert_eq!(end_of(&mut child).signal(), Some(number));

        let mut many = room.command(&["stream", "numbers(1, 9000000000000000000)"]);
        let mut many = many.stdout(File::create(room.path("many")).expect("a file")).spawn().expect("it starts");
        until("a buffer is written", || room.path("many").metadata().is_ok_and(|file| file.len() > 0));
        signal(&many, number);
        assert_eq!(end_of(&mut many).signal(), Some(number));
        let many = room.read("many");
        assert!(many.ends_with('\n') && many.lines().enumerate().all(|(n, line)| line == (n + 1).to_string()));
    }
}

#[test]
fn a_signal_ends_a_program_whose_output_is_not_read_a_moment_later() {
    let room = Room::new("");
    let (unread, output): (PipeReader, PipeWriter) = pipe().expect("a pipe");
    let mut child = room.command(&["stream", "numbers(1, 9000000000000000000)"]);
    let mut child = child.stdout(output).spawn().expect("it starts");
    until("a buffer is written", || waiting_in(&unread) > 60_000);
    signal(&child, libc::SIGTERM);
    assert_eq!(end_of(&mut child).signal(), Some(libc::SIGTERM));
}

#[test]
fn descriptors_that_do_not_block_are_waited_for() {
    let room = Room::new("");
    let ((input, mut writer), (mut reader, output)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
    for end in [input.as_fd(), output.as_fd()] {
        rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK).expect("a pipe");
    }
    let mut child = room.command(&["stream", "lines()"]).stdin(input).stdout(output).spawn().expect("it starts");
    let line = format!("{}\n", "x".repeat(99));
    let lines = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        (0..5000).for_each(|_| writer.write_all(line.as_bytes()).expect("it is read"));
    });
    thread::sleep(Duration::from_millis(200));
    let mut out = Vec::new();
    reader.read_to_end(&mut out).expect("a pipe");
    lines.join().expect("it writes");
    assert_eq!((out.len(), end_of(&mut child).code()), (500_000, Some(0)));
}

#[test]
fn standard_input_by_two_names_is_refused() {
    let room = Room::new("");
    let mut child = room.command(&["stream", "zip(lines(), lines(\"/dev/stdin\"))"]);
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    assert_eq!(end_of(&mut child).code(), Some(2));
    let told = std::io::read_to_string(child.stderr.take().expect("piped")).expect("UTF-8");
    assert!(told.contains("standard input is read by one source"), "{told}");
}

#[test]
fn a_second_signal_ends_a_program_whose_output_is_not_read() {
    let room = Room::new("");
    let (unread, output): (PipeReader, PipeWriter) = pipe().expect("a pipe");
    let mut child = room.command(&["stream", "numbers(1, 9000000000000000000)"]);
    let mut child = child.stdout(output).spawn().expect("it starts");
    // The pipe is as large as the program's buffer, so the next write blocks.
    until("a buffer is written", || waiting_in(&unread) > 60_000);
    signal(&child, libc::SIGINT);
    signal(&child, libc::SIGTERM);
    assert!([Some(libc::SIGINT), Some(libc::SIGTERM)].contains(&end_of(&mut child).signal()));
}

#[test]
fn a_reader_that_goes_away_ends_a_program_before_it_waits_for_more_input() {
    let room = Room::new("");
    let (reader, mut writer) = pipe().expect("a pipe");
    let mut child = room.command(&["stream", "lines()"]);
    let mut child = child.stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    writer.write_all(b"a line\n").expect("it is there");
    assert_eq!(end_of(&mut child).code(), Some(0));
    assert_eq!(std::io::read_to_string(child.stderr.take().expect("piped")).expect("UTF-8"), "");
}
