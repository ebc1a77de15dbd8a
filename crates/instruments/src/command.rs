//! The instruments as subcommands.

use std::process::ExitCode;

use clap::Subcommand;

use crate::doctor::doctor;
use crate::evidence::args::{CompareArgs, CsmArgs, SloArgs};
use crate::evidence::{compare::compare, functions::csm, slo::slo};
use crate::history::args::HistoryArgs;
use crate::history::history;
use crate::slab::args::SlabArgs;
use crate::slab::slab;
use crate::stream::args::StreamArgs;
use crate::stream::stream;
use crate::tee::args::TeeArgs;
use crate::tee::tee;

/// The end of `millstream barrierd --help`.
const BARRIERD_STATUS: &str = "\
Exit status, unless a signal ends it:
  1  it cannot run; the reason is printed
  2  the arguments are wrong";

/// The end of `millstream doctor --help`.
const DOCTOR_STATUS: &str = "\
Exit status:
  0  printed
  1  standard output could not be written";

/// An instrument with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a one-line program over streams of lines, JSON, CSV or records, in constant space.
    Stream(StreamArgs),
    /// Give standard input to several commands, and name the command that is stuck.
    Tee(TeeArgs),
    /// Decide whether an objective holds, such as "99 % of runs succeed" or "99 % take less than 50 ms". The exit
    /// status is the verdict.
    Slo(Box<SloArgs>),
    /// Decide which of two commands, or two files of numbers, is smaller. The exit status is the verdict.
    Compare(Box<CompareArgs>),
    /// Call the statistical functions behind these decisions: stopping rules, bounds and intervals, rounded to the safe
    /// side.
    Csm(CsmArgs),
    /// Check recorded histories of concurrent operations.
    History(HistoryArgs),
    /// Make slabs of shared memory that survive `kill -9`, and inspect them.
    Slab(SlabArgs),
    /// Run the daemon that tells every process when each processor last passed a barrier of its own accord.
    #[command(after_help = BARRIERD_STATUS)]
    Barrierd(millstream_barrierd::args::Args),
    /// Show what this machine and its kernel offer: fences, clocks, system calls, isolated and tickless cores.
    #[command(after_help = DOCTOR_STATUS)]
    Doctor,
}

impl Command {
    /// Runs the instrument and returns its exit status.
    pub fn run(&self) -> ExitCode {
        match self {
            Self::Stream(args) => stream(args),
            Self::Tee(args) => tee(args),
            Self::Slo(args) => slo(args),
            Self::Compare(args) => compare(args),
            Self::Csm(args) => csm(args),
            Self::History(args) => history(args),
            Self::Slab(args) => slab(args),
            Self::Barrierd(args) => millstream_barrierd::run(args),
            Self::Doctor => doctor(),
        }
    }
}
