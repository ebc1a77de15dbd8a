//! Standard streams that are closed when the command starts.

use std::process::Command;

use crate::support::{Room, code, text};

/// Runs a script in which `$0` is the command. Returns the script's exit status and messages.
fn script(room: &Room, script: &str) -> (i32, String) {
    let mut bash = Command::new("bash");
    room.at_home(bash.args(["-c", script, env!("CARGO_BIN_EXE_millstream")]));
    let output = bash.output().expect("bash runs");
    (code(output.status), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_closed_standard_input_is_an_error_and_not_an_empty_one() {
    let room = Room::new("[source]\nlines = \"-\"\n[[stage]]\nname = \"run\"\nop = \"exec\"\nexec = [\"true\"]\n");
    let scripts = [
        ("stream 'lines()'", 1),
        ("stream 'reduce(csv(), 0, acc + 1)'", 1),
        ("tee -- cat ::: wc -l", 1),
        ("each -- echo {}", 1),
        ("run flow.toml", 1),
        ("history check --spec register -", 2),
    ];
    for (arguments, status) in scripts {
        let (ended, said) = script(&room, &format!("\"$0\" {arguments} <&-; status=$?; cat *.jsonl; exit $status"));
        // The unit that could not be read becomes a dead letter.
        assert!(said.contains("Bad file descriptor"), "{arguments}: {said}");
        assert_eq!(ended, status, "{arguments}: {said}");
    }
}

#[test]
fn a_closed_standard_output_is_an_error_and_not_a_bin() {
    let room = Room::new(
        "[source]\nargs = true\n[[stage]]\nname = \"show\"\nop = \"set\"\npayload = \"{line}\\n\"\n[[stage]]\nname = \"print\"\nop = \"print\"\n",
    );
    let scripts = [
        ("stream 'numbers(1, 3)'", 4),
        ("stream --explain 'numbers(1, 3)'", 4),
        ("tee -- cat ::: wc -l < flow.toml", 1),
        ("each -- echo {} ::: a b", 4),
        ("each --shell -- 'echo {}' ::: a b", 4),
        ("run flow.toml a b", 4),
        ("plan flow.toml", 4),
        ("--help", 4),
    ];
    for (arguments, status) in scripts {
        let (ended, said) = script(&room, &format!("\"$0\" {arguments} >&-"));
        assert!(said.contains("Bad file descriptor"), "{arguments}: {said}");
        assert_eq!(ended, status, "{arguments}: {said}");
    }
}

#[test]
fn a_closed_stream_that_is_not_used_is_no_error() {
    let room = Room::new("");
    for arguments in ["stream 'numbers(1, 3)' <&-", "each -- true {} ::: a <&- >&-", "tee -- cat < flow.toml 2>&-"] {
        let (ended, said) = script(&room, &format!("\"$0\" {arguments}"));
        assert_eq!(ended, 0, "{arguments}: {said}");
    }
    // A parent process may open `/dev/null` for reading and writing.
    let (ended, said) = script(&room, "\"$0\" stream 'lines()' <>/dev/null 1<>/dev/null");
    assert_eq!(ended, 0, "{said}");
}
