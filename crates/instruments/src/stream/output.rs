//! Standard output, in whole lines.
//!
//! The lines are written when the buffer is full, before a wait for an input, and at the end, whatever ends the
//! program. On a terminal each line is written at once.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::ending::Ending;

/// The bytes of output that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Output {
    out: RefCell<Patient>,
    /// The lines that are not written yet.
    lines: RefCell<Vec<u8>>,
    on_terminal: bool,
    ending: Ending,
    /// The error of the write before a wait, if that write failed.
    failed: Cell<Option<io::Error>>,
}

impl Output {
    #[expect(clippy::disallowed_methods, reason = "the values are the user's own data and go out as they are")]
    pub(super) fn new() -> io::Result<Self> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self {
            on_terminal: stdout.is_terminal(),
            out: RefCell::new(Patient(stdout)),
            lines: RefCell::new(Vec::with_capacity(2 * WRITE_BYTES)),
            ending: Ending::new()?,
            failed: Cell::new(None),
        })
    }

    /// Adds a line, which `print` writes.
    pub(super) fn line(&self, print: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.ending.hold_output();
        let mut lines = self.lines.borrow_mut();
        print(&mut lines);
        lines.push(b'\n');
        let is_due = self.on_terminal || lines.len() >= WRITE_BYTES;
        drop(lines);
        if is_due {
            self.flush()?;
        }
        self.obey();
        Ok(())
    }

    /// Writes all lines. Lines that could not be written are dropped.
    pub(super) fn flush(&self) -> io::Result<()> {
        let mut lines = self.lines.borrow_mut();
        let wrote = self.out.borrow_mut().write_all(&lines);
        lines.clear();
        lines.shrink_to(2 * WRITE_BYTES);
        wrote
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

    /// Returns the error of the write before a wait. After such an error, the program does not wait.
    pub(super) fn failed(&self) -> Option<io::Error> {
        self.failed.take()
    }

    /// If a signal has come, writes the lines so far and ends the process.
    pub(super) fn obey(&self) {
        if let Some(signal) = self.ending.signal() {
            // The signal terminates the process even if the reader has gone away.
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
