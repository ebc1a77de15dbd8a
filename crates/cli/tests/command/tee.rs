//! `millstream tee`.

use std::process::{Command, Output};

use crate::support::Room;

/// Runs a script in which `$0` is the command.
fn script(room: &Room, text: &str) -> Output {
    let mut bash = Command::new("bash");
    room.at_home(bash.args(["-c", text, env!("CARGO_BIN_EXE_millstream")]));
    bash.output().expect("bash runs")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_command_gets_the_whole_input() {
    let room = Room::new("");
    let output = script(
        &room,
        "seq 300000 | \"$0\" tee -- sh -c 'cat > a' ::: sh -c 'sleep 0.2; cat > b' ::: sh -c 'wc -l > c'",
    );
    assert!(output.status.success(), "{}", error(&output));
    let numbers: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    assert!(room.read("a") == numbers && room.read("b") == numbers);
    assert_eq!(room.read("c").trim(), "300000");
}

#[test]
fn a_command_that_stops_reading_is_left_out() {
    let room = Room::new("");
    let output = script(&room, "seq 300000 | \"$0\" tee --buffer 64KiB -- sh -c 'head -1 > a' ::: sh -c 'wc -l > b'");
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!((room.read("a").as_str(), room.read("b").trim()), ("1\n", "300000"));
    // When no command reads any more, `tee` stops reading the input.
    assert!(script(&room, "yes | \"$0\" tee -- head -1 ::: true").status.success());
}

/// A fork and join in the shell, which pairs every second line with every line. With the program `tee`, it would hang.
fn pairs(options: &str) -> String {
    format!(
        "mkfifo x y; paste x y > pairs & \
         seq 100000 | \"$0\" tee {options} -- sh -c 'exec awk \"NR%2\" > x' ::: sh -c 'exec cat > y'; \
         status=$?; wait; exit $status"
    )
}

#[test]
fn a_fork_and_join_that_hangs_with_tee_runs_with_room_or_on_disk() {
    for options in ["--buffer 1MiB", "--buffer 64KiB --spill ."] {
        let room = Room::new("");
        let output = script(&room, &pairs(options));
        assert!(output.status.success(), "{options}: {}", error(&output));
        let pairs = room.read("pairs");
        assert!(pairs.starts_with("1\t1\n3\t2\n") && pairs.lines().count() == 100_000, "{options}");
    }
}

#[test]
fn the_command_that_is_stuck_is_named() {
    let room = Room::new("");
    let output = script(&room, &pairs("--buffer 64KiB --patience 300ms"));
    assert_eq!(output.status.code(), Some(1));
    let message = error(&output);
    assert!(message.contains("command 2 of 2") && message.contains("is stuck"), "{message}");
    // A stuck command is also named after the end of the input.
    let output = script(&room, "seq 100000 | \"$0\" tee --patience 300ms -- wc -l ::: sleep 1000");
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("command 2 of 2, `sleep 1000`, is stuck"), "{}", error(&output));
}

#[test]
fn failures_are_reported_and_set_the_exit_status() {
    let room = Room::new("");
    let output = script(&room, "seq 10 | \"$0\" tee -- cat ::: sh -c 'cat > /dev/null; exit 3'");
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("exited with status 3"), "{}", error(&output));
    let output = script(&room, "seq 10 | \"$0\" tee -- cat ::: no-such-program");
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("cannot start `no-such-program`"), "{}", error(&output));
    assert_eq!(script(&room, "\"$0\" tee -- cat ::: ::: cat < /dev/null").status.code(), Some(2));
    assert_eq!(script(&room, "\"$0\" tee --buffer 0 -- cat < /dev/null").status.code(), Some(2));
    // A limit on file sizes has the effect of a full disk.
    let output = script(
        &room,
        "ulimit -f 100; seq 1000000 | \"$0\" tee --buffer 64KiB --spill . -- sleep 1000 ::: sh -c 'wc -l > /dev/null'",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("cannot spill the input"), "{}", error(&output));
}
