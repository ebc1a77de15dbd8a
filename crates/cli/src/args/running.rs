//! Commands that reach a running flow.

use std::path::PathBuf;

use clap::Args;

use super::values::key_value;

/// `millstream status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it [default: the only run; if there
    /// are several, they are listed].
    pub run: Option<PathBuf>,
    /// Print the snapshot as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it [default: the only run; if there
    /// are several, they are listed].
    pub run: Option<PathBuf>,
}

/// `millstream explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// The number of a unit in flight, a resource, a key of a resource, or all or part of the text of a waiting unit.
    #[arg(value_name = "UNIT|KEY|TEXT")]
    pub what: String,
    /// Print the explanation as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream fibers`.
#[derive(Debug, Args)]
pub(crate) struct FibersArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// Show the groups of fibers that wait in the same call.
    #[arg(long)]
    pub dump: bool,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "dump")]
    pub json: bool,
}

/// `millstream set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings:
  inflight=N               units in flight
  memory=SIZE              bytes in flight, or none
  workers=N                threads that serve the stages without threads of their own
  resource.NAME=N          tokens of a resource; of each key, if it has keys
  resource.NAME=N/s        how fast a rate gives tokens: N/s, N/m or N/h
  stage.NAME.workers=N     the most workers of a stage; N..M: the fewest and the most

Example:
  millstream set archive-4711 inflight=64 stage.zstd.workers=1

Exit status:
  0  everything was set
  2  nothing was set: a setting is wrong, or there is no such run, or it does not answer
  4  what was set could not be printed")]
pub(crate) struct SetArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// The changes; all of them are checked before the first is made.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
}
