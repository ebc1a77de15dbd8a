//! Ends the programs of a run that is killed, so that no program outlives its run.
//!
//! A run that completes or is interrupted ends its programs itself. A run that is killed (`kill -9`, a machine out of
//! memory) cannot do that. So a run that starts programs first starts a *supervisor*: a process in a session of its own
//! that reads from a pipe until the pipe is closed. The run has the other end of the pipe, and the kernel closes that
//! end when the run ends, whatever the reason. If the run has not written a goodbye message to the pipe before, the
//! supervisor ends every process with the run's mark: it sends SIGTERM and, half a second later, SIGKILL.
//!
//! The mark is an environment variable with a value that no other run has. Children and grandchildren inherit the mark
//! and have it from their first instruction on. A list of process ids would have gaps: a program that was just started
//! is not in the list yet, and the kernel may reuse an id. Other processes in the group of a marked process are also
//! ended.
//!
//! The kernel's own mechanism, `PR_SET_PDEATHSIG`, affects only the program and not the program's children. In
//! addition, it must be set in the new process after a `fork`, which copies page tables. Here programs are usually
//! started without a `fork`.
//!
//! The supervisor does not find processes that have left the session (`setsid`, a daemon), processes of another user,
//! or a group in which every process has cleared its environment (`env -i`).

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, setsid};

use super::GRACE;
use crate::temporary::token;

/// The name of the environment variable that marks the programs of a run.
pub const MARK: &str = "MILLSTREAM_MARK";

/// The supervisor's name in lists of processes. It differs from `millstream`, so that `killall millstream` does not end
/// the supervisor.
const NAME: &std::ffi::CStr = c"flow-supervisor";

/// The pause between two searches for remaining processes.
const PAUSE: Duration = Duration::from_millis(20);

/// The maximum time of the search after SIGKILL. A process that is blocked in a driver may never end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a run waits for its supervisor to exit.
const FAREWELL: Duration = Duration::from_millis(200);

/// The number of consecutive searches that must find no process. One search is not enough, because a process that is
/// being started gets its mark a moment later.
const MIN_CLEAN_SEARCHES: u32 = 3;

/// The mark of this process's programs.
pub fn mark() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| format!("{}-{}", std::process::id(), token()))
}

/// The run's handle of its supervisor. If this is dropped without [`dismiss`](Self::dismiss), the supervisor ends the
/// run's programs.
#[derive(Debug)]
pub struct Supervisor {
    process: Child,
}

impl Supervisor {
    /// Starts a supervisor for the programs of this process.
    ///
    /// # Errors
    /// Returns an error if the system refuses a process or a pipe.
    pub fn start() -> io::Result<Self> {
        let process = Command::new("/proc/self/exe")
            .arg0(NAME.to_string_lossy().as_ref())
            .args(["supervise", mark()])
            .env_remove(MARK)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process })
    }

    /// Calls `work`, with a supervisor for the programs that `work` starts. Calls `say` if the supervisor cannot be
    /// started.
    pub fn around<T>(say: impl FnOnce(&str), work: impl FnOnce() -> T) -> T {
        let supervisor = Self::start().inspect_err(|error| say(&unsupervised(error))).ok();
        let outcome = work();
        if let Some(supervisor) = supervisor {
            supervisor.dismiss();
        }
        outcome
    }

    /// Tells the supervisor that no program is left, so it need not end any. Waits only briefly for the supervisor's
    /// exit, because the supervisor may be stopped.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.process.stdin.take() {
            // The write fails if the supervisor was killed. Then no goodbye message is needed.
            let _ = pipe.write_all(b"\n");
        }
        let asked = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && asked.elapsed() < FAREWELL {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// A message that tells the user what a missing supervisor means.
pub fn unsupervised(error: &io::Error) -> String {
    format!("if this process is killed, its programs go on: no supervisor: {error}")
}

/// `millstream supervise MARK`: the work of the supervisor.
pub fn supervise(mark: &str) -> ExitCode {
    close_inherited();
    let own = Place::of("self");
    // In a session of its own, the supervisor gets no signals from the terminal.
    let _ = setsid();
    let _ = rustix::thread::set_name(NAME);
    let mut goodbye = Vec::new();
    let _ = io::stdin().read_to_end(&mut goodbye);
    if let (true, Some(own)) = (goodbye.is_empty(), own) {
        Run { mark: format!("{MARK}={mark}"), own }.end();
    }
    ExitCode::SUCCESS
}

/// Closes the descriptors that the run had inherited. Such a descriptor may hold the lock of a script, which must be
/// released when the run ends.
fn close_inherited() {
    // SAFETY: no code of this process has opened a descriptor yet, so no descriptor from 3 on has an owner in this
    // process.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// A run that has been killed.
struct Run {
    /// The mark as it is in an environment: `NAME=VALUE`.
    mark: String,
    /// The session of the run's programs, and the group of the run itself, to which no program belongs.
    own: Place,
}

impl Run {
    fn end(&self) {
        let asked = Instant::now();
        self.signal(Signal::TERM);
        while asked.elapsed() < GRACE && !self.processes().is_empty() {
            thread::sleep(PAUSE);
        }
        let mut clean = 0;
        while clean < MIN_CLEAN_SEARCHES && asked.elapsed() < GRACE + PATIENCE {
            clean = if self.signal(Signal::KILL) { 0 } else { clean + 1 };
            thread::sleep(PAUSE);
        }
    }

    /// Signals all remaining processes of the run. Returns whether there were any.
    fn signal(&self, signal: Signal) -> bool {
        let found = self.processes();
        for process in &found {
            // The process may have ended meanwhile, and its id may have been reused. A pidfd always refers to the same
            // process. So the process is read again after its pidfd was opened, and must be the same as before.
            let handle = pidfd_open(process.pid, PidfdFlags::empty());
            if Process::read(process.pid, &self.mark).as_ref() != Some(process) {
                continue;
            }
            let _ = match handle {
                Ok(handle) => pidfd_send_signal(handle, signal),
                // This kernel has no pidfds.
                Err(Errno::NOSYS) => kill_process(process.pid, signal),
                Err(errno) => Err(errno),
            };
        }
        !found.is_empty()
    }

    /// The marked processes of the run's session, and all processes in their groups.
    fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut found: Vec<Process> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
            .filter_map(|pid| Process::read(pid, &self.mark))
            .filter(|process| process.place.session == self.own.session)
            .collect();
        let groups: BTreeSet<u32> =
            found.iter().filter(|process| process.marked).map(|process| process.place.group).collect();
        found.retain(|process| {
            let group = process.place.group;
            process.marked || group != self.own.group && groups.contains(&group)
        });
        found
    }
}

/// The group and the session of a process. The number 0 means a group or session of a parent namespace, for example if
/// the process has entered a container from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    group: u32,
    session: u32,
}

impl Place {
    /// The group and the session of a process. `process` is an id or `self`. Returns `None` if the process has ended.
    fn of(process: impl Display) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in parentheses can contain any characters. It is followed by the state, the parent, the group and
        // the session.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let group = fields.nth(1)?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        Some(Self { group, session })
    }
}

/// The data about a process in `/proc`.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    place: Place,
    marked: bool,
}

impl Process {
    /// Reads the data about the process; `None` if it has ended.
    fn read(pid: Pid, mark: &str) -> Option<Self> {
        let number = pid.as_raw_nonzero();
        let place = Place::of(number)?;
        // The environment of another user's process cannot be read. Such a process counts as unmarked.
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        Some(Self { pid, place, marked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_with_its_group_session_and_mark() {
        let mut child = Command::new("sleep").arg("60").env(MARK, "test").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let read = || Process::read(pid, &format!("{MARK}=test")).unwrap();
        // Before its `exec`, the child still has the environment of this process.
        while !read().marked {
            thread::yield_now();
        }
        let process = read();
        let session = Place::of("self").unwrap().session;
        assert_eq!(process.place, Place { group: child.id(), session });
        assert!(!Process::read(pid, &format!("{MARK}=tes")).unwrap().marked);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Process::read(pid, ""), None);
    }
}
