//! A command that gets the input.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Instant;

use millstream_command::screen::text::printable;

use super::log::Log;

/// A command with its position in the input.
pub(super) struct Branch {
    pub(super) name: String,
    child: Child,
    /// The pipe into the command; `None` once the command has the whole input, or has stopped reading.
    pipe: Option<ChildStdin>,
    /// The number of the piece of the log that the command reads.
    piece: u64,
    /// The number of bytes that the command has taken from this piece.
    taken: usize,
    scratch: Vec<u8>,
    held: Option<u64>,
    /// The moment when the command last took input, or had no input to take.
    pub(super) moved: Instant,
    /// The number of bytes that the command has taken.
    pub(super) bytes: u64,
}

impl Branch {
    /// Starts a command.
    pub(super) fn start(words: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::piped()).spawn()?;
        let pipe = child.stdin.take().expect("it was asked for");
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let name: Vec<String> = words.iter().map(|word| printable(&word.to_string_lossy()).into_owned()).collect();
        Ok(Self {
            name: name.join(" "),
            child,
            pipe: Some(pipe),
            piece: 0,
            taken: 0,
            scratch: Vec::new(),
            held: None,
            moved: Instant::now(),
            bytes: 0,
        })
    }

    /// Returns the first piece of the log that the command still needs; `None` if the command takes no more input.
    pub(super) fn needs(&self) -> Option<u64> {
        self.pipe.as_ref().map(|_| self.piece)
    }

    /// Returns the pipe, if the log has input for the command.
    pub(super) fn waiting(&self, log: &Log) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| self.piece < log.end()).map(AsFd::as_fd)
    }

    /// Gives the command as much as its pipe takes without blocking.
    ///
    /// # Errors
    /// Returns an error if a piece cannot be read from disk.
    pub(super) fn feed(&mut self, log: &Log) -> io::Result<()> {
        while self.piece < log.end() {
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            let from = self.taken;
            let wrote = log.with(self.piece, &mut self.scratch, &mut self.held, |bytes| {
                pipe.write(&bytes[from..]).map(|wrote| (wrote, from + wrote == bytes.len()))
            })?;
            match wrote {
                Ok((wrote, whole)) => {
                    self.moved = Instant::now();
                    self.bytes += wrote as u64;
                    self.taken += wrote;
                    if whole {
                        self.piece += 1;
                        self.taken = 0;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The command has stopped reading.
                Err(_) => self.pipe = None,
            }
        }
        self.moved = Instant::now();
        Ok(())
    }

    /// Tells the command that the input has ended.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    pub(super) fn kill(&mut self) {
        // A command that has ended already needs no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
