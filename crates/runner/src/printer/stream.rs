//! Standard output and standard error, for outputs that are written whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

/// The maximum number of bytes of one write; each completed write shows that the reader reads.
const STEP: usize = 64 << 10;

/// One of the command's own streams. A write to a full pipe blocks until its reader reads.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    file: File,
    written: &'a AtomicU64,
}

impl<'a> Stream<'a> {
    #[expect(clippy::disallowed_methods, reason = "outputs are the stages' own and do not pass the door")]
    pub(super) fn stdout(written: &'a AtomicU64) -> io::Result<Self> {
        io::stdout().as_fd().try_clone_to_owned().map(|fd| Self { file: fd.into(), written })
    }

    #[expect(clippy::disallowed_methods, reason = "outputs are the stages' own and do not pass the door")]
    pub(super) fn stderr(written: &'a AtomicU64) -> io::Result<Self> {
        io::stderr().as_fd().try_clone_to_owned().map(|fd| Self { file: fd.into(), written })
    }

    pub(super) fn write_all(&mut self, mut content: &[u8]) -> io::Result<()> {
        while !content.is_empty() {
            match self.file.write(&content[..content.len().min(STEP)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    content = &content[written..];
                    // Relaxed: the number only shows that the reader reads.
                    self.written.fetch_add(written as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another process that shares the pipe or the terminal has made it non-blocking, so the write does not
                // wait for room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Returns `false` if standard output is a pipe whose reader has closed it.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub(super) fn is_read() -> bool {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_err() || !asked[0].revents().contains(PollFlags::ERR)
}
