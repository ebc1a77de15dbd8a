//! A daemon in a temporary folder, with the mechanisms that this machine permits.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_fence::barrierd::Client;
use tempfile::TempDir;

/// A limit far above the time that any step here takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The mechanisms that a test's daemon may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// The program in the kernel.
    Bpf,
    /// The fallbacks alone: membarrier(GLOBAL) and /proc/stat.
    FallBacks,
    /// Only /proc/stat: a seccomp filter refuses membarrier(2) and bpf(2).
    StatAlone,
}

pub(crate) const WITHOUT_BPF: [With; 2] = [With::FallBacks, With::StatAlone];

/// A running daemon, which is killed when this value is dropped.
pub(crate) struct Daemon {
    child: Child,
    said: BufReader<ChildStderr>,
    /// The daemon's first line of output.
    pub(crate) about: String,
    folder: TempDir,
}

impl Daemon {
    /// Starts a daemon that other processes may find. If it can't use these mechanisms here, prints the reason and returns
    /// `None`.
    pub(crate) fn start(with: With) -> Option<Daemon> {
        Daemon::start_with(tempfile::tempdir().unwrap(), with, &[])
    }

    /// Starts a daemon in this folder and with these arguments.
    pub(crate) fn start_with(folder: TempDir, with: With, args: &[&str]) -> Option<Daemon> {
        let daemon = Daemon::start_in(folder, with, args);
        if with == With::Bpf && !daemon.about.contains("times by BPF") {
            println!("skipped: {}", daemon.about);
            return None;
        }
        Some(daemon)
    }

    pub(crate) fn start_in(folder: TempDir, with: With, args: &[&str]) -> Daemon {
        let mut child = command(folder.path(), with, args).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut about = String::new();
        said.read_line(&mut about).unwrap();
        let daemon = Daemon { child, said, about, folder };
        drop(daemon.client());
        daemon
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn client(&self) -> Client {
        let begun = Instant::now();
        loop {
            match Client::connect_to(&self.socket()) {
                Ok(client) => return client,
                Err(refused) => assert!(begun.elapsed() < LIMIT, "{refused}: {}", self.about),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the daemon as `kill -9` does. Returns the folder, with the files that are left in it.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// Waits for the end of the daemon, and returns its output after the first line.
    pub(crate) fn last_words(mut self) -> String {
        let mut words = String::new();
        self.said.read_to_string(&mut words).unwrap();
        words
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command that starts the daemon.
pub(crate) fn command(folder: &Path, with: With, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream-barrierd"));
    command.arg("--folder").arg(folder).args(args).stderr(Stdio::piped());
    match with {
        With::Bpf => {}
        With::FallBacks => drop(command.arg("--without-bpf")),
        // SAFETY: between fork and exec, the closure only makes two system calls on its own memory.
        With::StatAlone => drop(unsafe { command.pre_exec(|| forbid(&[libc::SYS_membarrier, libc::SYS_bpf])) }),
    }
    command
}

/// From now on, these system calls fail with EPERM.
fn forbid(calls: &[libc::c_long]) -> std::io::Result<()> {
    const NUMBER: u32 = 0; // the offset of the system call's number in seccomp_data
    let instruction = |code: u32, jt: usize, k: u32| libc::sock_filter { code: code as u16, jt: jt as u8, jf: 0, k };
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, NUMBER)];
    for (place, call) in calls.iter().enumerate() {
        filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, calls.len() - place, *call as u32));
    }
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter outlive the calls, which copy them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until all processors have passed since this call. Returns the time that this took.
pub(crate) fn pass(client: &Client) -> Duration {
    let begun = Instant::now();
    let since = client.now();
    while !client.has_passed(since) {
        assert!(begun.elapsed() < LIMIT, "processors do not pass");
        client.wait(since, Instant::now() + LIMIT).unwrap();
    }
    begun.elapsed()
}

/// Ends the work of other threads when dropped, even if an assertion fails.
pub(crate) struct Ends<'o>(pub(crate) &'o AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the factor by which `MILLSTREAM_STRESS` extends a stress test.
pub(crate) fn stress() -> u32 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
