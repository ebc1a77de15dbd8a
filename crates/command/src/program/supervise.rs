//! No program outlives its run, not even a run that is killed.
//!
//! A run that ends by itself or by an interrupt ends its programs. One that is killed (`kill -9`, a machine out of
//! memory) cannot. So a run that starts programs first starts a *supervisor*: a process in a session of its own that
//! waits for the end of a pipe. The run holds the other end, and the kernel closes it however the run ends. Unless the
//! run has said goodbye, the supervisor then ends every process that bears the run's mark: SIGTERM, and half a second
//! later SIGKILL.
//!
//! The mark is an environment variable with a value that no other run has. Children and grandchildren inherit it, and
//! they have it from their first instruction on: there is no list to keep, no gap between a program's start and its
//! entry in the list, and no process number that may have been reused meanwhile. A process in the group of a marked
//! process ends with it.
//!
//! The kernel's own means, `PR_SET_PDEATHSIG`, reaches the program alone and not its children. It also has to be set in
//! the new process after a `fork`, which copies page tables; here programs are started without a `fork`.
//!
//! Some processes are not followed: those that have left the session (`setsid`, a daemon), a program whose whole group
//! has cleared its environment (`env -i`), and those of another user.

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

/// The environment variable of the programs that a run starts.
pub const MARK: &str = "MILLSTREAM_MARK";

/// The supervisor's name in lists of processes: `killall millstream` must not end it.
const NAME: &std::ffi::CStr = c"flow-supervisor";

/// The pause between two searches for remaining processes.
const PAUSE: Duration = Duration::from_millis(20);

/// The time for which processes are searched after SIGKILL; one that a driver holds up may never end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for which a run waits for its supervisor to exit.
const FAREWELL: Duration = Duration::from_millis(200);

/// The number of consecutive searches that must find nothing: a process that is being started has its mark a moment
/// later.
const MIN_CLEAN_SEARCHES: u32 = 3;

/// The mark of this process's programs.
pub fn mark() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| format!("{}-{}", std::process::id(), token()))
}

/// The run's side of its supervisor. Dropped without [`dismiss`](Self::dismiss), it lets the supervisor do its work.
#[derive(Debug)]
pub struct Supervisor {
    process: Child,
}

impl Supervisor {
    /// Starts a supervisor for the programs of this process.
    ///
    /// # Errors
    /// The system gives no process or no pipe.
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

    /// Does `work`, with a supervisor for the programs that it starts. Calls `say` if the supervisor cannot be started.
    pub fn around<T>(say: impl FnOnce(&str), work: impl FnOnce() -> T) -> T {
        let supervisor = Self::start().inspect_err(|error| say(&unsupervised(error))).ok();
        let outcome = work();
        if let Some(supervisor) = supervisor {
            supervisor.dismiss();
        }
        outcome
    }

    /// Dismisses the supervisor: no program is left. Waits for its exit, but only for a moment, as it may be stopped.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.process.stdin.take() {
            // A supervisor that has been killed needs no goodbye.
            let _ = pipe.write_all(b"\n");
        }
        let asked = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && asked.elapsed() < FAREWELL {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// The consequence of the missing supervisor for the user.
pub fn unsupervised(error: &io::Error) -> String {
    format!("if this process is killed, its programs go on: no supervisor: {error}")
}

/// `millstream supervise MARK`: the supervisor's side.
pub fn supervise(mark: &str) -> ExitCode {
    close_inherited();
    let own = Place::of("self");
    // Neither the terminal's keys nor its end reach another session.
    let _ = setsid();
    let _ = rustix::thread::set_name(NAME);
    let mut goodbye = Vec::new();
    let _ = io::stdin().read_to_end(&mut goodbye);
    if let (true, Some(own)) = (goodbye.is_empty(), own) {
        Run { mark: format!("{MARK}={mark}"), own }.end();
    }
    ExitCode::SUCCESS
}

/// Closes the descriptors that the run itself inherited, such as the lock of a script, which must not be held for
/// longer than the run.
fn close_inherited() {
    // SAFETY: no code of this process has opened a descriptor yet, so none from 3 on has an owner here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// A run that has been killed.
struct Run {
    /// The mark as it stands in an environment.
    mark: String,
    /// The session of its programs, and the group of the run itself, to which no program belongs.
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

    /// Signals the processes that are left of the run; returns whether there were any.
    fn signal(&self, signal: Signal) -> bool {
        let found = self.processes();
        for process in &found {
            // The descriptor stays with one process; reading the process again tells whether it is the one that was
            // found.
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

    /// The marked processes of the run's session, and those in their groups.
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

/// The group and the session of a process. A group or session of a parent namespace has the number 0 here, as in a
/// container that has been entered from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    group: u32,
    session: u32,
}

impl Place {
    /// The place of a process, a number or `self`; `None` if the process has ended.
    fn of(process: impl Display) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in parentheses can hold anything; after it come state, parent, group and session.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let group = fields.nth(1)?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        Some(Self { group, session })
    }
}

/// A process as `/proc` shows it.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    place: Place,
    marked: bool,
}

impl Process {
    /// Reads the process; `None` if it has ended.
    fn read(pid: Pid, mark: &str) -> Option<Self> {
        let number = pid.as_raw_nonzero();
        let place = Place::of(number)?;
        // Another user's environment cannot be read.
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
        // The environment is the child's own from its `exec` on.
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
