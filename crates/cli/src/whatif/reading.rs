//! Reads a trace, with progress on a terminal: a long trace is read several times, which may take minutes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use millstream_command::screen::out::complain;
use millstream_command::screen::{shown, text};
use millstream_flow::{Trace, TraceError};
use rustix::stdio::stderr;
use rustix::termios::isatty;

/// Progress is shown after this time, and again each time the time has doubled.
const SLOW: Duration = Duration::from_secs(2);

/// If a file is not a trace, at most this many bytes are read to find out the kind of the file.
const LOOK: u64 = 4096;

/// The reason why there is no trace in a file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}{}", what.map_or_else(String::new, |what| format!("; {what}")))]
pub(crate) struct NotRead {
    path: String,
    error: TraceError,
    /// The actual kind of the file and the command for such files, if the kind is known.
    what: Option<&'static str>,
}

impl NotRead {
    /// The error for a trace that was received from a run and cannot be read.
    pub(super) fn of_run(name: &str, error: TraceError) -> Self {
        NotRead { path: text::printable(name).into_owned(), error, what: None }
    }
}

/// Reads the trace in a file. Of a long trace, only a sample is read.
///
/// # Errors
/// The file cannot be read, is not a trace, or is a damaged trace.
pub(crate) fn read(path: &Path) -> Result<Trace, NotRead> {
    read_with(path, Trace::read_or_sample)
}

/// Reads a sample of the trace in a file. The sample has about `visits` visits of units to stages. A trace with at most
/// twice as many visits is read completely.
///
/// # Errors
/// See [`read`].
pub(crate) fn sample(path: &Path, visits: usize) -> Result<Trace, NotRead> {
    read_with(path, |file| Trace::sample(file, visits.saturating_mul(2)))
}

fn read_with(
    path: &Path,
    read: impl FnOnce(BufReader<Reading>) -> Result<Trace, TraceError>,
) -> Result<Trace, NotRead> {
    let not_read = |error: TraceError| {
        let what = matches!(error, TraceError::NotATrace(_)).then(|| kind(path)).flatten();
        NotRead { path: shown::path(path).to_string(), error, what }
    };
    let file = Reading::open(path).map_err(|error| not_read(error.into()))?;
    read(BufReader::new(file)).map_err(not_read)
}

/// The kind of a file that a run writes and that is not a trace, with the command for such files.
fn kind(path: &Path) -> Option<&'static str> {
    let mut begin = Vec::new();
    File::open(path).ok()?.take(LOOK).read_to_end(&mut begin).ok()?;
    kind_by_begin(&begin)
}

/// As [`kind`], from the first bytes of the file.
pub(crate) fn kind_by_begin(begin: &[u8]) -> Option<&'static str> {
    let begin = String::from_utf8_lossy(begin);
    if begin.starts_with(r#"{"displayTimeUnit""#) {
        return Some(
            "these are the events of a run, for `millstream page` and trace viewers: `run --trace FILE` beside `--events` writes the trace",
        );
    }
    if begin.starts_with("<!DOCTYPE html>") {
        return Some("this is a page: a browser opens it");
    }
    (begin.starts_with('{') && begin.contains("\"admitted\"")).then_some(
        "this is a report, which `millstream page` shows: `run --trace FILE` beside `--report` writes the trace",
    )
}

/// See the [module](self).
struct Reading {
    file: File,
    name: String,
    bytes: u64,
    at: u64,
    began: Instant,
    /// The time after which progress is shown next; `None` if it is not shown.
    tells_after: Option<Duration>,
}

impl Reading {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The errors of the system.
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let tells_after = isatty(stderr()).then_some(SLOW);
        Ok(Reading { file, name: shown::path(path).to_string(), bytes, at: 0, began: Instant::now(), tells_after })
    }

    /// The line of progress, if it is time to show one.
    fn line(&mut self, elapsed: Duration) -> Option<String> {
        self.tells_after.filter(|after| elapsed > *after)?;
        self.tells_after = Some(elapsed * 2);
        let (at, all) = (text::bytes(self.at), text::bytes(self.bytes));
        Some(format!("reads {}: {at} of {all} in {}", self.name, text::span(elapsed.as_nanos() as u64)))
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        if self.tells_after.is_some() {
            let elapsed = self.began.elapsed();
            self.line(elapsed).iter().for_each(complain);
        }
        Ok(read)
    }
}

impl Seek for Reading {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn slow_reading_is_reported_at_doubling_intervals_and_only_on_a_terminal() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 3000]).unwrap();
        let mut reading = Reading::open(file.path()).unwrap();
        reading.tells_after = Some(SLOW);
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), reading.line(SLOW)), (3000, None));
        let line = reading.line(SLOW * 2).unwrap();
        assert!(line.contains(" of ") && line.contains("in 4"), "{line}");
        assert_eq!(reading.line(SLOW * 4), None);
        assert_eq!((reading.seek(SeekFrom::Start(5)).unwrap(), reading.at), (5, 5));
        reading.tells_after = None;
        assert_eq!(reading.line(SLOW * 100), None);
    }
}
