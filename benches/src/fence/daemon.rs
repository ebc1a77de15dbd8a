//! The daemon, in its own process and folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use millstream_fence::barrierd::Client;
use tempfile::TempDir;

use crate::error::Error;

/// The time within which the daemon must start. It may try tracepoints first.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running daemon, which ends when this value is dropped.
pub struct Daemon {
    child: Child,
    about: String,
    folder: TempDir,
    /// Standard error of the daemon, kept open for later messages.
    _said: BufReader<ChildStderr>,
}

impl Daemon {
    /// Starts this program again as the daemon and waits until it answers.
    ///
    /// # Errors
    /// Fails if the daemon does not answer.
    pub fn start() -> Result<Daemon, Error> {
        let folder = tempfile::tempdir().map_err(|e| Error::new(format!("temporary folder: {e}")))?;
        let program = std::env::current_exe().map_err(|e| Error::new(format!("own path: {e}")))?;
        let mut child = Command::new(&program)
            .args(["fence", "--daemon"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::at(&program))?;
        let said = child.stderr.take().ok_or_else(|| Error::new("the daemon has no standard error"))?;
        // The first line names the daemon's method; another line follows only when the daemon fails.
        let mut about = String::new();
        let mut said = BufReader::new(said);
        said.read_line(&mut about).map_err(|e| Error::new(format!("the daemon: {e}")))?;
        let daemon = Daemon { child, about: about.trim().to_owned(), folder, _said: said };
        let begun = Instant::now();
        while daemon.client().is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        daemon.client().map(|_| daemon)
    }

    /// The line in which the daemon describes its method.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Opens a new connection to the daemon.
    ///
    /// # Errors
    /// Fails if the daemon does not answer.
    pub fn client(&self) -> Result<Client, Error> {
        let socket: PathBuf = self.folder.path().join("socket");
        Client::connect_to(&socket).map_err(|refused| Error::new(format!("the daemon: {refused}")))
    }

    /// The id of the daemon's process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The signal fails if the daemon has already ended, which is not an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Becomes the daemon, in the child; returns only if the daemon cannot run.
#[must_use]
pub fn be(folder: &Path) -> ExitCode {
    let args = [Path::new("barrierd"), Path::new("--folder"), folder];
    millstream_barrierd::run(&millstream_barrierd::args::Args::parse_from(args))
}
