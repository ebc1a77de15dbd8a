//! The client of the daemon: reads the daemon's page, and asks the daemon for help with moments that pass slowly.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};
use std::{fmt, mem, ptr};

use super::layout::{Hello, MAX_CLIENTS, MAX_CPUS, PageHead, SOURCE_BPF};
use super::message::{Greeting, Request, receive_hello};
use super::view::{Access, View};

/// The environment variable that names the daemon's folder, if it is not [`DEFAULT_FOLDER`].
const VARIABLE: &str = "MILLSTREAM_BARRIERD";
const DEFAULT_FOLDER: &str = "/run/millstream-barrierd";
/// The maximum time to wait for the daemon's greeting.
const GREETING: Duration = Duration::from_secs(1);
/// The maximum sleep before the client checks whether the daemon still exists.
const LOOK: Duration = Duration::from_millis(20);
/// The maximum sleep while the daemon does not read requests: half of a common kernel tick.
const LOOK_MEANWHILE: Duration = Duration::from_millis(2);

/// Returns the path of the daemon's socket: in the folder that `MILLSTREAM_BARRIERD` names, otherwise in
/// `/run/millstream-barrierd`.
fn default_socket() -> PathBuf {
    let folder = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    folder.map_or_else(|| PathBuf::from(DEFAULT_FOLDER), PathBuf::from).join("socket")
}

/// A moment of virtual time, as read by [`Client::now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualTime(pub u64);

/// The reason why a process could not become a client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing listens at the socket.
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The daemon sends no greeting: it is stopped, or too many processes connect at the same time.
    Silent {
        /// The socket.
        socket: PathBuf,
    },
    /// The daemon declines the connection.
    Declined {
        /// The daemon's reason, in words.
        reason: String,
    },
    /// The listening process belongs neither to root nor to this user, so its statements cannot be trusted.
    Untrusted {
        /// The socket.
        socket: PathBuf,
        /// The user that owns the process.
        user: u32,
    },
    /// The daemon has another layout, or its page is from another boot.
    Unfit {
        /// The property that differs.
        what: &'static str,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoDaemon { socket, error } => write!(f, "no daemon at {}: {error}", socket.display()),
            Refused::Silent { socket } => write!(
                f,
                "the daemon at {} did not answer within {GREETING:?}: it is stopped, or too many processes connect at once",
                socket.display()
            ),
            Refused::Declined { reason } => write!(f, "the daemon declines the connection: {reason}"),
            Refused::Untrusted { socket, user } => {
                write!(f, "the daemon at {} belongs to user {user}, neither root nor this user", socket.display())
            }
            Refused::Unfit { what } => write!(f, "the daemon's {what} differs from this process's"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refused::NoDaemon { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The daemon has ended. Its earlier statements stay true, but there will be no new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("barrierd has ended")
    }
}

impl std::error::Error for Gone {}

/// A client: the daemon's regions, mapped read-only, and a connection on which the client can [ask](Client::ask) the daemon for
/// help.
///
/// A child of `fork` may continue to use its parent's client.
#[derive(Debug)]
pub struct Client {
    view: View,
    socket: OwnedFd,
    /// The processors that matter to this client; an empty list stands for all.
    cpus: Vec<usize>,
    /// One more than the latest virtual time requested from the daemon; 0 if none was requested.
    asked: AtomicU64,
    /// This connection's number.
    number: usize,
}

impl Client {
    /// Connects to the daemon in the folder that `MILLSTREAM_BARRIERD` names, otherwise in `/run/millstream-barrierd`.
    ///
    /// Blocks until the daemon has sent its greeting, at most a second.
    ///
    /// # Errors
    /// Returns an error if there is no daemon, or none that can be used; see [`Refused`].
    pub fn connect() -> Result<Client, Refused> {
        Self::connect_to(&default_socket())
    }

    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// Returns an error if there is no daemon, or none that can be used; see [`Refused`].
    pub fn connect_to(path: &Path) -> Result<Client, Refused> {
        let no_daemon = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Refused::Silent { socket: path.to_owned() },
            _ => Refused::NoDaemon { socket: path.to_owned(), error },
        };
        let socket = connect(path).map_err(no_daemon)?;
        let user = peer(&socket).map_err(no_daemon)?;
        // SAFETY: `geteuid` has no preconditions.
        if user != 0 && user != unsafe { libc::geteuid() } {
            return Err(Refused::Untrusted { socket: path.to_owned(), user });
        }
        let (hello, page, times) = match receive_hello(socket.as_fd()).map_err(no_daemon)? {
            Greeting::Welcome(hello, page, times) => (hello, page, times),
            Greeting::Declined(reason) => return Err(Refused::Declined { reason }),
            Greeting::OtherVersion => return Err(Refused::Unfit { what: "layout" }),
        };
        let Hello { cpus, client, .. } = hello;
        let (cpus, number) = (cpus as usize, client as usize);
        if cpus > MAX_CPUS || number >= MAX_CLIENTS {
            return Err(Refused::Unfit { what: "layout" });
        }
        // SAFETY: a daemon of this layout, which root or this user has started, never shrinks its files.
        let view = unsafe { View::map((page.as_fd(), Access::Read), (times.as_fd(), Access::Read), cpus) };
        let view = view.map_err(no_daemon)?;
        if view.page().boot_id != boot_id().map_err(no_daemon)? {
            return Err(Refused::Unfit { what: "boot" });
        }
        Ok(Client { view, socket, cpus: Vec::new(), asked: AtomicU64::new(0), number })
    }

    /// Limits the client to these processors. No other processor matters to it from then on.
    ///
    /// The caller guarantees that the threads with which its fences pair run on these processors only, from before it draws a
    /// moment until that moment has passed.
    ///
    /// # Panics
    /// Panics if `cpus` is empty, or contains a processor that this machine cannot have.
    #[must_use]
    pub fn on_cpus(mut self, cpus: impl IntoIterator<Item = usize>) -> Client {
        self.cpus = cpus.into_iter().collect();
        assert!(!self.cpus.is_empty(), "a client needs at least one processor");
        assert!(
            self.cpus.iter().all(|cpu| *cpu < self.view.cpus()),
            "this machine has {} possible processors",
            self.view.cpus()
        );
        self
    }

    /// Returns the mapped regions, for readers with other needs.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Draws a moment: returns the virtual time, read after everything that the caller has written.
    ///
    /// Wait-free. Cost: a full fence and a load.
    #[must_use]
    pub fn now(&self) -> VirtualTime {
        fence(Ordering::SeqCst);
        VirtualTime(self.view.times().virtual_now.load(Ordering::Relaxed))
    }

    /// Returns whether every processor that matters has passed a full barrier after `since` was drawn.
    ///
    /// If so, these barriers count as a heavy fence of the caller. Everything the caller wrote before it drew `since` is visible
    /// to all code that runs on a processor after its barrier. Everything written on a processor before its barrier is visible to
    /// the caller.
    ///
    /// Wait-free. Cost: three loads for each processor that matters, and a full fence at the end.
    #[must_use]
    pub fn has_passed(&self, since: VirtualTime) -> bool {
        let passed = self.every(|cpu| self.view.virtual_time(cpu) > since.0);
        if passed {
            fence(Ordering::SeqCst);
        }
        passed
    }

    /// Like [`has_passed`](Client::has_passed), but for a time of the clock instead of virtual time. `since_ns` is a time of
    /// `CLOCK_MONOTONIC` in nanoseconds, which the caller read after a full fence.
    ///
    /// The result is correct only if the clocks of the processors agree, which is not guaranteed. The result for a virtual time
    /// is always correct.
    #[must_use]
    pub fn has_passed_clock(&self, since_ns: u64) -> bool {
        let passed = self.every(|cpu| self.view.time(cpu) > since_ns);
        if passed {
            fence(Ordering::SeqCst);
        }
        passed
    }

    /// Asks the daemon to help until `since` has passed: to check which processors are idle, and to wake sleeping clients.
    ///
    /// Make one request for each moment that a thread waits for: without a request, a moment may take long to pass on a machine
    /// with few interrupts. Never waits. Costs an atomic read-modify-write instruction. Unless this moment or a later one was
    /// requested already, it also costs a system call (1 µs).
    pub fn ask(&self, since: VirtualTime) {
        if self.asked.fetch_max(since.0.saturating_add(1), Ordering::Relaxed) <= since.0 {
            self.send(since);
        }
    }

    /// Sleeps until `since` has passed, at most until the deadline. May return early; call [`has_passed`](Client::has_passed)
    /// afterwards.
    ///
    /// # Errors
    /// Returns [`Gone`] within 20 ms after the daemon has ended.
    pub fn wait(&self, since: VirtualTime, deadline: Instant) -> Result<(), Gone> {
        if self.has_passed(since) {
            return Ok(());
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        // While the daemon leaves requests unread, the processors still write their times. The loop therefore checks the times,
        // and the request is sent only after the loop.
        let end = deadline.min(Instant::now() + LOOK);
        while self.does_without() && Instant::now() < end {
            let most = end.saturating_duration_since(Instant::now()).min(LOOK_MEANWHILE);
            if self.sleep(since, most)? == Slept::Passed {
                return Ok(());
            }
        }
        self.ask(since);
        if self.sleep(since, left().min(LOOK / 4))? != Slept::TimedOut {
            return Ok(());
        }
        // The daemon may have stopped reading requests just before this request was sent. The sleep is then shorter, so that this
        // thread soon checks the processors' times itself.
        let most = if self.does_without() { LOOK_MEANWHILE } else { LOOK };
        if self.sleep(since, left().min(most))? == Slept::TimedOut && most == LOOK && !left().is_zero() {
            // The request may be missing: the socket may have been full, or another thread may have stored a later moment in
            // `asked` and not sent its request yet.
            self.send(since);
        }
        Ok(())
    }

    /// Sleeps until the daemon announces progress, at most for `most`.
    fn sleep(&self, since: VirtualTime, most: Duration) -> Result<Slept, Gone> {
        let turn = self.turn();
        let before = turn.load(Ordering::Acquire);
        if self.has_passed(since) {
            return Ok(Slept::Passed);
        }
        // The daemon writes its statements before it increments the futex. If the futex has changed since the load, the call does
        // not sleep; if it changes later, the sleeper is woken.
        match futex_wait(turn, before, most) {
            false => Ok(Slept::Woken),
            true if !self.is_alive() => Err(Gone),
            true => Ok(if self.has_passed(since) { Slept::Passed } else { Slept::TimedOut }),
        }
    }

    /// Returns whether the daemon still exists. This is a system call (0.3 µs) that never waits.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut byte = 0_u8;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: `byte` has room for one byte. The daemon sends nothing after its greeting, so the call finds either no data or
        // the end of the connection.
        let found = unsafe { libc::recv(self.socket.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
        found < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Returns whether the daemon currently leaves this connection's requests in the socket, because the client's user has used
    /// up its part of the daemon's processor time. The daemon reads them once the user has earned time again.
    ///
    /// Wait-free: a single load.
    #[must_use]
    pub fn rests(&self) -> bool {
        // Relaxed: the value is a hint.
        self.view.page_client(self.number).rests.load(Ordering::Relaxed) != 0
    }

    /// Like [`ask`](Client::ask), but sends no request while the daemon leaves requests unread and processors may pass without
    /// its help. The caller must then call this again later.
    pub(super) fn ask_in_time(&self, since: VirtualTime) {
        if self.asked.load(Ordering::Relaxed) <= since.0 && !self.does_without() {
            self.ask(since);
        }
    }

    /// Returns whether the daemon leaves requests unread but the processors write their times themselves, so that the client can
    /// do without the daemon.
    fn does_without(&self) -> bool {
        self.rests() && self.view.page().source == SOURCE_BPF
    }

    fn every(&self, passed: impl Fn(usize) -> bool) -> bool {
        if self.cpus.is_empty() { (0..self.view.cpus()).all(passed) } else { self.cpus.iter().all(|cpu| passed(*cpu)) }
    }

    /// Returns the futex to sleep on. If only some processors matter to the client, a moment may pass without a change of the
    /// minimum over all processors, so `least_turn` is not enough.
    fn turn(&self) -> &AtomicU32 {
        let PageHead { turn, least_turn, .. } = self.view.page();
        if self.cpus.is_empty() { least_turn } else { turn }
    }

    /// Sends a request. If the socket is full, the request is dropped; the requests in the socket wake the daemon anyway.
    fn send(&self, since: VirtualTime) {
        let mut cpus = vec![0_u64; if self.cpus.is_empty() { 0 } else { self.view.cpus().div_ceil(64) }];
        for cpu in &self.cpus {
            cpus[cpu / 64] |= 1 << (cpu % 64);
        }
        let bytes = Request { virtual_time: since.0, cpus }.to_bytes();
        // SAFETY: the bytes outlive the call. An error is ignored, because `is_alive` finds out whether the daemon still exists.
        unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags)
        };
    }
}

/// The outcome of a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slept {
    /// The moment has passed.
    Passed,
    /// The daemon has announced progress.
    Woken,
    /// The time-out has passed.
    TimedOut,
}

/// Sleeps on a futex. Returns whether the sleep was ended by the time-out. A futex that is mapped read-only supports waiting, but
/// not waking.
fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) -> bool {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    // SAFETY: the word and the time outlive the call.
    let outcome = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout) };
    outcome < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

fn connect(path: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::ffi::OsStrExt;

    // SAFETY: `socket` takes three integers, and the returned descriptor is new and has no other owner.
    let socket = unsafe {
        match libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) {
            -1 => return Err(io::Error::last_os_error()),
            socket => OwnedFd::from_raw_fd(socket),
        }
    };
    // SAFETY: an address of zeros is valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let name = path.as_os_str().as_bytes();
    if name.len() >= address.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket's path is too long"));
    }
    for (to, from) in address.sun_path.iter_mut().zip(name) {
        *to = *from as _;
    }
    let limit = libc::timeval { tv_sec: GREETING.as_secs() as _, tv_usec: 0 };
    // SAFETY: both calls read memory that outlives them, within the given lengths.
    unsafe {
        let limit_bytes = size_of_val(&limit) as u32;
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const limit).cast(), limit_bytes);
        }
        let address_bytes = size_of_val(&address) as u32;
        if libc::connect(socket.as_raw_fd(), (&raw const address).cast(), address_bytes) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(socket)
}

/// Returns the id of the user that began to listen on the other side.
fn peer(socket: &OwnedFd) -> io::Result<u32> {
    // SAFETY: credentials of zeros are valid.
    let mut credentials: libc::ucred = unsafe { mem::zeroed() };
    let mut bytes = size_of_val(&credentials) as u32;
    // SAFETY: the call writes to `credentials` and is passed its size.
    let outcome = unsafe {
        let room = ptr::from_mut(&mut credentials).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, room, &raw mut bytes)
    };
    if outcome != 0 { Err(io::Error::last_os_error()) } else { Ok(credentials.uid) }
}

/// Returns the kernel's boot id, as 16 bytes.
///
/// # Errors
/// Returns an error if /proc does not provide it.
pub fn boot_id() -> io::Result<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16);
    number.map(u128::to_be_bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_daemon_the_error_names_the_path() {
        let error = Client::connect_to(Path::new("/nonexistent/socket")).unwrap_err();
        assert!(error.to_string().starts_with("no daemon at /nonexistent/socket: "), "{error}");
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_refused() {
        assert!(matches!(Client::connect_to(Path::new(&"x".repeat(200))), Err(Refused::NoDaemon { .. })));
    }

    #[test]
    fn the_boot_has_an_id() {
        assert_ne!(boot_id().unwrap(), [0; 16]);
    }
}
