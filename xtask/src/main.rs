//! The workspace's tasks, behind the alias `cargo xtask`.
//!
//! `cargo xtask test` decides whether the tree is good. Continuous integration runs it after `cargo xtask setup`.

mod bare;
mod checks;
mod choice;
mod companion;
mod fast;
mod interface;
mod lanes;
mod links;
mod measured;
mod members;
mod minutes;
mod models;
mod msrv;
mod names;
mod notices;
mod packages;
mod programs;
mod promises;
mod prose;
mod python;
mod rooms;
mod seeds;
mod soak;
mod step;
mod tools;
mod trend;
mod words;

use std::path::Path;
use std::process::ExitCode;

use choice::Choice;
use step::Step;

const HELP: &str = "\
The workspace's tasks.

Usage: cargo xtask <COMMAND>

Commands:
  test [--fast] [CRATE]... [STEP]...
                    Run every check; with names, only those of the crates, or only the steps; stop at the first
                    that fails. `--fast` leaves out the slow steps and tests, and lists them
  setup [--soak]    Install the tools that the checks need; with `--soak` also those of `soak`
  soak [PART]...    Search longer: fresh seeds, planted mistakes, ThreadSanitizer, fuzz targets
                    (`cargo xtask soak --help` lists the parts)
  bench [ARG]...    Print the benchmark report; the arguments go to the bench program
                    (`cargo xtask bench --help` lists them); `bench --write [WORKLOAD] [ARG]...`
                    also writes docs/measured.md
  notices [PACKAGE] Write the licences of everything that is compiled into a binary, to accompany it
  rooms             Print which file of the engine imports which, and check its rooms
  words             Check the English of comments, pages and names, and the links of pages
  help              Show this text
";

const COMMANDS: [&str; 8] = ["test", "setup", "soak", "bench", "notices", "rooms", "words", "help"];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_deref() {
        None | Some("help" | "--help" | "-h") => help(),
        Some("test") if rest.iter().any(|arg| arg == "--help" || arg == "-h") => help(),
        Some("test") => Choice::parse(&rest, root()).and_then(|choice| choice.run(root())),
        Some(companion::COMMAND) => companion::serve(&rest, root()),
        Some("setup") => tools::setup(&rest, root()),
        Some("bench") => bench(rest),
        Some("soak") => soak::soak(&rest, root()),
        Some("notices") => notices::write(&rest, root()),
        Some("rooms") => rooms::show(root()),
        Some("words") => words::check(root()),
        Some(other) => Err(names::unknown("command", other, &COMMANDS)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the commands, and the steps and crates of `test`.
fn help() -> Result<(), String> {
    let members = members::all(root())?;
    let minutes = |name| minutes::of(name).map_or(String::new(), |minutes| format!("{minutes:4.1} min"));
    print!("{HELP}\nSteps of `test`, in order, on {}:\n", minutes::MEASURED_ON);
    for step in choice::every_step(&members) {
        let beside = if step.is_apart { "; runs alongside the other steps" } else { "" };
        println!("  {:<9} {}  {}{beside}", step.name, minutes(step.name), step.about);
    }
    println!("  {:<9} {}", "all", minutes("all"));
    println!("  {:<9} {}  after a build", "--fast", minutes("fast"));
    let shorts: Vec<&str> = members.iter().map(|member| member.short.as_str()).collect();
    println!("\nCrates: {}\nMILLSTREAM_SEED=N runs the randomised tests from another seed.", shorts.join(", "));
    Ok(())
}

/// Builds the bench program and runs it with `args`.
fn bench(mut args: Vec<String>) -> Result<(), String> {
    if let Some(place) = args.iter().position(|arg| arg == "--write") {
        args.remove(place);
        return measured::write(root(), &args);
    }
    let mut command = measured::PROGRAM.map(str::to_owned).to_vec();
    command.push("--".to_owned());
    command.extend(args);
    Step::cargo("bench", "our code compared with its peers", command).run(root()).map(drop)
}

/// Returns the workspace root: xtask is a member folder directly below it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder below the workspace root")
}
