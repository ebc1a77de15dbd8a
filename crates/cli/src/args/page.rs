//! `millstream page`.

use std::path::PathBuf;

use clap::Args;

use super::values::memory;

/// `millstream page`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream run flows/fetch.toml urls.txt --trace fetch.trace
  millstream page fetch.trace
  millstream page fetch.trace --report fetch.html
  millstream page fetch.events.json

Exit status:
  0  the page was served until ^C, or written
  2  the file is none of the three, is damaged or cannot be replayed, or the port is not free
  4  the page could not be written")]
pub(crate) struct PageArgs {
    /// The trace, the events or the JSON report of a run, recognised by its content. Spans in another program's trace
    /// events are shown as well.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The port on 127.0.0.1; 0 means any free port.
    #[arg(long, default_value_t = 0, conflicts_with = "report")]
    pub port: u16,
    /// Write the page to one file (HTML), without the sliders, instead of serving it.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The largest events file or report that is read. (A trace may have any length; it is sampled.)
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory)]
    pub max_size: u64,
}
