//! Standard output and standard error, for outputs that are written whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// One of the command's own streams. A write blocks as long as the reader of a pipe does.
#[derive(Debug)]
pub(super) struct Stream(File);

impl Stream {
    #[expect(clippy::disallowed_methods, reason = "outputs are the stages' own and do not pass the door")]
    pub(super) fn stdout() -> io::Result<Self> {
        io::stdout().as_fd().try_clone_to_owned().map(|fd| Self(fd.into()))
    }

    #[expect(clippy::disallowed_methods, reason = "outputs are the stages' own and do not pass the door")]
    pub(super) fn stderr() -> io::Result<Self> {
        io::stderr().as_fd().try_clone_to_owned().map(|fd| Self(fd.into()))
    }

    pub(super) fn write_all(&mut self, mut content: &[u8]) -> io::Result<()> {
        while !content.is_empty() {
            match self.0.write(content) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => content = &content[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another process that shares the pipe or the terminal has made it so.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
