//! One process per unit: `/bin/true` through a flow file, against `xargs -P2 -n1`.
//!
//! Both are complete commands that this program starts, with the same lines as input and without output. The figure is
//! the wall time from start to end.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const UNITS: usize = 3000;
const QUICK_UNITS: usize = 50;
/// The number of processes that run at a time.
const PARALLEL: usize = 2;

/// Runs both commands in turn and prints the wall time of each.
///
/// # Errors
/// Fails when a command cannot be started or exits with an error.
pub fn run(args: &Args) -> Result<(), Error> {
    let units = if args.quick { QUICK_UNITS } else { UNITS };
    println!("## exec: {units} times /bin/true, {PARALLEL} at a time\n");
    let millstream = millstream(args)?;
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    let lines = folder.path().join("lines");
    let flow = folder.path().join("true.toml");
    write(&lines, &numbered_lines(units))?;
    write(&flow, &flow_file(&lines))?;
    let competitors = vec![
        Competitor::new("millstream", Role::Ours, || {
            // The flow reads its lines from the file; both commands get the same standard input.
            wall(Command::new(&millstream).arg("run").arg(&flow).arg("--quiet"), &lines)
        }),
        Competitor::new(format!("xargs -P{PARALLEL}"), Role::Peer, || {
            wall(Command::new("xargs").args([&format!("-P{PARALLEL}"), "-n1", "/bin/true"]), &lines)
        }),
    ];
    println!("{}\n", alternate("s", 1, args.rounds, competitors)?.render());
    Ok(())
}

/// Returns the path of the command, which is built first unless `args` name it.
pub(crate) fn millstream(args: &Args) -> Result<PathBuf, Error> {
    args.millstream.clone().map_or_else(build_millstream, Ok)
}

fn numbered_lines(units: usize) -> String {
    (0..units).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{number}");
        text
    })
}

/// A flow file with the work of `xargs -P2 -n1 /bin/true`: the child has no input, and inherits standard output.
fn flow_file(lines: &Path) -> String {
    format!(
        r#"name = "true"
workers = {PARALLEL}
[source]
lines = {lines}
[[stage]]
name = "true"
op = "exec"
exec = ["/bin/true", "{{line}}"]
stdin = "null"
stdout = "inherit"
workers = "0..{PARALLEL}"
"#,
        lines = serde_json::Value::from(lines.to_string_lossy()),
    )
}

/// Runs the command to its end and returns its wall time in seconds.
fn wall(command: &mut Command, input: &Path) -> Result<f64, Error> {
    let program = PathBuf::from(command.get_program());
    let input = File::open(input).map_err(Error::at(input))?;
    let began = Instant::now();
    let output = command.stdin(input).stdout(Stdio::null()).output().map_err(Error::at(&program))?;
    let seconds = began.elapsed().as_secs_f64();
    if output.status.success() {
        Ok(seconds)
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(format!("{} ended with {}: {}", program.display(), output.status, text.trim())))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::at(path))
}

/// Builds the command as it is packaged, if it is not up to date, and returns its path.
///
/// Without cargo, returns the existing binary next to this program.
fn build_millstream() -> Result<PathBuf, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["build", "--profile=dist", "--package=millstream-cli", "--bin=millstream"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) if output.status.success() => built_executable(&output.stdout).ok_or_else(|| {
            Error::new("cargo did not report the path of the millstream binary; give it with --millstream PATH")
        }),
        Ok(_) => Err(Error::new("the millstream binary does not build; give another with --millstream PATH")),
        Err(_) => beside_this_program(),
    }
}

/// Finds the path in cargo's JSON messages, one message a line.
fn built_executable(messages: &[u8]) -> Option<PathBuf> {
    messages.split(|&byte| byte == b'\n').find_map(|line| {
        let message: serde_json::Value = serde_json::from_slice(line).ok()?;
        (message["target"]["name"] == "millstream").then(|| message["executable"].as_str().map(PathBuf::from))?
    })
}

fn beside_this_program() -> Result<PathBuf, Error> {
    let program = std::env::current_exe().map_err(|error| Error::new(format!("own path: {error}")))?;
    // `cargo bench` puts this program one folder deeper, in `deps`.
    let folders = program.ancestors().skip(1).take(2);
    let mut candidates = folders.map(|folder| folder.join("millstream"));
    candidates.find(|path| path.is_file()).ok_or_else(|| {
        Error::new("found neither cargo nor a millstream binary next to this program; give one with --millstream PATH")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_cargo_s_messages() {
        let messages = br#"{"reason":"compiler-artifact","target":{"name":"millstream_flow"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"millstream"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"millstream"},"executable":"/x/release/millstream"}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(built_executable(messages), Some(PathBuf::from("/x/release/millstream")));
        assert_eq!(built_executable(b"{}\n"), None);
    }

    #[test]
    fn a_command_that_fails_yields_no_time() {
        let error = wall(&mut Command::new("/bin/false"), Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("/bin/false"), "{error}");
    }
}
