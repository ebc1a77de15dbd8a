//! Steps that run alongside the others, in a second process of this program at low priority. They use the time in which
//! tests wait or a build keeps only one core busy.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;

use crate::choice::Choice;

/// The subcommand that only [`Companion`] uses.
pub(crate) const COMMAND: &str = "companion";

/// The companion process: its steps, its output, and the pipe whose end stops it.
pub(crate) struct Companion {
    child: Child,
    log: PathBuf,
    names: String,
    /// The writing end of the pipe. The kernel closes it when this process ends in any way, and the companion then stops.
    _alive: Option<ChildStdin>,
}

impl Companion {
    /// Starts the steps `names` with the arguments `chosen` of `cargo xtask test`.
    ///
    /// # Errors
    /// Returns an error if the process cannot be started, or the log cannot be written.
    pub(crate) fn start(chosen: &str, names: &[&str], root: &Path) -> Result<Self, String> {
        let log = root.join("target/xtask/companion.log");
        let failed = |error: io::Error| format!("cannot run {} alongside the other steps: {error}", names.join(", "));
        fs::create_dir_all(root.join("target/xtask")).map_err(failed)?;
        let file = File::create(&log).map_err(failed)?;
        let mut command = Command::new("nice");
        command.args(["-n", "10"]).arg(std::env::current_exe().map_err(failed)?).arg(COMMAND);
        command.args(chosen.split_whitespace()).args(names).current_dir(root);
        command.stdin(Stdio::piped()).stdout(file.try_clone().map_err(failed)?).stderr(file).process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        println!("   alongside the steps below: {} (output in {})", names.join(", "), log.display());
        Ok(Self { _alive: child.stdin.take(), child, log, names: names.join(", ") })
    }

    /// Fails if the companion has already failed.
    ///
    /// # Errors
    /// Returns the failure, whose output has been printed.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(Some(status)) if !status.success() => self.outcome(status),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("the steps {}: {error}", self.names)),
        }
    }

    /// Waits for the companion, and prints its output.
    ///
    /// # Errors
    /// Returns the failure of a step.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("the steps {}: {error}", self.names))?;
        self.outcome(status)
    }

    fn outcome(&self, status: ExitStatus) -> Result<(), String> {
        let output = fs::read(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))?;
        println!("== alongside: {}\n{}", self.names, String::from_utf8_lossy(&output).trim_end());
        if status.success() {
            Ok(())
        } else {
            Err(format!("one of the steps {} failed: its output is above", self.names))
        }
    }
}

/// Runs the steps in the companion process, and ends its process group when standard input ends.
///
/// # Errors
/// Returns the failure of a step.
pub(crate) fn serve(args: &[String], root: &Path) -> Result<(), String> {
    thread::spawn(|| {
        // An error counts as the end of the input.
        drop(io::stdin().read_to_end(&mut Vec::new()));
        // `kill` is built into the shell, so it need not be installed. It ends this process, too.
        drop(Command::new("sh").args(["-c", "kill -KILL 0"]).status());
    });
    Choice::parse(args, root)?.run(root)
}
