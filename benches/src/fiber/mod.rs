//! Fibers beside goroutines, tasks, coroutines and threads.
//!
//! Each competitor runs each row in a process of its own: runtimes that are configured once, memory and mappings belong to
//! a process. The process prints the row's figure. The load of an echo server comes from the parent, so that the workers of the
//! server are what is measured.

mod alone;
mod echo;
mod epoll;
mod may_peer;
mod ours;
mod raw;
mod row;
mod threads;
mod tokio_peer;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use self::alone::be;
use self::row::Row;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

/// Runs all rows in turn and prints their tables.
///
/// # Errors
/// Fails when a competitor cannot be started or prints something other than its figure.
pub fn run(args: &Args) -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    let go = build_go(folder.path())?;
    if go.is_none() {
        println!("Go is not installed: it is skipped.\n");
    }
    for row in Row::ALL.into_iter().filter(|row| row.title().contains(&args.part)) {
        println!("## fiber: {}\n", row.title());
        let count = if args.quick { row.quick_count() } else { row.count() };
        let mut competitors = Vec::new();
        for (peer, workers) in row.competitors() {
            let Some(command) = Peer { name: peer, workers }.command(go.as_deref(), row, count)? else { continue };
            let role = if peer == "millstream" { Role::Ours } else { Role::Peer };
            let name = if workers == 1 { peer.to_owned() } else { format!("{peer}, {workers} workers") };
            competitors.push(Competitor::new(name, role, move || match row.is_echo() {
                true => echo::measure(&command, count, args.quick),
                false => figure(&command),
            }));
        }
        println!("{}\n", alternate(row.unit(), 0, args.rounds, competitors)?.render());
    }
    Ok(())
}

/// A competitor and the number of its threads.
#[derive(Debug, Clone, Copy)]
struct Peer {
    name: &'static str,
    workers: u32,
}

impl Peer {
    /// The program and its arguments; none if it is not installed.
    fn command(self, go: Option<&Path>, row: Row, count: u64) -> Result<Option<Vec<String>>, Error> {
        let Peer { name, workers } = self;
        if name == "go" {
            let row = if row.is_echo() { "echo" } else { row.name() };
            let go = go.map(|go| go.to_string_lossy().into_owned());
            return Ok(go.map(|go| vec![go, row.to_owned(), count.to_string(), workers.to_string()]));
        }
        let program = std::env::current_exe().map_err(|error| Error::new(format!("own path: {error}")))?;
        let task = format!("{name} {} {count} {workers}", row.name());
        Ok(Some(vec![program.to_string_lossy().into_owned(), "fiber".to_owned(), "--alone".to_owned(), task]))
    }
}

/// Runs a competitor alone, and returns the figure that it prints.
fn figure(command: &[String]) -> Result<f64, Error> {
    let output = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::at(Path::new(&command[0])))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse() {
        Ok(figure) if output.status.success() => Ok(figure),
        _ => Err(Error::new(format!("{command:?} ended with {} and printed `{}`", output.status, text.trim()))),
    }
}

/// Builds the rows on goroutines, if Go is installed.
fn build_go(folder: &Path) -> Result<Option<PathBuf>, Error> {
    if Command::new("go").arg("version").output().is_err() {
        return Ok(None);
    }
    let (source, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("fiber-go"), folder.join("fiber-go"));
    let built = Command::new("go").current_dir(&source).args(["build", "-o"]).arg(&program).arg(".").output();
    let built = built.map_err(Error::at(&source))?;
    if !built.status.success() {
        return Err(Error::new(format!("go build: {}", String::from_utf8_lossy(&built.stderr))));
    }
    Ok(Some(program))
}
