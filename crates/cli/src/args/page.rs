//! `millstream page`.

use std::path::PathBuf;

use clap::Args;

/// `millstream page`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream run flows/fetch.toml urls.txt --trace fetch.trace
  millstream page fetch.trace
  millstream page fetch.trace --report fetch.html

Exit status:
  0  the page was served until ^C, or written
  2  the file is no trace or a damaged one, it cannot be replayed, or the port is not free
  4  the page could not be written")]
pub(crate) struct PageArgs {
    /// The trace of a run.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The port of 127.0.0.1; 0 is any free one.
    #[arg(long, default_value_t = 0, conflicts_with = "report")]
    pub port: u16,
    /// Write the page to one file (HTML), without the sliders, instead of serving it.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}
