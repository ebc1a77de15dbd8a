//! The identity of a process, and whether that process lives.
//!
//! A PID alone does not identify a process, because PIDs are reused. A PID and a start time together identify one
//! process of one boot of one machine, because the kernel does not reuse a PID within a clock tick. PIDs belong to a
//! PID namespace and start times to a time namespace, so both are compared only within the same namespaces.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

use crate::mapped::error::Error;

/// The number of bits of a PID: on Linux, PIDs are below 2^22.
const PID_BITS: u32 = 22;
const PID: u64 = (1 << PID_BITS) - 1;
/// Set while a survivor acts for a dead cache.
const RECOVERING: u64 = 1 << 63;

/// A process, encoded in one word so that one compare-and-swap can write it. Bit 63 says that the process acts for a
/// dead cache, the next 41 bits count the clock ticks from the boot to its start, and the lowest 22 bits are its PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// No process.
    pub(crate) const NONE: u64 = 0;

    /// This process. The result is not memoised, because a child of `fork` is another process.
    pub(crate) fn own() -> Result<Self, Error> {
        let pid = std::process::id();
        let failed = |source| Error::system("read /proc/self/stat", source);
        let stat = stat("self").map_err(failed)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        if stat.pid != pid {
            let what = format!(
                "/proc belongs to another PID namespace: process {pid} is {} there; mount a /proc of this namespace",
                stat.pid
            );
            return Err(failed(io::Error::other(what)));
        }
        Ok(Self::new(pid, stat.started))
    }

    pub(crate) fn new(pid: u32, started: u64) -> Self {
        Identity(started << PID_BITS & !RECOVERING | u64::from(pid) & PID)
    }

    /// Decodes a word of shared memory; `None` for no process.
    pub(crate) fn read(word: u64) -> Option<Self> {
        (word != Self::NONE).then_some(Identity(word))
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The same process, acting for a dead cache.
    pub(crate) fn recovering(self) -> Self {
        Identity(self.0 | RECOVERING)
    }

    pub(crate) fn pid(self) -> u32 {
        (self.0 & PID) as u32
    }

    /// Whether the process acts for a dead cache.
    pub(crate) fn is_recovering(self) -> bool {
        self.0 & RECOVERING != 0
    }

    /// Whether a signal or a debugger has stopped the process. A process whose state cannot be read counts as running.
    pub(crate) fn is_stopped(self) -> bool {
        matches!(stat(&self.pid().to_string()), Ok(Some(Stat { is_stopped: true, .. })))
    }

    fn started(self) -> u64 {
        (self.0 & !RECOVERING) >> PID_BITS
    }

    /// Whether the process still runs. A zombie, which has ended and awaits its parent, does not.
    ///
    /// A process whose state cannot be found out counts as alive. Waiting for a dead process only withholds some
    /// objects, whereas recovering the objects of a live process would lose them.
    pub(crate) fn is_alive(self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid() as i32) else { return false };
        // The descriptor comes first: it names the process that has the PID now, so that the fields read below are not
        // those of a successor.
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return false,
            other => other.ok(),
        };
        match stat(&self.pid().to_string()) {
            // The process is reaped, or hidden from this user: the descriptor tells which. Without a descriptor, the
            // kernel can only be asked whether the PID is in use.
            Ok(None) if descriptor.is_none() => return test_kill_process(pid) != Err(rustix::io::Errno::SRCH),
            Ok(Some(stat)) if Self::new(self.pid(), stat.started).started() != self.started() => return false,
            Ok(Some(stat)) if descriptor.is_none() => return !stat.is_over,
            _ => {}
        }
        let Some(descriptor) = descriptor else { return true };
        // The descriptor is readable once the process has ended, with all its threads.
        let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
        !matches!(poll(&mut watched, Some(&Timespec::default())), Ok(1))
    }
}

/// The kernel's data about a process.
struct Stat {
    /// Its PID, in the namespace of the /proc that was read.
    pid: u32,
    /// The clock ticks from the boot to its start.
    started: u64,
    /// Whether it has ended, with all its threads, although its parent has not reaped it yet.
    is_over: bool,
    is_stopped: bool,
}

/// The data of the process with this folder in /proc; `None` when the process does not exist.
fn stat(folder: &str) -> io::Result<Option<Stat>> {
    let text = match fs::read_to_string(format!("/proc/{folder}/stat")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {
            return Ok(None);
        }
        other => other?,
    };
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "/proc/…/stat is not as proc(5) says");
    // The name, in parentheses, may contain anything; the third field follows the last parenthesis.
    let fields: Vec<&str> = text.rsplit_once(')').ok_or_else(malformed)?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied().ok_or_else(malformed);
    let number = |number| field(number)?.parse::<u64>().map_err(|_| malformed());
    // A main thread that has ended shows as a zombie although other threads run.
    let is_over = matches!(field(3)?, "Z" | "X" | "x") && number(20)? <= 1;
    let is_stopped = matches!(field(3)?, "T" | "t");
    let pid = text.split_once(' ').and_then(|(pid, _)| pid.parse().ok()).ok_or_else(malformed)?;
    Ok(Some(Stat { pid, started: number(22)?, is_over, is_stopped }))
}

/// A digest of the random identifier that the kernel generates at each boot; never 0.
pub(crate) fn boot() -> Result<u64, Error> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = fs::read(path).map_err(|source| Error::system(format!("read {path}"), source))?;
    let words: Vec<u64> = text.iter().map(|&byte| u64::from(byte)).collect();
    Ok(crate::mapped::header::checksum(&words) | 1)
}

/// The PID namespace of this process in the lower half, and its time namespace in the upper half. The initial time
/// namespace, in which most processes run, is written as 0.
pub(crate) fn namespace() -> Result<u64, Error> {
    /// The kernel's inode number of the initial time namespace.
    const FIRST_TIME: u64 = 0xefff_fffa;
    let number = |path: &str| match fs::metadata(path) {
        Ok(file) => Ok(file.ino()),
        // Kernels before 5.6 have a single time namespace.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.ends_with("time") => Ok(FIRST_TIME),
        Err(source) => Err(Error::system(format!("look at {path}"), source)),
    };
    Ok(number("/proc/self/ns/pid")? | (number("/proc/self/ns/time")? ^ FIRST_TIME) << 32)
}

/// A digest of a boot in the upper half, and of namespaces in the lower.
pub(crate) fn place(boot: u64, namespace: u64) -> u64 {
    boot << 32 | crate::mapped::header::checksum(&[namespace]) & u64::from(u32::MAX)
}

/// The digest of the boot.
pub(crate) fn boot_of(place: u64) -> u64 {
    place >> 32
}

/// The digest of the namespaces.
pub(crate) fn namespaces_of(place: u64) -> u64 {
    place & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn this_process_lives() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert_eq!(own.pid(), std::process::id());
        assert_eq!(own, Identity::own().unwrap());
        assert!(own.recovering().is_alive());
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let own = Identity::own().unwrap();
        assert!(!Identity::new(own.pid(), own.started() - 1).is_alive());
    }

    #[test]
    fn zombies_and_reaped_processes_are_dead() {
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let folder = child.id().to_string();
        let identity = Identity::new(child.id(), stat(&folder).unwrap().unwrap().started);
        assert!(identity.is_alive());
        child.kill().unwrap();
        // The child becomes a zombie, and stays one until its parent reaps it.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while identity.is_alive() {
            assert!(std::time::Instant::now() < deadline, "a killed process is alive");
            std::thread::yield_now();
        }
        assert!(stat(&folder).unwrap().unwrap().is_over);
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }
}
