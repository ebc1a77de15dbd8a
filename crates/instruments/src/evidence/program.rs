//! One run of the command that is observed.
//!
//! A run is a program in its own process group, with an empty standard input. Its standard output is discarded unless
//! the question searches it for a match, and the end of its standard error is kept to explain a failure. A run is over
//! when the program has ended. If its standard output is searched, the run also lasts until no process has that output
//! open, as with a shell's `$(…)`. Its time runs from before the start of the program to that moment.
//!
//! Standard error goes through one pipe for all runs of a [`Runner`], so that a run costs no pipe. If a process of an
//! earlier run is still running, its output is therefore attributed to a later run.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_command::program::{GRACE, Group, LOOK, MAX_LOOK, Tail, find};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::Timespec;

use super::error::EvidenceError;
use super::launch::Launcher;

/// The number of bytes of a run's standard output that are searched for a match; the rest is discarded.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// A command that can be run again and again.
#[derive(Debug)]
pub(super) struct Program {
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
    timeout: Option<Duration>,
    keeps_output: bool,
}

/// The result of a run.
pub(super) struct Run {
    /// The status, or `None` for a run that was stopped for taking too long.
    pub(super) status: Option<ExitStatus>,
    pub(super) took: Duration,
    /// Standard output, if it was kept.
    pub(super) output: Vec<u8>,
    /// The end of standard error.
    pub(super) complaint: Tail,
}

/// Makes runs of a program, one after another.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    program: &'a Program,
    launcher: Launcher,
    /// The reading end of the pipe of standard error.
    complaints: OwnedFd,
    /// The writing end of the same pipe.
    errors: OwnedFd,
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

    /// Returns the command as one line.
    pub(super) fn line(&self) -> String {
        std::iter::once(&self.name)
            .chain(&self.arguments)
            .map(|word| word.display().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns a runner of the program; several runners may run it at a time.
    pub(super) fn runner(&self) -> Result<Runner<'_>, EvidenceError> {
        let (complaints, errors) = pipe().map_err(|source| self.watching(source))?;
        let launcher =
            Launcher::new(&self.path, &self.name, &self.arguments).map_err(|source| self.not_started(source))?;
        Ok(Runner { program: self, launcher, complaints, errors })
    }

    fn watching(&self, source: io::Error) -> EvidenceError {
        EvidenceError::System { what: format!("watching `{}`", self.name.display()), source }
    }

    fn not_started(&self, source: io::Error) -> EvidenceError {
        use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
        let name = self.name.display();
        let is_no_program = matches!(source.kind(), NotFound | PermissionDenied | InvalidInput)
            || source.raw_os_error() == Some(libc::ENOEXEC);
        if is_no_program {
            EvidenceError::NoProgram { name: name.to_string(), source }
        } else {
            EvidenceError::System { what: format!("running `{name}`"), source }
        }
    }
}

impl<'a> Runner<'a> {
    /// Returns the program that this runner runs.
    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    /// Makes one run, whose number is in its environment. `None` if it was stopped because its outcome is no longer
    /// wanted.
    pub(super) fn run(&self, number: u64, unwanted: &AtomicBool) -> Result<Option<Run>, EvidenceError> {
        let (output, theirs) = match self.program.keeps_output {
            true => pipe().map(|(ours, theirs)| (Some(ours), Some(theirs))),
            false => Ok((None, None)),
        }
        .map_err(|source| self.program.watching(source))?;
        // All runs share this pipe. An earlier program may have made it non-blocking, so that flag is cleared.
        fcntl_setfl(&self.errors, OFlags::empty()).map_err(|errno| self.program.watching(errno.into()))?;
        let start = Instant::now();
        let group = self
            .launcher
            .start(number, theirs.as_ref().map(AsFd::as_fd), self.errors.as_fd())
            .map_err(|source| self.program.not_started(source))?;
        drop(theirs);
        let heard = Heard { pipe: output.map(std::fs::File::from), output: Vec::new(), complaint: Tail::default() };
        self.watch(group, heard, start, unwanted).map_err(|source| self.program.watching(source))
    }

    fn watch(
        &self,
        mut group: Group,
        mut heard: Heard,
        start: Instant,
        unwanted: &AtomicBool,
    ) -> io::Result<Option<Run>> {
        let timeout = self.program.timeout;
        let mut has_ended = false;
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            has_ended |= self.listen(&mut group, &mut heard, left.map_or(LOOK, |left| left.min(LOOK)), has_ended)?;
            let took = start.elapsed();
            if has_ended && heard.pipe.is_none() {
                return Ok(Some(heard.run(Some(group.reap()?), took)));
            }
            if unwanted.load(Ordering::Relaxed) {
                group.end(GRACE);
                return Ok(None);
            }
            if timeout.is_some_and(|timeout| took >= timeout) {
                group.end(GRACE);
                heard.complaint.read(&self.complaints)?;
                return Ok(Some(heard.run(None, took)));
            }
        }
    }

    /// Waits for at most `most` until the program has ended or has written something, and reads its output. Returns
    /// whether the program has ended. If `is_known`, the caller knows already that the program has ended: the call then
    /// does not check for the end, and returns `false`.
    fn listen(&self, group: &mut Group, heard: &mut Heard, most: Duration, is_known: bool) -> io::Result<bool> {
        let handle = if is_known { None } else { group.handle()? };
        let is_watched = handle.is_some();
        let most = if is_watched || is_known { most } else { most.min(MAX_LOOK) };
        // The program's end is polled first: once it is reported, all that the program wrote is in the pipes.
        let fds = [handle, Some(self.complaints.as_fd()), heard.pipe.as_ref().map(AsFd::as_fd)];
        let mut asked: Vec<PollFd<'_>> =
            fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut asked, Some(&Timespec::try_from(most).expect("a look is short"))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut answers = asked.iter().map(PollFd::revents);
        let [ended, said, output] = fds.map(|fd| fd.and_then(|_| answers.next()).unwrap_or(PollFlags::empty()));
        let has_ended = if is_watched { !ended.is_empty() } else { !is_known && group.has_ended()? };
        if !said.is_empty() || (has_ended && !is_watched) {
            heard.complaint.read(&self.complaints)?;
        }
        // The pipe is read even if `poll` reports only that the writers are gone: the kernel checks for bytes before it checks
        // for writers, and the last writer may write and close in between.
        if !output.is_empty() && !heard.hear_output()? {
            heard.pipe = None;
        }
        Ok(has_ended)
    }
}

/// Returns a pipe whose reading end does not block.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    // A new pipe has no other flag that this call could change.
    fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// The output of a run.
struct Heard {
    /// Standard output; `None` when closed or not wanted.
    pipe: Option<std::fs::File>,
    output: Vec<u8>,
    complaint: Tail,
}

impl Heard {
    /// Reads some standard output; returns whether there may be more.
    fn hear_output(&mut self) -> io::Result<bool> {
        let Some(pipe) = &mut self.pipe else { return Ok(false) };
        let mut room = [0; 1 << 14];
        match pipe.read(&mut room) {
            Ok(length) => {
                let kept = length.min(MAX_OUTPUT - self.output.len());
                self.output.extend_from_slice(&room[..kept]);
                Ok(length > 0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn run(self, status: Option<ExitStatus>, took: Duration) -> Run {
        Run { status, took, output: self.output, complaint: self.complaint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, timeout: Option<Duration>) -> Run {
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        let program = Program::new(&command, timeout, true).unwrap();
        program.runner().unwrap().run(1, &AtomicBool::new(false)).unwrap().unwrap()
    }

    #[test]
    fn a_run_has_a_status_a_time_and_what_was_said() {
        let run = run("echo out; echo err >&2; sleep 0.05; exit 3", None);
        assert_eq!(run.status.unwrap().code(), Some(3));
        assert!(run.took >= Duration::from_millis(50) && run.took < Duration::from_secs(120), "{:?}", run.took);
        assert_eq!(run.output, b"out\n");
        assert_eq!(run.complaint.to_string(), "; standard error: err");
    }

    #[test]
    fn a_run_that_takes_too_long_is_ended_with_all_it_started() {
        let run = run("sleep 60 & sleep 60", Some(Duration::from_millis(50)));
        assert!(run.status.is_none());
        assert!(run.took < Duration::from_secs(120));
    }

    #[test]
    fn an_unwanted_run_is_stopped() {
        let program = Program::new(&["sleep".into(), "60".into()], None, false).unwrap();
        assert!(program.runner().unwrap().run(1, &AtomicBool::new(true)).unwrap().is_none());
    }

    #[test]
    fn output_beyond_the_maximum_is_discarded() {
        let run = run("head -c 20000000 /dev/zero", None);
        assert_eq!(run.output.len(), MAX_OUTPUT);
        assert!(run.status.unwrap().success());
    }

    #[test]
    fn a_program_that_cannot_be_run_is_an_error_in_the_arguments() {
        for name in ["no-such-program-anywhere", "/no/such/program", "/etc/passwd"] {
            let found = Program::new(&[name.into()], None, false);
            let error =
                found.and_then(|program| program.runner()?.run(1, &AtomicBool::new(false)).map(|_| ())).unwrap_err();
            assert_eq!(error.status(), super::super::error::USAGE, "{error}");
        }
    }
}
