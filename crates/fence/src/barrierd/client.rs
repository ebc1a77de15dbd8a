//! A process that looks at the page.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};
use std::{fmt, mem, ptr};

use super::layout::{Hello, MAX_CLIENTS, MAX_CPUS, PageHead, SOURCE_BPF};
use super::message::{Greeting, Request, receive_hello};
use super::view::{Access, View};

/// Names another folder of the daemon than [`DEFAULT_FOLDER`].
const VARIABLE: &str = "MILLSTREAM_BARRIERD";
const DEFAULT_FOLDER: &str = "/run/millstream-barrierd";
/// How long a daemon may take to greet.
const GREETING: Duration = Duration::from_secs(1);
/// The longest sleep without a look whether the daemon lives.
const LOOK: Duration = Duration::from_millis(20);
/// The same while the daemon does not hear: half of a common tick.
const LOOK_MEANWHILE: Duration = Duration::from_millis(2);

/// The daemon's socket: in the folder that `MILLSTREAM_BARRIERD` names, otherwise in `/run/millstream-barrierd`.
#[must_use]
pub fn default_socket() -> PathBuf {
    let folder = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    folder.map_or_else(|| PathBuf::from(DEFAULT_FOLDER), PathBuf::from).join("socket")
}

/// A moment of virtual time: what [`Client::now`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualTime(pub u64);

/// Why there is no client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// No daemon answers there.
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
    /// The daemon does not answer: it is stopped, or too many processes connect at the same time.
    Silent {
        /// The socket.
        socket: PathBuf,
    },
    /// The daemon takes this connection not in.
    Declined {
        /// Its reason, in words.
        reason: String,
    },
    /// Whoever answers is neither root's nor ours, so what it says is not to be trusted.
    Untrusted {
        /// The socket.
        socket: PathBuf,
        /// The user it belongs to.
        user: u32,
    },
    /// It is a daemon of another layout or of another boot.
    Unfit {
        /// What differs.
        what: &'static str,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoDaemon { socket, error } => write!(f, "no daemon at {}: {error}", socket.display()),
            Refused::Silent { socket } => write!(
                f,
                "the daemon at {} did not answer within {GREETING:?}: it is stopped, or too many connect at once",
                socket.display()
            ),
            Refused::Declined { reason } => write!(f, "the daemon declines: {reason}"),
            Refused::Untrusted { socket, user } => {
                write!(f, "the daemon at {} belongs to user {user}, neither root nor us", socket.display())
            }
            Refused::Unfit { what } => write!(f, "the daemon is of another {what}"),
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

/// The daemon has ended: its statements stay true, and no more will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("barrierd has ended")
    }
}

impl std::error::Error for Gone {}

/// The daemon's regions, mapped read-only, and a connection by which it can be asked to hurry.
///
/// A child of `fork` may go on using its parent's.
#[derive(Debug)]
pub struct Client {
    view: View,
    socket: OwnedFd,
    /// The processors that matter; empty: all.
    cpus: Vec<usize>,
    /// One more than the latest virtual time that the daemon was asked for; so 0 is never.
    asked: AtomicU64,
    /// This connection's number.
    number: usize,
}

impl Client {
    /// Connects to the daemon at [`default_socket`].
    ///
    /// Blocks for as long as the daemon takes to answer, a second at most.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn connect() -> Result<Client, Refused> {
        Self::connect_to(&default_socket())
    }

    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn connect_to(path: &Path) -> Result<Client, Refused> {
        let no_daemon = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Refused::Silent { socket: path.to_owned() },
            _ => Refused::NoDaemon { socket: path.to_owned(), error },
        };
        let socket = connect(path).map_err(no_daemon)?;
        let user = peer(&socket).map_err(no_daemon)?;
        // SAFETY: geteuid has no preconditions.
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
        // SAFETY: a daemon of this layout, which root or we have started, never shortens its files.
        let view = unsafe { View::map((page.as_fd(), Access::Read), (times.as_fd(), Access::Read), cpus) };
        let view = view.map_err(no_daemon)?;
        if view.page().boot_id != boot_id().map_err(no_daemon)? {
            return Err(Refused::Unfit { what: "boot" });
        }
        Ok(Client { view, socket, cpus: Vec::new(), asked: AtomicU64::new(0), number })
    }

    /// From now on looks at these processors only.
    ///
    /// That is right for threads which the kernel lets run nowhere else, from before a moment is drawn until it has
    /// passed; for those the caller vouches.
    ///
    /// # Panics
    /// If none is named, or one that is not possible on this machine.
    #[must_use]
    pub fn on_cpus(mut self, cpus: impl IntoIterator<Item = usize>) -> Client {
        self.cpus = cpus.into_iter().collect();
        assert!(!self.cpus.is_empty(), "a client that looks at no processor learns nothing");
        assert!(self.cpus.iter().all(|cpu| *cpu < self.view.cpus()), "there are {} processors", self.view.cpus());
        self
    }

    /// The mapped regions, to be read in one's own way.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Virtual time, after everything that the caller has written.
    ///
    /// Wait-free. Cost: a full fence and a load.
    #[must_use]
    pub fn now(&self) -> VirtualTime {
        fence(Ordering::SeqCst);
        VirtualTime(self.view.times().virtual_now.load(Ordering::Relaxed))
    }

    /// Whether every processor that matters passed a full barrier after `since` was drawn.
    ///
    /// If so, it was a heavy fence for the caller: what it had written before it drew `since` is visible to whatever
    /// runs there from that barrier on, and what ran there before is visible to the caller.
    ///
    /// Wait-free. Cost: three loads for each processor that matters, and a full fence in the end.
    #[must_use]
    pub fn has_passed(&self, since: VirtualTime) -> bool {
        let passed = self.every(|cpu| self.view.virtual_time(cpu) > since.0);
        if passed {
            fence(Ordering::SeqCst);
        }
        passed
    }

    /// The same by the clock: whether every processor that matters passed after this time of `CLOCK_MONOTONIC`, in
    /// nanoseconds, which the caller read behind a full fence.
    ///
    /// As right as the clocks of the processors agree, so not beyond all doubt; virtual time is.
    #[must_use]
    pub fn has_passed_clock(&self, since_ns: u64) -> bool {
        let passed = self.every(|cpu| self.view.time(cpu) > since_ns);
        if passed {
            fence(Ordering::SeqCst);
        }
        passed
    }

    /// Asks the daemon to see to it that `since` passes: to look which processors are idle, and to wake sleepers.
    ///
    /// Needed once for each moment that is waited for, or else a machine without interrupts takes its time. Never
    /// waits; a moment that was asked for already, or an earlier one, costs a load, another one a system call (1 µs).
    pub fn ask(&self, since: VirtualTime) {
        if self.asked.fetch_max(since.0.saturating_add(1), Ordering::Relaxed) <= since.0 {
            self.send(since);
        }
    }

    /// Sleeps until `since` has passed or the deadline; may also end early. [`has_passed`](Client::has_passed) tells.
    ///
    /// # Errors
    /// [`Gone`], within 20 ms of the daemon's death.
    pub fn wait(&self, since: VirtualTime, deadline: Instant) -> Result<(), Gone> {
        if self.has_passed(since) {
            return Ok(());
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        // What processors write by themselves is there without the daemon. It is asked in the end: it hears that later.
        let end = deadline.min(Instant::now() + LOOK);
        while self.does_without() && Instant::now() < end {
            let most = end.saturating_duration_since(Instant::now()).min(LOOK_MEANWHILE);
            if self.sleep(since, most)? == Slept::Passed {
                return Ok(());
            }
        }
        self.ask(since);
        if self.sleep(since, left().min(LOOK / 4))? != Slept::InVain {
            return Ok(());
        }
        // It may have begun not to hear just before this request.
        let most = if self.does_without() { LOOK_MEANWHILE } else { LOOK };
        if self.sleep(since, left().min(most))? == Slept::InVain && most == LOOK && !left().is_zero() {
            // The request may have met a full socket, or another moment's may be what was remembered.
            self.send(since);
        }
        Ok(())
    }

    /// Sleeps until the daemon tells something, or the time is over.
    fn sleep(&self, since: VirtualTime, most: Duration) -> Result<Slept, Gone> {
        let turn = self.turn();
        let before = turn.load(Ordering::Acquire);
        if self.has_passed(since) {
            return Ok(Slept::Passed);
        }
        // The daemon states what has passed before it moves the turn on. If it has moved since the load, the futex
        // does not sleep; if it moves later, the sleeper is woken.
        match futex_wait(turn, before, most) {
            false => Ok(Slept::Woken),
            true if !self.is_alive() => Err(Gone),
            true => Ok(if self.has_passed(since) { Slept::Passed } else { Slept::InVain }),
        }
    }

    /// Whether the daemon lives. A system call (0.3 µs) that never waits.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut byte = 0_u8;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: room for one byte; after its greeting the daemon sends none, so the call finds nothing or the end.
        let found = unsafe { libc::recv(self.socket.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
        found < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Whether the daemon leaves this connection's requests in the socket at present, because their user has used up its part of the daemon's share.
    /// It hears them when the user has earned that again.
    ///
    /// Wait-free; a load.
    #[must_use]
    pub fn rests(&self) -> bool {
        // Relaxed: a hint.
        self.view.page_client(self.number).rests.load(Ordering::Relaxed) != 0
    }

    /// Asks as [`ask`](Client::ask), unless the daemon hears it later and processors may pass without it; to be called again then.
    pub(super) fn ask_in_time(&self, since: VirtualTime) {
        if self.asked.load(Ordering::Relaxed) <= since.0 && !self.does_without() {
            self.ask(since);
        }
    }

    /// Whether to look for what processors write by themselves, for the daemon does not hear.
    fn does_without(&self) -> bool {
        self.rests() && self.view.page().source == SOURCE_BPF
    }

    fn every(&self, passed: impl Fn(usize) -> bool) -> bool {
        if self.cpus.is_empty() { (0..self.view.cpus()).all(passed) } else { self.cpus.iter().all(|cpu| passed(*cpu)) }
    }

    /// Who looks at some processors only may be done when the minimum of all has not moved.
    fn turn(&self) -> &AtomicU32 {
        let PageHead { turn, least_turn, .. } = self.view.page();
        if self.cpus.is_empty() { least_turn } else { turn }
    }

    /// A socket that is full holds many requests, one of which wakes the daemon as well.
    fn send(&self, since: VirtualTime) {
        let mut cpus = vec![0_u64; if self.cpus.is_empty() { 0 } else { self.view.cpus().div_ceil(64) }];
        for cpu in &self.cpus {
            cpus[cpu / 64] |= 1 << (cpu % 64);
        }
        let bytes = Request { virtual_time: since.0, cpus }.to_bytes();
        // SAFETY: the bytes live through the call. That nobody hears it is found out by `is_alive`.
        unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags)
        };
    }
}

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slept {
    /// The moment has passed.
    Passed,
    /// The daemon has told something.
    Woken,
    /// The time is over.
    InVain,
}

/// Tells whether the time ran out. A futex that is mapped read-only can be waited for, not woken.
fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) -> bool {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    // SAFETY: the word and the time live through the call.
    let outcome = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout) };
    outcome < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

fn connect(path: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::ffi::OsStrExt;

    // SAFETY: socket takes three integers; the descriptor it returns is new and ours.
    let socket = unsafe {
        match libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) {
            -1 => return Err(io::Error::last_os_error()),
            socket => OwnedFd::from_raw_fd(socket),
        }
    };
    // SAFETY: all zeros are a valid address.
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
    // SAFETY: both calls read memory that lives through them, as long as they are told.
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

/// The user under whom the other side began to listen.
fn peer(socket: &OwnedFd) -> io::Result<u32> {
    // SAFETY: all zeros are valid credentials.
    let mut credentials: libc::ucred = unsafe { mem::zeroed() };
    let mut bytes = size_of_val(&credentials) as u32;
    // SAFETY: room for the credentials, whose size the call is told.
    let outcome = unsafe {
        let room = ptr::from_mut(&mut credentials).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, room, &raw mut bytes)
    };
    if outcome != 0 { Err(io::Error::last_os_error()) } else { Ok(credentials.uid) }
}

/// The kernel's boot id, as 16 bytes.
///
/// # Errors
/// If /proc does not tell it.
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
    fn where_no_daemon_is_the_path_is_named() {
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
