//! `millstream slo`, `compare` and `csm`: decisions whose probability of being wrong is known.
//!
//! From the command line to the exit status:
//!
//! | file | contents |
//! | --- | --- |
//! | [`args`] | the command lines |
//! | `claim`, `criterion` | the claim, and the conditions of a success |
//! | `lines`, `reader`, `flow_report` | observations from files |
//! | `launch`, `program`, `jobs` | observations from a command that is run again and again |
//! | `source` | the choice among these, and the conditions of a success in each |
//! | `decide` | the mathematics of `millstream_csm` behind one interface |
//! | `state` | evidence carried from one run to the next |
//! | `answer`, `report` | the answer, and its forms: text, JSON, JUnit, SVG |
//! | `bar` | progress |
//! | [`slo`](mod@slo), [`compare`](mod@compare), [`plan`](mod@plan), [`functions`], [`permutation`](mod@permutation) | the commands |
//!
//! [`error`] defines the exit statuses, and [`number`] reads and writes numbers.

mod answer;
pub(crate) mod args;
mod bar;
mod claim;
pub(crate) mod compare;
mod criterion;
mod decide;
pub(crate) mod error;
pub mod flow_report;
pub(crate) mod functions;
mod jobs;
mod json;
mod launch;
mod lines;
pub(crate) mod number;
pub(crate) mod permutation;
pub(crate) mod plan;
mod program;
mod reader;
mod report;
pub(crate) mod slo;
mod source;
mod state;

use std::process::ExitCode;

use millstream_command::program::supervise::Supervisor;
use millstream_command::screen::out;

use self::error::EvidenceError;

/// Calls `work`. The programs that `work` starts die with this process, even if `kill -9` ends the process.
fn supervised<T>(work: impl FnOnce() -> T) -> T {
    Supervisor::around(|problem| out::complain(format!("millstream: {problem}")), work)
}

/// Reports an error, and turns the outcome into the exit status.
fn ended(outcome: Result<u8, EvidenceError>) -> ExitCode {
    ExitCode::from(outcome.unwrap_or_else(|error| {
        out::complain(format!("error: {error}"));
        error.status()
    }))
}

fn print(text: &str) -> Result<(), EvidenceError> {
    out::print(text).map_err(EvidenceError::system("writing to standard output"))
}
