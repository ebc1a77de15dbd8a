//! `--metrics-file FILE` writes the metrics to a file, for runs that end before they are scraped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use millstream_command::screen::out::complain;
use millstream_command::writable::{self, NotWritable, Way};
use millstream_flow::metrics::Format;
use millstream_runner::leftovers;
use millstream_runner::ops::place::{Existing, Placing};

use super::Metrics;

/// The time between two writes.
const EVERY: Duration = Duration::from_secs(15);

/// A metrics file that is rewritten during the run.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    path: PathBuf,
    metrics: Metrics,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl MetricsFile {
    /// Checks that the file can be written.
    ///
    /// # Errors
    /// Returns [`NotWritable`], which says what to do.
    pub(crate) fn check(path: &Path) -> Result<(), NotWritable> {
        writable::check_listed(path, Way::Replace, leftovers::note)
    }

    /// Writes the file every 15 s.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread.
    pub(crate) fn start(path: &Path, metrics: &Metrics) -> io::Result<Self> {
        let (end, ended) = channel();
        let (place, source) = (path.to_owned(), metrics.clone());
        let thread = thread::Builder::new().name("metrics file".to_owned()).spawn(move || {
            let mut complained = false;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                // Only the first failure is reported here. The end of the run reports whether the
                // last write succeeded.
                if let Err(error) = write(&place, &source)
                    && !mem::replace(&mut complained, true)
                {
                    complain(format!("warning: {error}"));
                }
            }
        })?;
        Ok(Self { path: path.to_owned(), metrics: metrics.clone(), end, thread })
    }

    /// Writes the file for the last time.
    ///
    /// # Errors
    /// Returns the errors of the file system; the file then keeps its previous content.
    pub(crate) fn finish(self) -> Result<(), NotWritable> {
        drop(self.end);
        let _ = self.thread.join();
        write(&self.path, &self.metrics)
    }
}

/// Writes the metrics atomically: a reader sees either the old file or the whole new one.
fn write(path: &Path, metrics: &Metrics) -> Result<(), NotWritable> {
    let written = Placing::create(path.to_owned()).and_then(|(placing, mut file)| {
        file.write_all(metrics.text(Format::Prometheus).as_bytes())?;
        placing.put(Existing::Replace)
    });
    let help = || "the run itself is not affected".to_owned();
    written.map_err(|source| NotWritable { path: path.to_owned(), source, help: help() })
}
