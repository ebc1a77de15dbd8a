//! One run of the command that is observed.
//!
//! A run is a program in a process group of its own, with nothing on its standard input. Its standard output is thrown
//! away unless somebody looks for a match in it, and the end of its standard error is kept to explain a failure. It is
//! over when the program has ended and nobody holds its output any more, as with a shell's `$(…)`; its time is taken
//! from before the program is started to that moment.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::error::EvidenceError;
use crate::ops::exec::group::Group;
use crate::ops::exec::program::find;
use crate::ops::exec::talk::{GRACE, LOOK, Tail};

/// What is looked at of the standard output of a run; what comes later is thrown away.
pub(super) const MOST_OUTPUT: usize = 16 << 20;

/// The environment variable that tells a run which it is, from 1 in the order of starts.
const RUN_NUMBER: &str = "MILLSTREAM_RUN";

/// A command that can be run again and again.
#[derive(Debug)]
pub(super) struct Program {
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
    timeout: Option<Duration>,
    keeps_output: bool,
}

/// How a run went.
pub(super) struct Run {
    /// The status, or `None` of a run that was stopped for taking too long.
    pub(super) status: Option<ExitStatus>,
    pub(super) took: Duration,
    /// Standard output, if it was kept.
    pub(super) output: Vec<u8>,
    /// The end of standard error.
    pub(super) complaint: Tail,
}

impl Program {
    /// Finds the program once, so that no run spends time on the search.
    pub(super) fn new(
        command: &[OsString],
        timeout: Option<Duration>,
        keeps_output: bool,
    ) -> Result<Self, EvidenceError> {
        let (name, arguments) = command.split_first().ok_or_else(|| EvidenceError::usage("there is no command"))?;
        let path = if name.as_encoded_bytes().contains(&b'/') {
            PathBuf::from(name)
        } else {
            find(name, std::env::var_os("PATH").as_deref()).ok_or_else(|| EvidenceError::NoProgram {
                name: name.display().to_string(),
                source: io::Error::new(io::ErrorKind::NotFound, "there is no such program on the search path"),
            })?
        };
        Ok(Self { name: name.clone(), path, arguments: arguments.to_vec(), timeout, keeps_output })
    }

    /// The command as one line.
    pub(super) fn line(&self) -> String {
        std::iter::once(&self.name)
            .chain(&self.arguments)
            .map(|word| word.display().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs it once; the run can tell its number by the environment. `None` if it was stopped because nobody wants the
    /// outcome any more.
    pub(super) fn run(&self, number: u64, unwanted: &AtomicBool) -> Result<Option<Run>, EvidenceError> {
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command.env(RUN_NUMBER, number.to_string());
        command.stdout(if self.keeps_output { Stdio::piped() } else { Stdio::null() });
        let start = Instant::now();
        let group = Group::spawn(&mut command).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => {
                EvidenceError::NoProgram { name: self.name.display().to_string(), source }
            }
            _ if source.raw_os_error() == Some(libc::ENOEXEC) => {
                EvidenceError::NoProgram { name: self.name.display().to_string(), source }
            }
            _ => EvidenceError::System { what: format!("running `{}`", self.name.display()), source },
        })?;
        let what = || format!("watching `{}`", self.name.display());
        self.listen(group, start, unwanted).map_err(|source| EvidenceError::System { what: what(), source })
    }

    fn listen(&self, mut group: Group, start: Instant, unwanted: &AtomicBool) -> io::Result<Option<Run>> {
        let (_, stdout, stderr) = group.pipes();
        let mut pipes = Pipes { stdout, stderr, output: Vec::new(), complaint: Tail::default() };
        pipes.set_nonblocking()?;
        loop {
            let left = self.timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            let wait = left.map_or(LOOK, |left| left.min(LOOK));
            let status = if pipes.are_closed() {
                group.wait(wait)?
            } else {
                pipes.hear(wait)?;
                None
            };
            let took = start.elapsed();
            if status.is_some() {
                return Ok(Some(Run { status, took, output: pipes.output, complaint: pipes.complaint }));
            }
            if unwanted.load(Ordering::Relaxed) {
                group.end(GRACE);
                return Ok(None);
            }
            if self.timeout.is_some_and(|timeout| took >= timeout) {
                group.end(GRACE);
                return Ok(Some(Run { status: None, took, output: pipes.output, complaint: pipes.complaint }));
            }
        }
    }
}

/// This side of a run's pipes; `None` when closed or not wanted.
struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Vec<u8>,
    complaint: Tail,
}

impl Pipes {
    fn set_nonblocking(&self) -> io::Result<()> {
        let fds = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        for fd in fds.into_iter().flatten() {
            // A new pipe has no other flag that this call could change.
            fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    fn are_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Waits, at most so long, until there is something to read, and reads it.
    fn hear(&mut self, most: Duration) -> io::Result<()> {
        let fds = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let mut asked: Vec<PollFd<'_>> =
            fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut asked, Some(&Timespec::try_from(most).expect("a look is short"))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut answers = asked.iter().map(PollFd::revents);
        let [stdout, stderr] = fds.map(|fd| fd.and_then(|_| answers.next()).unwrap_or(PollFlags::empty()));
        // A pipe whose writers are gone and that holds nothing is not worth a read.
        if stdout == PollFlags::HUP || (!stdout.is_empty() && !self.hear_output()?) {
            self.stdout = None;
        }
        if stderr == PollFlags::HUP {
            self.stderr = None;
        } else if let Some(pipe) = self.stderr.as_ref().filter(|_| !stderr.is_empty())
            && !self.complaint.read(pipe)?
        {
            self.stderr = None;
        }
        Ok(())
    }

    /// Reads some standard output; whether there can be more.
    fn hear_output(&mut self) -> io::Result<bool> {
        let Some(pipe) = &mut self.stdout else { return Ok(false) };
        let mut room = [0; 1 << 14];
        match pipe.read(&mut room) {
            Ok(length) => {
                let kept = length.min(MOST_OUTPUT - self.output.len());
                self.output.extend_from_slice(&room[..kept]);
                Ok(length > 0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, timeout: Option<Duration>) -> Run {
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        let program = Program::new(&command, timeout, true).unwrap();
        program.run(1, &AtomicBool::new(false)).unwrap().unwrap()
    }

    #[test]
    fn a_run_has_a_status_a_time_and_what_was_said() {
        let run = run("echo out; echo err >&2; sleep 0.05; exit 3", None);
        assert_eq!(run.status.unwrap().code(), Some(3));
        assert!(run.took >= Duration::from_millis(50) && run.took < Duration::from_secs(20), "{:?}", run.took);
        assert_eq!(run.output, b"out\n");
        assert_eq!(run.complaint.to_string(), "; standard error: err");
    }

    #[test]
    fn a_run_that_takes_too_long_is_ended_with_all_it_started() {
        let run = run("sleep 60 & sleep 60", Some(Duration::from_millis(50)));
        assert!(run.status.is_none());
        assert!(run.took < Duration::from_secs(20));
    }

    #[test]
    fn what_nobody_wants_any_more_is_stopped() {
        let program = Program::new(&["sleep".into(), "60".into()], None, false).unwrap();
        assert!(program.run(1, &AtomicBool::new(true)).unwrap().is_none());
    }

    #[test]
    fn endless_output_is_cut_and_not_waited_for() {
        let run = run("head -c 20000000 /dev/zero", None);
        assert_eq!(run.output.len(), MOST_OUTPUT);
        assert!(run.status.unwrap().success());
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_of_the_arguments() {
        for name in ["no-such-program-anywhere", "/no/such/program", "/etc/passwd"] {
            let found = Program::new(&[name.into()], None, false);
            let error = found.and_then(|program| program.run(1, &AtomicBool::new(false)).map(|_| ())).unwrap_err();
            assert_eq!(error.status(), super::super::error::USAGE, "{error}");
        }
    }
}
