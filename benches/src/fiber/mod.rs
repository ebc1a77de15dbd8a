//! Fibers compared with goroutines, tasks, coroutines and threads.
//!
//! Each competitor runs each row in a separate process, because memory and mappings belong to a process, and some
//! runtimes can be configured only once. The process prints the row's figure. The load of an echo server comes from the
//! parent process, so that only the server's workers are measured.

mod alone;
mod echo;
mod epoll;
mod fetch;
mod may_peer;
mod ours;
mod raw;
mod read;
mod row;
mod threads;
mod tokio_peer;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use self::alone::be;
use self::row::Row;
use crate::args::Args;
use crate::compare::{Comparison, Figures, Role};
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
    for row in Row::ALL.into_iter().filter(|row| row.figures().iter().any(|(title, _)| title.contains(&args.part))) {
        let count = if args.quick { row.quick_count() } else { row.count() };
        if let Some(blocks) = row.file_blocks(count) {
            read::write_file(folder.path(), blocks)?;
        }
        let mut competitors = Vec::new();
        for (name, workers) in row.competitors() {
            let peer = Peer { name, workers };
            if let Some(command) = peer.command(go.as_deref(), row, count)? {
                competitors.push((peer, command));
            }
        }
        let tables = measure(row, count, args, &competitors, folder.path())?;
        for ((title, _), table) in row.figures().iter().zip(tables) {
            println!("## fiber: {title}\n\n{}\n", table.render());
        }
    }
    Ok(())
}

/// Runs the competitors in turn, round after round, and returns a table for each figure of the row.
fn measure(
    row: Row,
    count: u64,
    args: &Args,
    competitors: &[(Peer, Vec<String>)],
    folder: &Path,
) -> Result<Vec<Comparison>, Error> {
    let figures = || competitors.iter().map(|(peer, _)| peer.figures()).collect();
    let mut tables: Vec<_> = row.figures().iter().map(|&(_, unit)| Comparison { unit, figures: figures() }).collect();
    for _ in 0..args.rounds {
        for (index, (peer, command)) in competitors.iter().enumerate() {
            let round = match row {
                Row::Echo | Row::EchoMany => vec![echo::measure(command, count, args.quick)?],
                Row::Fetch => fetch::measure(peer.name, command, count, args, folder)?,
                _ => figures_of(command, folder)?,
            };
            if round.len() != tables.len() {
                return Err(Error::new(format!(
                    "{command:?} printed {} figures; expected {}",
                    round.len(),
                    tables.len()
                )));
            }
            for (table, figure) in tables.iter_mut().zip(round) {
                table.figures[index].rounds.push(figure);
            }
        }
    }
    Ok(tables)
}

/// A competitor and the number of its threads.
#[derive(Debug, Clone, Copy)]
struct Peer {
    name: &'static str,
    workers: u32,
}

impl Peer {
    /// The competitor's entry in a table, without figures.
    fn figures(self) -> Figures {
        let role = match self.name {
            "millstream" => Role::Ours,
            name if read::model(name).is_some() => Role::Reference,
            _ => Role::Peer,
        };
        let name =
            if self.workers == 1 { self.name.to_owned() } else { format!("{}, {} workers", self.name, self.workers) };
        Figures { name, role, rounds: Vec::new() }
    }

    /// The program and its arguments; `None` if the program is not installed.
    fn command(self, go: Option<&Path>, row: Row, count: u64) -> Result<Option<Vec<String>>, Error> {
        let Peer { name, workers } = self;
        if name == "go" {
            let row = if row.is_echo() { "echo" } else { row.name() };
            let go = go.map(|go| go.to_string_lossy().into_owned());
            return Ok(go.map(|go| vec![go, row.to_owned(), count.to_string(), workers.to_string()]));
        }
        // For a fetch, this command starts the slow server; the competitor is started by `fetch::measure`.
        let name = if row == Row::Fetch { "slow" } else { name };
        let program = std::env::current_exe().map_err(|error| Error::new(format!("own path: {error}")))?;
        let task = format!("{name} {} {count} {workers}", row.name());
        Ok(Some(vec![program.to_string_lossy().into_owned(), "fiber".to_owned(), "--alone".to_owned(), task]))
    }
}

/// Runs a competitor alone in a folder, and returns the figures that it prints.
fn figures_of(command: &[String], folder: &Path) -> Result<Vec<f64>, Error> {
    let output = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::at(Path::new(&command[0])))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.split_whitespace().map(str::parse).collect() {
        Ok(figures) if output.status.success() => Ok(figures),
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
