//! Our checker and porcupine, in turn on the same histories. The time to read them does not count.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use millstream_history::format::{self, Format};
use millstream_history::{Builder, History, Kind, Model, Operation, Options, Value, check};

use super::generate;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const OPERATIONS: usize = 100_000;
const QUICK_OPERATIONS: usize = 1000;
const CLIENTS: [u32; 2] = [4, 16];
/// The number of queue histories. They have so few values that each value repeats often.
const QUEUES: u64 = 40;
const QUEUE_VALUES: i64 = 5;
/// Sizes of histories: clients and operations. On larger histories, porcupine does not finish.
const QUEUE_SIZES: [(u32, usize); 2] = [(4, 60), (16, 24)];

/// Compares the checkers on porcupine's own test logs, of etcd and of a key-value store, on register histories of 4 and
/// 16 clients, and on queue histories with repeated values.
///
/// # Errors
/// Fails when the two disagree about a history, or when Go is installed but cannot build porcupine.
pub fn run(args: &Args) -> Result<(), Error> {
    if Command::new("go").arg("version").output().is_err() {
        println!("Go is not installed: porcupine is skipped.\n");
        return Ok(());
    }
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    let program = build(folder.path())?;

    let logs = logs()?;
    let etcd = logs.join("jepsen");
    let histories = read(&etcd)?;
    println!("## history: {} etcd logs of about 170 operations\n", histories.len());
    compare(args, &histories, &Model::new(Kind::CasRegister), || porcupine(&program, "etcd", &etcd))?;
    stores(args, &program, &logs.join("kv"))?;

    let operations = if args.quick { QUICK_OPERATIONS } else { OPERATIONS };
    for clients in CLIENTS {
        println!("## history: a register, {operations} operations, {clients} clients\n");
        let histories = [generate::valid(Kind::Register, clients, operations, 7)];
        let files = written(folder.path(), &format!("register-{clients}"), &histories)?;
        let model = generate::model(Kind::Register);
        compare(args, &histories, &model, || porcupine(&program, "register", &files))?;
    }

    for (clients, operations) in QUEUE_SIZES {
        let count = if args.quick { QUEUES / 10 } else { QUEUES };
        println!("## history: {count} queues, {operations} operations, {clients} clients, {QUEUE_VALUES} values\n");
        let histories: Vec<History> = (0..count).map(|seed| repetitive(clients, operations, seed)).collect();
        let files = written(folder.path(), &format!("queues-{clients}"), &histories)?;
        compare(args, &histories, &Kind::Queue.into(), || porcupine(&program, "queue", &files))?;
    }
    Ok(())
}

/// Compares on each log of a key-value store; a key that was never written reads as the empty text.
fn stores(args: &Args, program: &Path, folder: &Path) -> Result<(), Error> {
    let model = Model::new(Kind::KeyValue).with_initial(Value::EMPTY_TEXT);
    for path in paths(folder)? {
        let histories = [parse(&path, Format::Jepsen, &model)?];
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        println!("## history: a key-value store, {} operations of {name}\n", histories[0].len());
        compare(args, &histories, &model, || porcupine(program, "kv", &path))?;
    }
    Ok(())
}

/// A queue history with repeated values; every other one has an answer that may be wrong.
fn repetitive(clients: u32, operations: usize, seed: u64) -> History {
    let history = generate::valid(Kind::Queue, clients, operations, seed + 1);
    let mut builder = Builder::new();
    let mut changed = seed.is_multiple_of(2);
    for row in 0..history.len() {
        let few = |value: Value| value.as_int().map_or(value, |int| Value::int(int % QUEUE_VALUES));
        let Operation { input, output, .. } = history.get(row);
        let (input, mut output) = (few(input), few(output));
        if let (false, Some(int)) = (changed || row < operations / 2, output.as_int()) {
            output = Value::int((int + 1) % QUEUE_VALUES);
            changed = true;
        }
        builder.push(Operation { input, output, ..history.get(row) }).expect("the times are unchanged");
    }
    builder.finish().expect("the times are unchanged")
}

/// Writes the histories as JSON lines into a folder and returns its path.
fn written(folder: &Path, name: &str, histories: &[History]) -> Result<PathBuf, Error> {
    let folder = folder.join(name);
    fs::create_dir(&folder).map_err(Error::at(&folder))?;
    for (number, history) in histories.iter().enumerate() {
        let path = folder.join(format!("{number:03}.jsonl"));
        let file = File::create(&path).map_err(Error::at(&path))?;
        format::write_json(history, BufWriter::new(file)).map_err(Error::at(&path))?;
    }
    Ok(folder)
}

/// The time for all histories in milliseconds, and the verdict on each: `y`, `n` or `?`.
type Verdicts = (f64, String);

/// Alternates the two checkers, and requires the same verdict on each history. If porcupine reaches no verdict, that
/// does not count as a disagreement.
fn compare(
    args: &Args,
    histories: &[History],
    model: &Model,
    peer: impl Fn() -> Result<Verdicts, Error>,
) -> Result<(), Error> {
    let expected = ours(histories, model)?.1;
    let agreed = |(milliseconds, verdicts): Verdicts| {
        let same = |(ours, theirs)| ours == theirs || theirs == '?' && ours != '?';
        let agree = verdicts.len() == expected.len() && expected.chars().zip(verdicts.chars()).all(same);
        agree.then_some(milliseconds).ok_or_else(|| Error::new(format!("the verdicts are {verdicts}, not {expected}")))
    };
    let competitors = vec![
        Competitor::new("millstream", Role::Ours, || agreed(ours(histories, model)?)),
        Competitor::new("porcupine", Role::Peer, || agreed(peer()?)),
    ];
    println!("{}\n", alternate("ms", 1, args.rounds, competitors)?.render());
    let linearizable = expected.matches('y').count();
    println!("Linearizable: {linearizable} of {}; both checkers agree on which.\n", expected.len());
    Ok(())
}

fn ours(histories: &[History], model: &Model) -> Result<Verdicts, Error> {
    // porcupine only answers yes or no here, so our checker does not explain failures either.
    let time = Some(Duration::from_secs(5));
    let options = Options { explain: false, time, ..Options::default() };
    let mut verdicts = String::new();
    let began = Instant::now();
    for history in histories {
        let verdict = check(history, model, &options).map_err(|e| Error::new(e.to_string()))?;
        verdicts.push(verdict.holds().map_or('?', |holds| if holds { 'y' } else { 'n' }));
    }
    Ok((began.elapsed().as_secs_f64() * 1e3, verdicts))
}

/// Runs porcupine on `histories`: a folder of histories, or the single file of a store.
fn porcupine(program: &Path, kind: &str, histories: &Path) -> Result<Verdicts, Error> {
    let text = output(Command::new(program).arg(kind).arg(histories))?;
    let parsed = text.trim().split_once(' ').and_then(|(ms, verdicts)| Some((ms.parse().ok()?, verdicts.to_owned())));
    parsed.ok_or_else(|| Error::new(format!("porcupine printed `{}`", text.trim())))
}

/// Builds the Go program in this crate's folder.
fn build(folder: &Path) -> Result<PathBuf, Error> {
    let program = folder.join("porcupine");
    output(Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(source()))?;
    Ok(program)
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("porcupine")
}

/// The folder of the logs that come with porcupine.
fn logs() -> Result<PathBuf, Error> {
    let module = ["list", "-m", "-f", "{{.Dir}}", "github.com/anishathalye/porcupine"];
    let folder = output(Command::new("go").args(module).current_dir(source()))?;
    Ok(Path::new(folder.trim()).join("test_data"))
}

/// The files in the folder, sorted by name.
fn paths(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::at(folder))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path()).map_err(Error::at(folder))).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

fn parse(path: &Path, format: Format, model: &Model) -> Result<History, Error> {
    let text = fs::read(path).map_err(Error::at(path))?;
    format::read(&text[..], format, Some(model)).map_err(|e| Error::new(format!("{}: {e}", path.display())))
}

/// Reads all logs in `folder` and keeps the histories that have operations.
fn read(folder: &Path) -> Result<Vec<History>, Error> {
    let mut histories = Vec::new();
    for path in paths(folder)? {
        let history = parse(&path, Format::Etcd, &Model::new(Kind::CasRegister))?;
        histories.extend((!history.is_empty()).then_some(history));
    }
    Ok(histories)
}

/// Runs a command and returns its output; fails if the command fails.
fn output(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::at(Path::new(&program)))?;
    if !output.status.success() {
        return Err(Error::new(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
