//! A program that runs in a process group of its own, and does not outlive its [`Group`].
//!
//! The id of the group is the program's process id. The kernel does not reuse this id until the program is reaped, so
//! the group is signalled only before that. When a `Group` is dropped, it first kills the whole group and then reaps
//! the program.
//!
//! On a fiber, a wait for a program suspends the fiber. Only dropping a `Group` blocks the thread, which then waits for
//! the program that was just killed.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use millstream_fiber::{PollFd, PollFlags, poll, sleep, yield_now};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use super::LOOK;
use super::account::Account;
use super::descriptors;
use super::live;

/// The number of checks before a waiter sleeps. Often the waiter has just seen the end of the program's output, and the
/// program ends microseconds later. Going to sleep and waking up take tens of microseconds.
const QUICK_LOOKS: u32 = 24;

/// The maximum pause between two checks of a program, if there is no pidfd.
pub const MAX_LOOK: Duration = Duration::from_millis(10);

/// This process's ends of a program's standard streams.
pub type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

/// A program in a process group of its own. Dropping it kills the whole group and reaps the program.
pub struct Group {
    leader: Pid,
    /// The pidfd of the leader, opened at the first wait that needs it.
    handle: Option<OwnedFd>,
    reaped: bool,
    /// Whether the leader's account is read when the leader is reaped.
    accounts: bool,
    account: Option<Account>,
}

impl Group {
    /// Starts the command as the leader of a new group. Returns the group, and this process's ends of the pipes that
    /// the command asks for.
    pub fn spawn(command: &mut Command) -> io::Result<(Self, Pipes)> {
        descriptors::give_back(command);
        let (leader, child) = live::start(|| {
            let child = command.process_group(0).spawn()?;
            Ok((Pid::from_child(&child), child))
        })?;
        Ok((Self::of(leader), (child.stdin, child.stdout, child.stderr)))
    }

    /// The group of a child that leads a group. No other code may reap the child.
    pub fn of(leader: Pid) -> Self {
        Self { leader, handle: None, reaped: false, accounts: false, account: None }
    }

    /// Lets the group read its leader's account when the leader is reaped, which costs some microseconds.
    pub fn keep_account(&mut self) {
        self.accounts = true;
    }

    /// The leader's account after the leader is reaped, if [`keep_account`](Self::keep_account) was called.
    pub fn account(&self) -> Option<Account> {
        self.account
    }

    /// Waits at most `most` for the program's end. Returns the status if the program has ended.
    #[track_caller]
    pub fn wait(&mut self, most: Duration) -> io::Result<Option<ExitStatus>> {
        if self.ended_within(most)? { self.reap().map(Some) } else { Ok(None) }
    }

    /// Ends the whole group: sends SIGTERM, waits at most `grace` for the leader, and then sends SIGKILL.
    #[track_caller]
    pub fn end(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        // The next steps are the same whether the leader has ended, is still running, or cannot be checked.
        let _ = self.ended_within(grace);
        self.signal(Signal::KILL);
        while matches!(self.ended_within(LOOK), Ok(false)) {}
        self.kill();
    }

    /// Waits at most `most` for the end of the leader. Returns whether the leader has ended. The leader is not reaped,
    /// so its process id is not reused.
    #[track_caller]
    fn ended_within(&mut self, most: Duration) -> io::Result<bool> {
        if self.handle.is_none() {
            for _ in 0..QUICK_LOOKS {
                if self.has_ended()? {
                    return Ok(true);
                }
                yield_now();
            }
        }
        let Some(handle) = self.handle()? else { return self.ended_by_looking(most) };
        Ok(poll(&mut [PollFd::from_borrowed_fd(handle, PollFlags::IN)], Some(most))? > 0)
    }

    /// A descriptor that becomes readable when the leader ends; `None` if the system cannot provide such a descriptor.
    pub fn handle(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        if self.handle.is_none() {
            match pidfd_open(self.leader, PidfdFlags::empty()) {
                Ok(handle) => self.handle = Some(handle),
                Err(Errno::NOSYS | Errno::MFILE | Errno::NFILE | Errno::PERM) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.handle.as_ref().map(AsFd::as_fd))
    }

    /// Whether the leader has ended. The leader is not reaped.
    pub fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.leader), options)?.is_some())
    }

    #[track_caller]
    fn ended_by_looking(&self, most: Duration) -> io::Result<bool> {
        let end = Instant::now() + most;
        let mut pause = Duration::from_micros(50);
        loop {
            if self.has_ended()? {
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            sleep(pause.min(left));
            pause = (pause * 2).min(MAX_LOOK);
        }
    }

    /// Waits for the leader's end, reaps the leader and returns its status. The kernel may then reuse the process id.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        // The leader stays in the list of live groups until it has ended.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(self.leader), ended).is_err_and(|errno| errno == Errno::INTR) {}
        live::forget(self.leader);
        let delayed = if self.accounts { Account::delay_of(self.leader) } else { Duration::ZERO };
        loop {
            match wait4(self.leader) {
                Ok((status, spent)) => {
                    self.reaped = true;
                    self.account = self.accounts.then_some(Account { spent, delayed });
                    return Ok(status);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The only possible error is that the group no longer has a process.
        let _ = kill_process_group(self.leader, signal);
    }

    fn kill(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = self.reap();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reaps a child. Returns the child's status, and its processor time including that of the children that it has reaped.
fn wait4(child: Pid) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: a `rusage` consists of plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: both pointers point to local variables, which the call may write.
    if unsafe { libc::wait4(child.as_raw_pid(), &raw mut status, 0, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| {
        let (seconds, micros) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(micros.unwrap_or(0))
    };
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
}
