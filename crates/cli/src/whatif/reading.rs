//! The reading of a trace, told of on a terminal while it lasts: a long trace is read several times, for minutes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use millstream_command::screen::out::complain;
use millstream_command::screen::{shown, text};
use rustix::stdio::stderr;
use rustix::termios::isatty;

/// Reading that takes longer is told of, and again whenever it has taken twice as long.
const SLOW: Duration = Duration::from_secs(2);

/// See the [module](self).
pub(super) struct Reading {
    file: File,
    name: String,
    bytes: u64,
    at: u64,
    began: Instant,
    /// The time after which it is told of next; `None`: never.
    tells_after: Option<Duration>,
}

impl Reading {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let tells_after = isatty(stderr()).then_some(SLOW);
        Ok(Reading { file, name: shown::path(path).to_string(), bytes, at: 0, began: Instant::now(), tells_after })
    }

    /// The line that tells how far it is, if it is time for one.
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
    fn slow_reading_is_told_of_ever_more_seldom_and_only_on_a_terminal() {
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
