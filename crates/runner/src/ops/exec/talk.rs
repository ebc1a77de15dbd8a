//! Writes a program's input and reads its outputs, with one thread or fiber.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use millstream_command::program::{GRACE, Group, LOOK, Pipes, Tail};
use millstream_fiber::{PollFd, PollFlags, poll};
use millstream_flow::{Cause, Cx, Failure};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use super::super::growing;

/// The maximum number of reads of standard error after the group was killed. Without this limit, a descendant that has
/// left the group and writes forever would keep the op from ending.
const LAST_READS: usize = 32;

/// How a program ended.
pub(super) enum Ending {
    /// The program exited, or a signal from elsewhere killed it.
    Exited(ExitStatus),
    /// The time limit passed, and the group was killed.
    TimedOut,
    /// The flow was abandoned, and the group was killed.
    Cancelled(Failure),
}

/// The output of a program.
pub(super) struct Spoken {
    /// The whole standard output, if it was captured.
    pub(super) stdout: Vec<u8>,
    /// The standard error, if it was captured.
    pub(super) stderr: Complaints,
}

/// The captured standard error of a program.
#[derive(Debug)]
pub(super) enum Complaints {
    /// Only the last bytes.
    End(Tail),
    /// All bytes.
    All(Vec<u8>),
}

impl Complaints {
    /// The memory that was granted for the captured output.
    fn capacity(&self) -> u64 {
        match self {
            Self::End(_) => 0,
            Self::All(all) => all.capacity() as u64,
        }
    }

    fn trim(&mut self) {
        if let Self::All(all) = self {
            growing::trim(all);
        }
    }

    /// The last bytes of standard error.
    pub(super) fn end(&self) -> Cow<'_, Tail> {
        match self {
            Self::End(end) => Cow::Borrowed(end),
            Self::All(all) => Cow::Owned(Tail::of(all)),
        }
    }
}

/// Writes `input`, reads the program's outputs and waits until the program has ended. `held` is the number of bytes
/// that the unit occupies already. `kept` is empty; its variant decides how much of standard error is captured.
///
/// # Errors
/// No memory was granted for the output, or a system call failed. No process of the group remains then, either.
pub(super) fn with(
    (mut group, (stdin, stdout, stderr)): (Group, Pipes),
    input: &[u8],
    held: u64,
    kept: Complaints,
    cx: &mut Cx<'_>,
) -> Result<(Ending, Spoken), Failure> {
    let mut talk = Talk { stdin, stdout, stderr, input, held, spoken: Spoken { stdout: Vec::new(), stderr: kept } };
    talk.set_nonblocking()?;
    if cx.is_recorded() {
        group.keep_account();
    }
    loop {
        let wait = cx.deadline().map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK));
        if talk.is_over() {
            if let Some(status) = group.wait(wait)? {
                if let Some(account) = group.account() {
                    cx.charge_cpu(account.spent, account.delayed);
                }
                return Ok((Ending::Exited(status), talk.spoken));
            }
        } else {
            talk.step(wait, cx)?;
        }
        if let Err(failure) = cx.check() {
            group.end(GRACE);
            talk.last_words(cx);
            let ending = if failure.cause() == Cause::Timeout { Ending::TimedOut } else { Ending::Cancelled(failure) };
            return Ok((ending, talk.spoken));
        }
    }
}

/// The op's ends of a program's pipes. An end that is closed or not used is `None`.
struct Talk<'a> {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    input: &'a [u8],
    held: u64,
    spoken: Spoken,
}

impl Talk<'_> {
    fn set_nonblocking(&self) -> io::Result<()> {
        let fds = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        for fd in fds.into_iter().flatten() {
            // The call replaces all flags of the pipe. No flag is lost, because a new pipe has none set.
            fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Whether all pipes to the program are closed.
    fn is_over(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none() && self.stdin.is_none()
    }

    /// Waits at most this long until a pipe is ready. Then reads from and writes to the ready pipes.
    fn step(&mut self, most: Duration, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let [stdin, stdout, stderr] = self.ready(most)?;
        if !stdin.is_empty() {
            self.tell()?;
        }
        // An empty pipe without writers is closed without a read, because a read would need a grant of memory.
        if self.stdout.as_ref().is_some_and(|pipe| has_ended(pipe, stdout)) {
            self.stdout = None;
            growing::trim(&mut self.spoken.stdout);
        } else if !stdout.is_empty() {
            self.hear(cx)?;
        }
        if self.stderr.as_ref().is_some_and(|pipe| has_ended(pipe, stderr)) {
            self.stderr = None;
            self.spoken.stderr.trim();
        } else if !stderr.is_empty() {
            self.hear_complaints(cx)?;
        }
        Ok(())
    }

    /// The readiness of standard input, output and error.
    fn ready(&self, most: Duration) -> io::Result<[PollFlags; 3]> {
        let pipes = [
            self.stdin.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
        ];
        let mut asked: Vec<PollFd<'_>> =
            pipes.iter().flatten().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        poll(&mut asked, Some(most))?;
        let mut answers = asked.iter().map(PollFd::revents);
        Ok(pipes.map(|pipe| pipe.and_then(|_| answers.next()).unwrap_or(PollFlags::empty())))
    }

    /// Writes as much to standard input as the pipe has room for. It is not a failure if the program does not read all
    /// of it.
    fn tell(&mut self) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match rustix::io::write(stdin, self.input) {
            Ok(written) => self.input = &self.input[written..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::PIPE) => self.input = &[],
            Err(errno) => return Err(errno.into()),
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    /// Reads some bytes from standard output.
    fn hear(&mut self, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let Some(pipe) = &self.stdout else { return Ok(()) };
        let beside = self.held + self.spoken.stderr.capacity();
        if !read_granted(pipe, &mut self.spoken.stdout, beside, cx)? {
            self.stdout = None;
            growing::trim(&mut self.spoken.stdout);
        }
        Ok(())
    }

    /// Reads some bytes from standard error.
    fn hear_complaints(&mut self, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let Some(pipe) = &self.stderr else { return Ok(()) };
        let beside = self.held + self.spoken.stdout.capacity() as u64;
        let more = match &mut self.spoken.stderr {
            Complaints::End(end) => end.read(pipe)?,
            Complaints::All(all) => read_granted(pipe, all, beside, cx)?,
        };
        if !more {
            self.stderr = None;
            self.spoken.stderr.trim();
        }
        Ok(())
    }

    /// Reads what the program had written to its outputs before it was killed. An error ends the reading, and is
    /// ignored.
    fn last_words(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..LAST_READS {
            if !self.stderr.as_ref().is_some_and(has_more) || self.hear_complaints(cx).is_err() {
                break;
            }
        }
        for _ in 0..LAST_READS {
            if !self.stdout.as_ref().is_some_and(has_more) || self.hear(cx).is_err() {
                break;
            }
        }
    }
}

/// Reads some bytes of a pipe, after memory for them was granted to a unit that already occupies `beside` bytes.
/// Returns whether more bytes may follow.
fn read_granted(from: impl AsFd, heard: &mut Vec<u8>, beside: u64, cx: &mut Cx<'_>) -> Result<bool, Failure> {
    if heard.len() == heard.capacity() {
        let capacity = growing::next_capacity(heard);
        cx.reserve(beside + capacity as u64)?;
        growing::grow_to(heard, capacity)?;
    }
    match growing::read_some(from, heard, usize::MAX) {
        Ok(read) => Ok(read > 0),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether a read of the pipe would return something now.
fn has_more(pipe: &impl AsFd) -> bool {
    let told = look(pipe);
    !told.is_empty() && !has_ended(pipe, told)
}

/// Whether a pipe is empty and has no writers. `told` is the result of a poll. If it reports only that there are no
/// writers, it may have missed the last bytes: the kernel first checks for bytes and then for writers, and the last
/// writer may write and close in between. A second poll cannot miss those bytes.
fn has_ended(pipe: &impl AsFd, told: PollFlags) -> bool {
    told == PollFlags::HUP && look(pipe) == PollFlags::HUP
}

fn look(pipe: &impl AsFd) -> PollFlags {
    let mut asked = [PollFd::new(pipe, PollFlags::IN)];
    match poll(&mut asked, Some(Duration::ZERO)) {
        Ok(_) => asked[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_a_poll_found_empty_is_polled_again() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!has_more(&reader) && !has_ended(&reader, PollFlags::empty()));
        io::Write::write_all(&mut writer, b"last words").unwrap();
        drop(writer);
        assert!(has_more(&reader) && !has_ended(&reader, PollFlags::HUP));
        assert_eq!(io::Read::read(&mut &reader, &mut [0; 16]).unwrap(), 10);
        assert!(!has_more(&reader) && has_ended(&reader, PollFlags::HUP));
    }
}
