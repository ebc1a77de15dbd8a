//! `cargo xtask soak`: searches that find more the longer they run, and slow checks that `cargo xtask test` leaves out.
//!
//! It runs the tests with fresh seeds, models at their full depth, planted mistakes, ThreadSanitizer, fuzz targets,
//! every peer of the benchmarks, every Python, the oldest dependencies and toolchain, and the archives that a registry
//! would get. It also compares the interfaces with those of the last release.

mod fuzz;
mod minimal;
mod models;
mod mutants;
mod oldest;
mod package;
mod peers;
mod python;
mod randomised;
mod sanitizer;
mod semver;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::names::unknown;
use crate::tools::Tool;

/// A part of the soak.
struct Part {
    name: String,
    /// The name of the group to which this part belongs.
    group: &'static str,
    about: &'static str,
    tools: Vec<Tool>,
    work: Box<Work>,
}

type Work = dyn Fn(&Bench<'_>) -> Result<(), String> + Send;

/// The settings of a part: its folder, its time, the baseline revision, and the file for its output.
struct Bench<'a> {
    root: &'a Path,
    time: Duration,
    /// The revision that interfaces are compared with, if one is chosen.
    baseline: Option<&'a str>,
    /// The file for the output; `None` for the terminal.
    log: Option<File>,
}

impl Bench<'_> {
    /// Runs a command of a part. If the command fails, the part fails.
    fn run(&self, command: &mut Command) -> Result<(), String> {
        let line = format!("{command:?}");
        self.say(&format!("   $ {line}"));
        if let Some(log) = &self.log {
            let copy = || log.try_clone().map_err(|error| format!("the log of `{line}`: {error}"));
            command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
        }
        let status = command.current_dir(self.root).status();
        let status = status.map_err(|error| format!("could not start `{line}`: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
    }

    fn say(&self, text: &str) {
        match self.log.as_ref() {
            // If the log cannot be written, the commands fail anyway, because they write to it as well.
            Some(mut log) => drop(writeln!(log, "{text}")),
            None => println!("{text}"),
        }
    }
}

/// Returns every part, in the order in which they run.
fn all(root: &Path) -> Result<Vec<Part>, String> {
    let mut parts = vec![
        randomised::part(root)?,
        sanitizer::part(),
        models::part(),
        package::part(root)?,
        semver::part(root)?,
        python::part(root),
        minimal::part(),
        oldest::part(root)?,
        peers::part(),
    ];
    parts.extend(fuzz::parts());
    parts.extend(mutants::parts(root)?);
    Ok(parts)
}

/// The request on the command line.
struct Choice {
    minutes: u64,
    jobs: usize,
    baseline: Option<String>,
    parts: Vec<Part>,
}

/// Runs the parts that `args` name, or all parts, and continues after a failure.
///
/// # Errors
/// Names the tools that are missing, or every part that failed.
pub(crate) fn soak(args: &[String], root: &Path) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{}", help(root)?);
        return Ok(());
    }
    let Choice { minutes, jobs, baseline, parts } = chosen(args, all(root)?)?;
    let tools = parts.iter().flat_map(|part| &part.tools);
    let mut missing: Vec<String> = tools.filter(|tool| !tool.is_there()).map(Tool::missing).collect();
    missing.dedup();
    if !missing.is_empty() {
        return Err(missing.join("\n       "));
    }
    let logs = root.join("target/soak");
    fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let (todo, failures) = (Mutex::new(parts.into_iter()), Mutex::new(Vec::new()));
    let bench = |log| Bench { root, time: Duration::from_secs(minutes * 60), baseline: baseline.as_deref(), log };
    let work = || {
        loop {
            let Some(part) = todo.lock().expect("no holder panics").next() else { return };
            if let Err(reason) = run(&part, (jobs > 1).then_some(&logs), bench) {
                println!("== {} FAILED: {reason}", part.name);
                failures.lock().expect("no holder panics").push(format!("{}: {reason}", part.name));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("no holder panics");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n       ")) }
}

/// Runs a part. If other parts run at the same time, its output goes to a file in `logs`.
fn run<'a>(part: &Part, logs: Option<&PathBuf>, bench: impl Fn(Option<File>) -> Bench<'a>) -> Result<(), String> {
    let began = Instant::now();
    println!("== {}: {}", part.name, part.about);
    let log = match logs.map(|logs| logs.join(format!("{}.log", part.name))) {
        None => None,
        Some(path) => {
            println!("   {} writes {}", part.name, path.display());
            Some(File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
    };
    (part.work)(&bench(log))?;
    println!("   {} ok, {:.1} min", part.name, began.elapsed().as_secs_f64() / 60.0);
    Ok(())
}

/// Reads `[--minutes N] [--jobs N] [--baseline-rev REV] [NAME]…`, in any order; a name is that of a part or of a group.
fn chosen(args: &[String], all: Vec<Part>) -> Result<Choice, String> {
    let (mut minutes, mut jobs, mut baseline, mut names) = (1, 1, None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let number = |value: Option<&String>| {
            let value = value.and_then(|value| value.parse::<NonZeroU64>().ok());
            value.map(NonZeroU64::get).ok_or_else(|| format!("{arg} takes a whole number from 1"))
        };
        match arg.as_str() {
            "--minutes" => minutes = number(args.next())?,
            "--jobs" => jobs = number(args.next())? as usize,
            "--baseline-rev" => {
                let revision = args.next().filter(|value| !value.is_empty() && !value.starts_with('-'));
                baseline = Some(revision.ok_or("--baseline-rev takes a revision, such as a tag")?.clone());
            }
            name => {
                let known: BTreeSet<&str> = all.iter().flat_map(|part| [part.name.as_str(), part.group]).collect();
                if !known.contains(name) {
                    return Err(unknown("part", name, &known.into_iter().collect::<Vec<_>>()));
                }
                names.push(name);
            }
        }
    }
    let is_chosen =
        |part: &Part| names.is_empty() || names.iter().any(|name| *name == part.name || *name == part.group);
    Ok(Choice { minutes, jobs, baseline, parts: all.into_iter().filter(is_chosen).collect() })
}

fn help(root: &Path) -> Result<String, String> {
    let mut text = "\
Searches for mistakes that a short run may miss. A failure names the seed or the input that repeats it.

Usage: cargo xtask soak [--minutes N] [--jobs N] [--baseline-rev REV] [PART]...

Options:
  --minutes N  How long each fuzz target runs, and how long fresh seeds are drawn (default 1); the other parts take
               as long as they need
  --jobs N     How many parts run at the same time (default 1); with more than one, each writes target/soak/PART.log
  --baseline-rev REV
               The revision whose interfaces `semver` compares with (default: the newest tag)

Parts; `fuzz` and `mutants` stand for several parts, and without a name all parts run:
"
    .to_owned();
    for part in all(root)? {
        text.push_str(&format!("  {:<15} {}\n", part.name, part.about));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(u64, usize, Vec<String>), String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let Choice { minutes, jobs, parts, .. } = chosen(&args, all(crate::root()).unwrap())?;
        Ok((minutes, jobs, parts.into_iter().map(|part| part.name).collect()))
    }

    #[test]
    fn options_parts_and_groups_are_read_in_any_order() {
        assert_eq!(read(&["http", "--minutes", "3"]).unwrap(), (3, 1, vec!["http".to_owned()]));
        assert_eq!(read(&["--jobs", "2", "seeds", "--minutes", "5", "tsan"]).unwrap().0, 5);
        assert_eq!(read(&["semver", "--baseline-rev", "v0.1.0"]).unwrap().2, ["semver"]);
        assert_eq!(read(&["mutants"]).unwrap().2, ["mutants-fiber", "mutants-percpu", "mutants-ring", "mutants-slab"]);
        assert!(read(&["fuzz"]).unwrap().2.len() >= 4);
        assert_eq!(read(&[]).unwrap().2.len(), all(crate::root()).unwrap().len());
    }

    #[test]
    fn mistakes_are_explained() {
        assert!(read(&["--minutes", "0"]).unwrap_err().contains("--minutes takes a whole number from 1"));
        assert!(read(&["--jobs"]).unwrap_err().contains("--jobs takes"));
        assert!(read(&["--baseline-rev", "--jobs"]).unwrap_err().contains("--baseline-rev takes a revision"));
        assert!(read(&["htpt"]).unwrap_err().contains("Did you mean `http`?"));
    }
}
