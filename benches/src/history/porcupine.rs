//! Beside porcupine: the same histories, alternating; reading them is not timed.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use millstream_history::format::{self, Format};
use millstream_history::{History, Kind, Model, Options, check};

use super::generate;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const OPERATIONS: usize = 100_000;
const QUICK_OPERATIONS: usize = 1000;

/// Compares on the etcd logs that porcupine is tested with, and on a register's history of 4 clients.
///
/// # Errors
/// When the two disagree, or porcupine cannot be built although there is Go.
pub fn run(args: &Args) -> Result<(), Error> {
    if Command::new("go").arg("version").output().is_err() {
        println!("No Go here: porcupine is left out.\n");
        return Ok(());
    }
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    let program = build(folder.path())?;

    let logs = logs()?;
    let histories = read(&logs)?;
    println!("## history: {} etcd logs of about 170 operations\n", histories.len());
    let etcd = Model::new(Kind::CasRegister);
    compare(args, &histories, &etcd, || porcupine(&program, "etcd", &logs))?;

    let operations = if args.quick { QUICK_OPERATIONS } else { OPERATIONS };
    println!("## history: a register, {operations} operations, 4 clients\n");
    let history = generate::valid(Kind::Register, 4, operations, 7);
    let path = folder.path().join("register.jsonl");
    let file = File::create(&path).map_err(Error::at(&path))?;
    format::write_json(&history, BufWriter::new(file)).map_err(Error::at(&path))?;
    let model = generate::model(Kind::Register);
    compare(args, &[history], &model, || porcupine(&program, "register", &path))
}

/// Alternates the two checkers; both say how many of the histories are linearizable.
fn compare(
    args: &Args,
    histories: &[History],
    model: &Model,
    peer: impl Fn() -> Result<(f64, usize), Error>,
) -> Result<(), Error> {
    let expected = ours(histories, model)?.1;
    let agreed = |(milliseconds, linearizable): (f64, usize)| match linearizable == expected {
        true => Ok(milliseconds),
        false => Err(Error::new(format!("{linearizable} histories are linearizable, {expected} in the first run"))),
    };
    let competitors = vec![
        Competitor::new("millstream", Role::Ours, || agreed(ours(histories, model)?)),
        Competitor::new("porcupine", Role::Peer, || agreed(peer()?)),
    ];
    println!("{}\n", alternate("ms", 1, args.rounds, competitors)?.render());
    Ok(())
}

/// Milliseconds for all histories, and how many are linearizable.
fn ours(histories: &[History], model: &Model) -> Result<(f64, usize), Error> {
    // Porcupine only says yes or no here, so we explain nothing either.
    let options = Options { explain: false, ..Options::default() };
    let mut linearizable = 0;
    let began = Instant::now();
    for history in histories {
        let verdict = check(history, model, &options).map_err(|e| Error::new(e.to_string()))?;
        linearizable += usize::from(verdict.holds().ok_or_else(|| Error::new("a history was not decided"))?);
    }
    Ok((began.elapsed().as_secs_f64() * 1e3, linearizable))
}

fn porcupine(program: &Path, kind: &str, histories: &Path) -> Result<(f64, usize), Error> {
    let text = output(Command::new(program).arg(kind).arg(histories))?;
    let parsed = text.trim().split_once(' ').and_then(|(ms, n)| Some((ms.parse().ok()?, n.parse().ok()?)));
    parsed.ok_or_else(|| Error::new(format!("porcupine printed `{}`", text.trim())))
}

/// Builds the Go program beside this crate.
fn build(folder: &Path) -> Result<PathBuf, Error> {
    let program = folder.join("porcupine");
    output(Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(source()))?;
    Ok(program)
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("porcupine")
}

/// The logs that come with porcupine.
fn logs() -> Result<PathBuf, Error> {
    let module = ["list", "-m", "-f", "{{.Dir}}", "github.com/anishathalye/porcupine"];
    let folder = output(Command::new("go").args(module).current_dir(source()))?;
    Ok(Path::new(folder.trim()).join("test_data/jepsen"))
}

/// The histories of all logs in `folder` that have operations.
fn read(folder: &Path) -> Result<Vec<History>, Error> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(Error::at(folder))?
        .map(|entry| entry.map(|entry| entry.path()).map_err(Error::at(folder)))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut histories = Vec::new();
    for path in paths {
        let text = fs::read(&path).map_err(Error::at(&path))?;
        let history = format::read(&text[..], Format::Etcd, Some(&Model::new(Kind::CasRegister)))
            .map_err(|e| Error::new(format!("{}: {e}", path.display())))?;
        histories.extend((!history.is_empty()).then_some(history));
    }
    Ok(histories)
}

/// What a command prints; an error if it fails.
fn output(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::at(Path::new(&program)))?;
    if !output.status.success() {
        return Err(Error::new(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
