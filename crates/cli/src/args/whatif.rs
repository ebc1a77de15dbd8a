//! `millstream whatif`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millstream_command::time;

use crate::whatif::Goal;

/// `millstream whatif`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings:
  resource.NAME=4    tokens of a resource, or of each of its keys; 20/s for a rate
  workers=8          shared workers; stage.NAME.workers=8 those of one stage
  inflight=512       units in flight; memory=1GiB their bytes
  stage.NAME.batch=1, stage.NAME.service=-20% (or x0.5), cores=8

Examples:
  millstream run flows/fetch.toml urls.txt --trace fetch.trace
  millstream whatif fetch.trace
  millstream whatif fetch.trace resource.host=4 workers=8
  millstream whatif fetch.trace --sweep resource.host=1..16
  millstream whatif fetch.trace --goal 'p99<200ms'
  millstream whatif fetch-4711 resource.host=4

Exit status:
  0  the answer was printed
  1  the replay misses the run, or no setting reaches the goal
  2  the trace or the arguments are wrong, or the run does not answer
  4  the answer could not be written")]
pub(crate) struct WhatIfArgs {
    /// The trace of a run, or the name of a live run, as in `millstream status`. The newest units of a live run serve
    /// as the trace.
    #[arg(value_name = "TRACE|RUN")]
    pub trace: PathBuf,
    /// Settings that differ from those of the run.
    #[arg(value_name = "SETTING")]
    pub settings: Vec<String>,
    /// Replay with each value of a setting: resource.disk=1..16.
    #[arg(long, value_name = "KEY=FROM..TO")]
    pub sweep: Option<String>,
    /// Look for the smallest settings that reach a goal: wall<10m, p50<50ms, p99<200ms, throughput>100/s.
    #[arg(long, value_name = "GOAL", value_parser = Goal::parse)]
    pub goal: Option<Goal>,
    /// Run the flow again, alternately without the SETTINGs and with them, until it is certain which is faster, and
    /// show the measured times beside the predicted ones. PAIRS is the largest number of pairs of runs; 1 is a single
    /// run with the SETTINGs. Every run repeats the flow's effects.
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, require_equals = true, default_missing_value = "12", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub check: Option<u32>,
    /// The trace of another run of this flow with a different number of tokens of one resource: it shows how the time
    /// of the stages that need this resource depends on the number.
    #[arg(long, value_name = "TRACE")]
    pub with: Option<PathBuf>,
    /// The time that all replays together may take.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::parse)]
    pub within: Duration,
    /// Answer even if the replay does not reproduce the run.
    #[arg(long)]
    pub anyway: bool,
    /// Print the answer as one JSON object.
    #[arg(long)]
    pub json: bool,
}
