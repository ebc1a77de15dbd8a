//! Invocations that run in parallel. The output of each is printed in one piece when the invocation ends.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::step::Invocation;

/// Runs every lane to its end or its first failure.
///
/// # Errors
/// Names the first failure of each lane.
pub(crate) fn run(lanes: &[Vec<Invocation>], root: &Path) -> Result<(), String> {
    if let [lane] = lanes {
        return lane.iter().try_for_each(|invocation| invocation.run(root));
    }
    let screen = Mutex::new(());
    let failures: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = lanes
            .iter()
            .map(|lane| scope.spawn(|| lane.iter().try_for_each(|invocation| captured(invocation, &screen, root))))
            .collect();
        running.into_iter().filter_map(|lane| lane.join().expect("a lane does not panic").err()).collect()
    });
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n      ")) }
}

/// Runs an invocation, and prints its output when it has ended.
fn captured(invocation: &Invocation, screen: &Mutex<()>, root: &Path) -> Result<(), String> {
    let line = invocation.shell_line();
    let (output, status) = output(invocation.command(root)).map_err(|error| format!("cannot run `{line}`: {error}"))?;
    let _screen = screen.lock().expect("no holder panics");
    println!("   $ {line}\n{}", String::from_utf8_lossy(&output).trim_end());
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// Runs a command, and returns all that it wrote to standard output and standard error, in the order of the writes.
fn output(mut command: Command) -> io::Result<(Vec<u8>, ExitStatus)> {
    let (mut reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the parent's write ends of the pipe. Dropping it closes them, so that the pipe ends when the child does.
    drop(command);
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    Ok((output, child.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(args: &str) -> Invocation {
        Invocation::new(args.split(' '))
    }

    #[test]
    fn the_two_outputs_of_a_command_stand_in_the_order_of_its_writes() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (output, status) = output(shell).unwrap();
        assert_eq!((String::from_utf8(output).unwrap().as_str(), status.code()), ("one\ntwo\nthree\n", Some(3)));
    }

    #[test]
    fn a_lane_stops_at_its_first_failure_and_the_others_go_on() {
        let lanes = [
            vec![cargo("no-such-command"), cargo("never-reached")],
            vec![cargo("--version"), cargo("no-such-command-either")],
            vec![cargo("--version")],
        ];
        let error = run(&lanes, Path::new(".")).unwrap_err();
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        assert!(lines[0].starts_with("`cargo no-such-command` ended with"), "{error}");
        assert!(lines[1].starts_with("`cargo no-such-command-either` ended with"), "{error}");
        assert_eq!(lines.len(), 2);
    }
}
