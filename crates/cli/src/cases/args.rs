//! The command lines of `millstream test` and of the processes that it starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millstream_command::time;

/// `millstream test`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream test flows/fetch.toml
  millstream test flows/*.toml
  millstream test fetch.toml --case 'a missing page is a dead letter'

The cases of fetch.toml stand in fetch.test.toml:
  [[case]]
  name = \"a page becomes a file\"
  stdin = \"http://a.test/x\\n\"
  [[case.http]]
  url = \"http://a.test/x\"
  body = \"hello\"
  [case.expect]
  retired = [{ size = 5 }]
  files = { \"pages/a.test/ea8f163db386-x\" = \"hello\" }

Exit status:
  0  every case came out as expected
  1  some cases did not: what was expected, its place in the file, and what was found are printed
  2  a flow, its cases or the arguments are wrong
  3  the tests were interrupted
  4  standard output could not be written")]
pub(crate) struct TestArgs {
    /// The flow files; the cases of a flow are in FLOW.test.toml beside it.
    #[arg(required = true)]
    pub flow: Vec<PathBuf>,
    /// Run only the case of this name.
    #[arg(long, value_name = "NAME")]
    pub case: Vec<String>,
    /// End a case that takes longer than this [default: 1m].
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
}

/// `millstream trial`.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// The flow file.
    pub flow: PathBuf,
    /// The folder of the trial.
    pub trial: PathBuf,
}

/// `millstream stand-in`.
#[derive(Debug, Args)]
pub(crate) struct StandInArgs {
    /// The folder of the trial.
    pub trial: PathBuf,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

fn limit(text: &str) -> Result<Duration, String> {
    match time::parse(text)? {
        Duration::ZERO => Err("zero is too short a time to run".to_owned()),
        limit => Ok(limit),
    }
}
