//! The workspace's tasks, behind the alias `cargo xtask`.
//!
//! `cargo xtask test` is the one command that decides whether the tree is good: continuous integration runs it and
//! nothing else.

mod bare;
mod checks;
mod measured;
mod models;
mod promises;
mod python;
mod soak;
mod step;
mod toolchain;

use std::path::Path;
use std::process::ExitCode;

use step::Step;

const HELP: &str = "\
The workspace's tasks.

Usage: cargo xtask <COMMAND>

Commands:
  test [STEP]...    Run every check, or only the named steps; stop at the first that fails
  bench [ARG]...    Print the benchmark report; the arguments go to the bench program
                    (`cargo xtask bench --help` lists them); `bench --write [WORKLOAD] [ARG]...`
                    also writes docs/measured.md
  soak [TARGET]...  Fuzz the readers of foreign bytes, every target or the named ones, for `--minutes N`
                    each (default 1); needs a nightly toolchain and cargo-fuzz
  help              Show this text

Steps of `test`, in order:
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_deref() {
        None | Some("help" | "--help" | "-h") => {
            print!("{}", help());
            Ok(())
        }
        Some("test") => test(&rest),
        Some("bench") => bench(rest),
        Some("soak") => soak::soak(&rest, root()),
        Some(other) => Err(format!("unknown command `{other}`; `cargo xtask help` lists the commands")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = HELP.to_owned();
    for step in checks::all() {
        text.push_str(&format!("  {:<11} {}\n", step.name, step.about));
    }
    text
}

/// Runs the checks named in `names`, or all of them when none is named.
fn test(names: &[String]) -> Result<(), String> {
    if let [flag] = names
        && matches!(flag.as_str(), "--help" | "-h")
    {
        print!("{}", help());
        return Ok(());
    }
    let steps = checks::select(checks::all(), names)?;
    toolchain::ensure_components()?;
    step::run_all(&steps, root())
}

/// Builds the bench program and hands it `args`.
fn bench(mut args: Vec<String>) -> Result<(), String> {
    if let Some(place) = args.iter().position(|arg| arg == "--write") {
        args.remove(place);
        return measured::write(root(), &args);
    }
    let mut command =
        vec!["run".to_owned(), "--profile=dist".to_owned(), "--package=millstream-benches".to_owned(), "--".to_owned()];
    command.extend(args);
    Step::cargo("bench", "ours beside its peers", command).run(root())
}

/// The workspace root: xtask is a member folder directly below it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder below the workspace root")
}
