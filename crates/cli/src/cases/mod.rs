//! `millstream test`: runs a flow on cases, and compares the outcomes with the expected ones.
//!
//! Each case is a run of the flow in a process and a temporary folder of its own ([`trial`], [`child`]). The engine,
//! the ops, the retries and the templates are those of a real run. The case defines results that replace programs
//! ([`program`]) and servers, and no op leaves the folder ([`stand_ins`](millstream_runner::stand_ins)). One unit is in flight at a time,
//! without needs and pauses, so that a case always has the same outcome. [`verdict`] says what differs.

mod abandoned;
pub(crate) mod args;
mod child;
mod matching;
mod outcome;
mod program;
mod trial;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_command::screen::{out, shown, text};
use millstream_command::signals;
use millstream_runner::file::cases::{self, Case};
use millstream_runner::file::{self, FlowError, suggest};

use self::args::TestArgs;
pub(crate) use self::child::run_case;
pub(crate) use self::program::stand_in;
use self::trial::{Ended, Trial};
use crate::run::{NOT_WRITTEN, WRONG};

/// Exit status: the outcome of a case differs from the expected one.
const FAILED: u8 = 1;
/// Exit status: the tests were interrupted.
const INTERRUPTED: u8 = 3;
/// The longest time that a case may take, unless the command line says otherwise.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);

/// The reason why the cases of a flow were not run.
#[derive(Debug, thiserror::Error)]
enum TestError {
    /// The flow file or its case file is wrong.
    #[error(transparent)]
    File(#[from] FlowError),
    /// There is no case to run.
    #[error("{0}")]
    Nothing(String),
    /// The system refuses a temporary folder, a signal handler or a process.
    #[error("cannot test: {0}")]
    System(#[from] std::io::Error),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}")]
    Printed(std::io::Error),
    /// A signal has asked the command to end.
    #[error("interrupted")]
    Interrupted,
}

/// Runs the cases of flows, and gives the exit status.
pub(crate) fn test(args: &TestArgs) -> ExitCode {
    let mut count = Count::default();
    let tested =
        heed_signals().map_err(TestError::from).and_then(|interrupted| test_all(args, &interrupted, &mut count));
    let status = match tested {
        Ok(()) if count.failed == 0 => return ExitCode::SUCCESS,
        Ok(()) => FAILED,
        Err(TestError::File(error)) => {
            out::complain_page(&error.render());
            WRONG
        }
        Err(error) => {
            out::complain(format!("error: {error}"));
            match error {
                TestError::Printed(_) => NOT_WRITTEN,
                TestError::Interrupted => INTERRUPTED,
                _ => WRONG,
            }
        }
    };
    ExitCode::from(status)
}

/// The number of cases by result.
#[derive(Debug, Default)]
struct Count {
    passed: u64,
    failed: u64,
}

/// Returns a flag that is set by the signals that ask a process to end.
fn heed_signals() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

fn test_all(args: &TestArgs, interrupted: &AtomicBool, count: &mut Count) -> Result<(), TestError> {
    // All files are read before the first case runs, so that a mistake in the last file is reported before any case has
    // run.
    let mut flows = Vec::new();
    // A glob such as `*.toml` also matches the case files, which are left out here, and flows without cases, which are
    // only checked.
    let is_case_file = |path: &Path| args.flow.len() > 1 && args.flow.iter().any(|flow| cases::beside(flow) == *path);
    let (with_cases, without): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.flow.iter().filter(|flow| !is_case_file(flow)).partition(|flow| cases::beside(flow).exists());
    without.iter().try_for_each(|flow| file::load(flow, &[]).map(drop))?;
    if with_cases.is_empty() {
        let missing = without.iter().map(|flow| (shown::path(flow), cases::beside(flow)));
        let missing = missing.map(|(flow, path)| format!("the cases of {flow} belong in {}", shown::path(&path)));
        return Err(TestError::Nothing(format!(
            "{}, which {} not there",
            missing.collect::<Vec<_>>().join(", "),
            if without.len() == 1 { "is" } else { "are" }
        )));
    }
    for flow in without {
        let (flow, path) = (shown::path(flow), cases::beside(flow));
        out::complain(format!("no cases of {flow}: they belong in {}", shown::path(&path)));
    }
    for flow in with_cases {
        let path = cases::beside(flow);
        let file = file::load(flow, &[])?;
        flows.push((std::path::absolute(flow)?, cases::load(&path, &file)?));
    }
    abandoned::sweep(&std::env::temp_dir());
    let all = || flows.iter().flat_map(|(_, file)| &file.cases).map(|case| case.name.as_str());
    if let Some(unknown) = args.case.iter().find(|name| !all().any(|known| known == name.as_str())) {
        let help = match suggest::closest(unknown, all()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the cases are {}", all().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
        };
        return Err(TestError::Nothing(format!("no case is called `{unknown}`; {help}")));
    }
    for (flow, file) in &flows {
        print(&format!("{}\n", shown::path(&file.path)))?;
        let chosen = |case: &&Case| args.case.is_empty() || args.case.contains(&case.name);
        for case in file.cases.iter().filter(chosen) {
            let trial = Trial::prepare(case)?;
            let said = match trial.run(flow, args.timeout.unwrap_or(DEFAULT_LIMIT), interrupted)? {
                Ended::Outcome(outcome) => verdict::differences(case, &trial, &outcome),
                Ended::Refused(why) => vec![format!("the flow does not run:\n{}", why.trim_end())],
                Ended::TimedOut(limit) => {
                    vec![format!(
                        "it still ran after {} and was ended (`--timeout`)",
                        text::seconds(limit.as_secs_f64())
                    )]
                }
                Ended::Interrupted => return Err(TestError::Interrupted),
            };
            print(&line(case, &said))?;
            *(if said.is_empty() { &mut count.passed } else { &mut count.failed }) += 1;
        }
    }
    let Count { passed, failed } = *count;
    print(&match failed {
        0 => format!("{} passed\n", text::counted(passed, "case")),
        _ => format!("{} failed, {} passed\n", text::counted(failed, "case"), text::count(passed)),
    })
}

/// The line of a case, and the differences below it.
fn line(case: &Case, said: &[String]) -> String {
    let mut page = format!("  {:<6}  {}\n", if said.is_empty() { "ok" } else { "FAILED" }, text::printable(&case.name));
    for difference in said {
        for line in difference.lines() {
            page += &format!("          {line}\n");
        }
    }
    page
}

fn print(page: &str) -> Result<(), TestError> {
    out::print(page).map_err(TestError::Printed)
}

/// Relaxed: the flag publishes nothing else.
fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}
