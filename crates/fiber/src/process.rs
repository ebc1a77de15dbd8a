//! Child processes. Waiting for the end of a process, or for its pipes, suspends the fiber.
//!
//! ```
//! use std::process::Command;
//! use millstream_fiber::{Options, Runtime, Threads, process};
//!
//! let runtime = Runtime::start(Options::new(Threads::One))?;
//! let output = runtime.spawn(|| process::output(Command::new("echo").arg("hello")));
//! assert_eq!(output.join().unwrap()?.stdout, b"hello\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::Location;
use std::process::{self, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::io::{Interest, Source, on_other_thread, shortened};
use crate::park::deadline_after;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::spawn::Builder;
use crate::waiter::Waiter;

/// Starts a process.
///
/// A thread for [blocking calls](crate::blocking()) starts the process, and may exit soon afterwards. Do not request a
/// parent-death signal (`PR_SET_PDEATHSIG`): the kernel would send it when that thread exits, and end the process early.
///
/// # Errors
/// Returns the same errors as [`Command::spawn`]. If no descriptors are left, returns an error and kills the process.
#[track_caller]
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut child =
        Child { stdin: None, stdout: None, stderr: None, end: None, inner: on_other_thread(|| command.spawn())? };
    if let Err(error) = child.open() {
        let _ = child.inner.kill();
        let _ = child.inner.wait();
        return Err(error);
    }
    Ok(child)
}

/// Runs a process to its end and returns its status and its output, like [`Command::output`]. Replaces the standard streams of
/// `command`; the input is empty. If you need other streams, [`spawn`] the process and [wait for its
/// output](Child::wait_with_output).
///
/// If the fiber is cancelled or the output cannot be read, the process is killed, because no handle of it remains.
///
/// # Errors
/// Returns the same errors as [`spawn`], or an error from reading the output.
#[track_caller]
pub fn output(command: &mut Command) -> io::Result<Output> {
    let child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    KillOnDrop(child).0.read_and_wait()
}

/// Kills the process when dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // After an error the process must not be killed: it has ended and been reaped elsewhere, so its number may belong to
        // another process.
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A process that was started, like [`std::process::Child`]. Dropping it neither ends the process nor waits for it.
#[derive(Debug)]
pub struct Child {
    /// The pipe to the process's standard input, if there is one.
    pub stdin: Option<PipeWriter>,
    /// The pipe from the process's standard output, if there is one.
    pub stdout: Option<PipeReader>,
    /// The pipe from the process's standard error, if there is one.
    pub stderr: Option<PipeReader>,
    /// A descriptor that is readable when the process has ended; `None` if the kernel provides none.
    end: Option<Source<OwnedFd>>,
    inner: process::Child,
}

impl Child {
    /// Takes over the pipes, and opens the descriptor of the process.
    fn open(&mut self) -> io::Result<()> {
        let process = &mut self.inner;
        self.stdin = process.stdin.take().map(|pipe| PipeWriter::new(pipe.into())).transpose()?;
        self.stdout = process.stdout.take().map(|pipe| PipeReader::new(pipe.into())).transpose()?;
        self.stderr = process.stderr.take().map(|pipe| PipeReader::new(pipe.into())).transpose()?;
        self.end = match pidfd_open(Pid::from_child(process), PidfdFlags::empty()) {
            Ok(end) => Some(Source::new(end)),
            // The kernel is older than 5.3, or a filter refuses the system call. Or the process has ended without leaving a
            // zombie, because its parent ignores `SIGCHLD`.
            Err(Errno::NOSYS | Errno::PERM | Errno::SRCH) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// Returns the process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Kills the process.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    pub fn kill(&mut self) -> io::Result<()> {
        self.inner.kill()
    }

    /// Returns the status of the process, if it has ended.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// Closes the process's standard input, and waits for the process to end.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let inner = &mut self.inner;
        match &self.end {
            Some(end) => end.operate_for(Reason::Process, Interest::Read, None, |_| {
                inner.try_wait()?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }),
            None => wait_in_steps(inner, Location::caller()),
        }
    }

    /// Waits for the process to end, and reads what it writes until then.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        self.read_and_wait()
    }

    #[track_caller]
    fn read_and_wait(&mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let read = |pipe: Option<PipeReader>| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
            Ok(bytes)
        };
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        // Both pipes are read at the same time, because the process may wait for room in either pipe.
        let (stdout, stderr) = if Local::with(|_, _| ()).is_some() {
            crate::scope(|scope| -> io::Result<_> {
                let stderr = Builder::new().spawn_scoped(scope, move || read(stderr)).map_err(io::Error::other)?;
                let stdout = read(stdout);
                // If the reader has no result, it was cancelled with the runtime, or got no stack.
                let stderr = stderr.join().unwrap_or_else(|error| Err(io::Error::other(error.to_string())));
                Ok((stdout?, stderr?))
            })
        } else {
            std::thread::scope(|scope| -> io::Result<_> {
                let stderr = std::thread::Builder::new().spawn_scoped(scope, move || read(stderr))?;
                let stdout = read(stdout);
                let stderr = stderr.join().expect("a read that does not panic");
                Ok((stdout?, stderr?))
            })
        }?;
        Ok(Output { stdout, stderr, status: self.wait()? })
    }
}

/// The longest time between two checks of a process that has no descriptor.
const MAX_STEP: Duration = Duration::from_millis(50);

/// Waits for a process that has no descriptor: checks at growing intervals whether it has ended.
fn wait_in_steps(process: &mut process::Child, at: &'static Location<'static>) -> io::Result<ExitStatus> {
    let waiter = Waiter::current();
    let mut step = Duration::from_millis(1);
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(status);
        }
        waiter.block_at(Reason::Process, deadline_after(step), at);
        step = (step * 2).min(MAX_STEP);
    }
}

/// Makes a descriptor non-blocking.
fn non_blocking(fd: OwnedFd) -> io::Result<Source<OwnedFd>> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Ok(Source::new(fd))
}

/// The read end of a pipe.
#[derive(Debug)]
pub struct PipeReader {
    source: Source<OwnedFd>,
}

impl PipeReader {
    /// Takes over the read end of a pipe, or a terminal, and makes it non-blocking. This also affects other owners of the same
    /// open file. If other processes use the terminal or the pipe, make [blocking calls](crate::blocking()) instead.
    ///
    /// # Errors
    /// Returns an error if the descriptor cannot be made non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(PipeReader { source: non_blocking(fd)? })
    }
}

impl Read for PipeReader {
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let length = shortened(buf.len());
        let buf = &mut buf[..length];
        self.source.operate(Interest::Read, |fd| Ok(rustix::io::read(fd, &mut *buf)?))
    }

    #[track_caller]
    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.operate(Interest::Read, |fd| Ok(rustix::io::readv(fd, bufs)?))
    }
}

impl AsFd for PipeReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.inner().as_fd()
    }
}

/// The write end of a pipe.
#[derive(Debug)]
pub struct PipeWriter {
    source: Source<OwnedFd>,
}

impl PipeWriter {
    /// Takes over the write end of a pipe, or a terminal, and makes it non-blocking. This also affects other owners of the same
    /// open file. If other processes use the terminal or the pipe, make [blocking calls](crate::blocking()) instead.
    ///
    /// # Errors
    /// Returns an error if the descriptor cannot be made non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(PipeWriter { source: non_blocking(fd)? })
    }
}

impl Write for PipeWriter {
    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let buf = &buf[..shortened(buf.len())];
        self.source.operate(Interest::Write, |fd| Ok(rustix::io::write(fd, buf)?))
    }

    #[track_caller]
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.operate(Interest::Write, |fd| Ok(rustix::io::writev(fd, bufs)?))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for PipeWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.inner().as_fd()
    }
}
