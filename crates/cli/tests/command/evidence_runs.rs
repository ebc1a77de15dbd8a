//! `millstream slo`: the end of a run, its message, and the effect of an interrupt.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::evidence::json;
use crate::support::{Room, ended, until};

fn room() -> Room {
    Room::new("")
}

#[test]
fn a_run_is_over_when_its_program_has_ended() {
    let room = room();
    let begun = Instant::now();
    let left_behind = "sleep 100 & echo $! >> left; exit 0";
    let answer =
        json(&room.run(&["slo", "--at-least", "0.9", "--limit", "3", "--json", "--", "sh", "-c", left_behind]), 3);
    assert_eq!(answer["successes"], 3);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    for number in room.read("left").lines() {
        signal(number.parse().unwrap(), libc::SIGKILL);
    }
}

#[test]
fn a_run_with_matched_output_lasts_until_no_process_holds_it() {
    let room = room();
    let says_it_late = "(sleep 0.3; echo late) & exit 0";
    let args =
        ["slo", "--at-least", "0.9", "--limit", "2", "--match", "late", "--json", "--", "sh", "-c", says_it_late];
    assert_eq!(json(&room.run(&args), 3)["successes"], 2);
}

#[test]
fn the_output_of_a_run_explains_its_own_failure() {
    let room = room();
    // The second run makes the pipe non-blocking, and the third run writes more than fits into the pipe.
    let script = "\
        case $MILLSTREAM_RUN in\n\
        1) echo $((10+1)) >&2;;\n\
        2) perl -e 'use Fcntl; fcntl(STDERR, F_SETFL, O_NONBLOCK | O_WRONLY)' || true;;\n\
        *) head -c 300000 /dev/zero | tr '\\0' x >&2 || exit 9; echo $((30+3)) >&2; exit 1;;\n\
        esac";
    let (out, _) = ended(&room.run(&["slo", "--at-least", "0.9", "--limit", "3", "--", "sh", "-c", script]), 3);
    let failure = out.lines().find(|line| line.contains("first failure")).unwrap();
    let (how, said) = failure.split_once("; standard error: ").unwrap();
    assert!(how.contains("run 3 exited with status 1 "), "{failure}");
    assert!(said.starts_with("…xxx") && said.ends_with("xxx33") && !said.contains("11"), "{failure}");
}

#[test]
fn a_run_finds_the_environment_and_the_signals_of_its_parent() {
    let room = room();
    // SIGHUP is ignored, as under nohup, and SIGINT and SIGQUIT are ignored, as in the background of a shell. SIGPIPE must not
    // be ignored in the run, although the command itself ignores it.
    let script = r#"
        trap '' HUP INT QUIT
        signals="$(sed -n 's/Sig[BI][lg][kn]://p' /proc/self/status | tr -d '\n\t')"
        echo "$signals"
        exec "$0" slo --at-least 0.9 --limit 1 --match "^here 1 $signals\$" --quiet -- sh -c '
            echo $PLACE $MILLSTREAM_RUN "$(sed -n "s/Sig[BI][lg][kn]://p" /proc/self/status | tr -d "\n\t")"'"#;
    let output = Command::new("sh")
        .args(["-c".as_ref(), script.as_ref(), room.command(&[]).get_program()])
        .envs([("PLACE", "here"), ("MILLSTREAM_RUN", "7")])
        .output();
    let (out, _) = ended(&output.unwrap(), 3);
    let signals = out.lines().next().unwrap();
    assert!(signals.len() == 32 && signals.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']), "{out}");
    assert!(out.contains("1 success,"), "{out}");
}

#[test]
fn after_one_interrupt_current_runs_end_and_count() {
    let room = room();
    let args =
        ["slo", "--at-least", "0.99", "--state", "state", "--json", "--", "sh", "-c", "echo >>starts; sleep 0.5"];
    let child = room.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("two runs were started", || room.path("starts").exists() && room.read("starts").len() > 1);
    interrupt(&child);
    let answer = json(&child.wait_with_output().unwrap(), 3);
    assert_eq!(answer["undecided_because"], "it was interrupted");
    assert_eq!(answer["trials"].as_u64(), Some(room.read("starts").len() as u64));
    assert_eq!(room.json("state")["trials"], answer["trials"]);
}

#[test]
fn two_interrupts_stop_current_runs_which_do_not_count() {
    let room = room();
    let args = [
        "slo",
        "--at-least",
        "0.99",
        "--state",
        "state",
        "--json",
        "--jobs",
        "2",
        "--",
        "sh",
        "-c",
        "echo >>starts; sleep 100",
    ];
    let child = room.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a run was started", || room.path("starts").exists());
    let start = Instant::now();
    interrupt(&child);
    // A different signal is sent, because two pending signals of the same kind count as one.
    signal(number(&child), libc::SIGTERM);
    let answer = json(&child.wait_with_output().unwrap(), 3);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(answer["trials"], 0);
    assert!(!room.path("state").exists());
}

#[test]
fn an_interrupt_during_a_wait_for_standard_input_keeps_the_outcomes_so_far() {
    let room = room();
    let args = ["slo", "--at-least", "0.99", "--state", "state", "--json"];
    let mut child =
        room.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The incomplete line at the end does not count as an outcome.
    input.write_all(b"1\n0\n1\n1").unwrap();
    until("it has taken what came", || {
        let mut left: libc::c_int = -1;
        // SAFETY: the call stores the number of bytes in the pipe in a variable of the expected type.
        assert_eq!(unsafe { libc::ioctl(input.as_raw_fd(), libc::FIONREAD, &raw mut left) }, 0);
        left == 0
    });
    interrupt(&child);
    let answer = json(&child.wait_with_output().unwrap(), 3);
    drop(input);
    assert_eq!(answer["undecided_because"], "it was interrupted");
    assert_eq!((&answer["trials"], &answer["successes"]), (&3.into(), &2.into()));
    let state = room.json("state");
    assert_eq!((&state["trials"], &state["successes"]), (&3.into(), &2.into()));
}

fn interrupt(child: &Child) {
    signal(number(child), libc::SIGINT);
}

fn number(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("a process id")
}

fn signal(process: i32, signal: i32) {
    // SAFETY: `kill` takes two numbers. The process was started here and has not been reaped.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}
