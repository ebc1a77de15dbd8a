//! The places from which sources read: standard input, a file, or content from the caller.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Opens the caller's content from its start.
pub(super) type OpenContent = Rc<dyn Fn() -> io::Result<Box<dyn Read>>>;

/// The caller's function that runs before each wait for an input.
pub(super) type BeforeWait = Rc<dyn Fn() -> io::Result<()>>;

/// A place from which a source reads.
#[derive(Clone)]
pub(super) enum Place {
    Standard,
    File(PathBuf),
    Content(OpenContent),
}

impl Place {
    pub(super) fn of(path: &str) -> Self {
        Self::File(Path::new(path).to_owned())
    }

    /// Returns whether reading this place consumes bytes of standard input.
    pub(super) fn is_standard(&self) -> bool {
        const NAMES: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
        match self {
            Self::Standard => true,
            // If standard input is a regular file, opening it by name creates a separate file position, so nothing of standard
            // input is consumed.
            Self::File(path) => NAMES.iter().any(|name| path == Path::new(name)) && !self.can_be_read_again(),
            Self::Content(_) => false,
        }
    }

    pub(super) fn can_be_read_again(&self) -> bool {
        match self {
            Self::Standard => false,
            Self::Content(_) => true,
            // For a missing file the result does not matter, because opening it will fail.
            Self::File(path) => std::fs::metadata(path).is_ok_and(|found| found.is_file()),
        }
    }

    /// Opens the input. `before_wait` runs before each wait for standard input or a file.
    pub(super) fn open(&self, before_wait: Option<&BeforeWait>) -> io::Result<Box<dyn Read>> {
        let file = match self {
            Self::Content(open) => return open(),
            // This does not use `io::stdin`, because `poll` would not see the bytes that are in its buffer already.
            Self::Standard => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            Self::File(path) => {
                // Opening a named pipe waits for its writer.
                before_wait.map_or(Ok(()), |before| before())?;
                File::open(path)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?
            }
        };
        Ok(match before_wait {
            Some(before_wait) => Box::new(Polled { file, before_wait: Rc::clone(before_wait) }),
            None => Box::new(file),
        })
    }
}

/// A file that calls the caller's function before each read that would wait.
struct Polled {
    file: File,
    before_wait: BeforeWait,
}

impl Read for Polled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !is_ready(&self.file) {
            (self.before_wait)()?;
        }
        loop {
            match self.file.read(buffer) {
                // Another process may have made the descriptor non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], None);
                }
                read => return read,
            }
        }
    }
}

/// Returns whether a read of the file returns immediately, with bytes, the end or an error.
fn is_ready(file: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}
