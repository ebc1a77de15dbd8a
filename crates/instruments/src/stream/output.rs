//! Standard output, in whole lines.
//!
//! The lines are written when the buffer is full, before a wait for an input, and at the end, whatever ends the
//! program. On a terminal each line is written at once.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::ending::Ending;

/// The bytes of output that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Output {
    out: RefCell<BufWriter<Patient>>,
    on_terminal: bool,
    ending: Ending,
    /// The error of a write before a wait.
    failed: Cell<Option<io::Error>>,
}

impl Output {
    #[expect(clippy::disallowed_methods, reason = "the values are the user's own data and go out as they are")]
    pub(super) fn new() -> io::Result<Self> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self {
            on_terminal: stdout.is_terminal(),
            out: RefCell::new(BufWriter::with_capacity(WRITE_BYTES, Patient(stdout))),
            ending: Ending::new()?,
            failed: Cell::new(None),
        })
    }

    /// Adds a line.
    pub(super) fn line(&self, line: &[u8]) -> io::Result<()> {
        self.ending.hold_output();
        self.out.borrow_mut().write_all(line)?;
        if self.on_terminal {
            self.flush()?;
        }
        self.obey();
        Ok(())
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.out.borrow_mut().flush()
    }

    /// Writes all lines before a wait for an input.
    pub(super) fn before_wait(&self) -> io::Result<()> {
        self.flush().map_err(|error| {
            let told = io::Error::new(error.kind(), error.to_string());
            self.failed.set(Some(error));
            told
        })?;
        self.ending.hold_nothing();
        self.obey();
        Ok(())
    }

    /// Returns the error of a write before a wait, which has ended the wait.
    pub(super) fn failed(&self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Ends the process if a signal has asked for that, after the lines so far.
    pub(super) fn obey(&self) {
        if let Some(signal) = self.ending.signal() {
            // The process ends by the signal even if the reader has gone away.
            let _ = self.flush();
            Ending::end_by(signal);
        }
    }
}

/// A descriptor whose writes wait even if another process has made it non-blocking.
struct Patient(File);

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
