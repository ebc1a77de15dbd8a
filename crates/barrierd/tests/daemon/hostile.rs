//! Tests with clients that send requests nonstop, on one or on hundreds of connections, while other clients send a request now
//! and then.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fence::barrierd::{Client, Refused, Request};

use crate::support::{Daemon, Ends, LIMIT, With, pass};

/// The daemon's default share of a processor, as documented, in percent.
const SHARE: f64 = 0.8;
/// The time that the daemon may use in addition to its share: its savings at the start, and the overdraft of its users.
const SAVED: Duration = Duration::from_millis(25 + 5);

/// The first of the user ids that the tests switch to.
const FIRST_USER: u32 = 60_000;

#[test]
fn one_client_that_asks_without_end_uses_the_share_and_no_more() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = reachable(with, &[]) else { continue };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = Ends(&over);
            scope.spawn(|| flood(&[daemon.connection()], &over));
            assert_within(&daemon, SHARE);
        });
        pass(&daemon.client());
    }
}

#[test]
fn nine_hundred_connections_use_the_share_and_no_more() {
    for with in [With::Bpf, With::FallBacks] {
        // With a larger share, the daemon accepts all connections sooner.
        let Some(daemon) = reachable(with, &["--share", "4"]) else { continue };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = Ends(&over);
            // None of the connections reads its greeting.
            let sockets: Vec<File> = (0..9)
                .flat_map(|user| as_user(user, || (0..100).map(|_| daemon.connection()).collect::<Vec<_>>()))
                .collect();
            let over = &over;
            scope.spawn(move || flood(&sockets, over));
            assert_within(&daemon, 4.0);
        });
    }
}

#[test]
fn clients_that_come_and_go_without_end_use_the_share_and_no_more() {
    let Some(daemon) = reachable(With::FallBacks, &[]) else { return };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = Ends(&over);
        scope.spawn(|| {
            while !over.load(Relaxed) {
                drop(daemon.connection());
            }
        });
        assert_within(&daemon, SHARE);
    });
}

#[test]
fn a_client_that_asks_seldom_is_served_at_once_beside_another_users_flood() {
    if !may_become(FIRST_USER) {
        return println!("skipped: this user can't become another one");
    }
    for with in [With::Bpf, With::FallBacks] {
        // If other programs use the daemon's core as well, a request may cost more than the client's part of the share pays for.
        let is_served = || reachable(with, &[]).is_none_or(|daemon| is_served_beside_a_flood(&daemon, with));
        assert!((0..5).any(|_| is_served()), "{with:?}: a client that asks seldom was put to rest each time");
    }
}

/// Returns whether a client that seldom sends requests never rests, while a client of another user sends requests nonstop.
fn is_served_beside_a_flood(daemon: &Daemon, with: With) -> bool {
    let (over, rested) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _end = Ends(&over);
        let (over, rested) = (&over, &rested);
        let hostile: Client = as_user(0, || daemon.client());
        scope.spawn(move || {
            while !over.load(Relaxed) {
                hostile.ask(hostile.now());
                rested.fetch_add(u64::from(hostile.rests()), Relaxed);
            }
        });
        let seldom: Client = as_user(1, || daemon.client());
        let begun = Instant::now();
        let mut asked = 0;
        while asked < 12 || rested.load(Relaxed) == 0 {
            assert!(begun.elapsed() < LIMIT, "{with:?}: the daemon never stops serving the flood");
            // The client sends requests so seldom that its part of the share pays for them, with a wide margin.
            thread::sleep(Duration::from_millis(100));
            if seldom.rests() {
                return false;
            }
            pass(&seldom);
            asked += 1;
        }
        true
    })
}

/// If this environment variable is set, the tests may assume that nothing else runs on this machine.
const QUIET: &str = "MILLSTREAM_QUIET";

#[test]
fn a_client_that_asks_seldom_waits_no_longer_beside_floods() {
    if std::env::var_os(QUIET).is_none() || !may_become(FIRST_USER) {
        return println!("skipped: {QUIET} is not set, or this user can't become another one");
    }
    let Some(daemon) = reachable(With::Bpf, &[]) else { return };
    let seldom: Client = as_user(100, || daemon.client());
    let median = || {
        let mut times: Vec<Duration> = (0..201)
            .map(|_| {
                thread::sleep(Duration::from_millis(50));
                pass(&seldom)
            })
            .collect();
        times.sort_unstable();
        times[100]
    };
    println!("alone: {:?}", median());
    // The kernel refuses these messages at once. They keep a processor busy as a flood of requests does, but take none of the
    // daemon's time.
    let beside = |sockets: Vec<File>| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = Ends(&over);
            let over = &over;
            scope.spawn(move || flood(&sockets, over));
            median()
        })
    };
    let work = beside(vec![closed()]);
    println!("beside a thread that sends to itself: {work:?}");
    for users in [1, 9] {
        let connections = if users == 1 { 1 } else { 100 };
        let open = |user| as_user(user, || (0..connections).map(|_| daemon.connection()).collect::<Vec<_>>());
        let flooded = beside((0..users).flat_map(open).collect());
        println!("beside {users} users with {connections} connections each that ask without end: {flooded:?}");
        assert!(flooded <= 2 * work, "{flooded:?} and {work:?}");
    }
}

/// Returns a socket that is full and that nothing reads.
fn closed() -> File {
    let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    while ours.send(&[0; 8]).is_ok() {}
    std::mem::forget(theirs);
    File::from(std::os::fd::OwnedFd::from(ours))
}

#[test]
fn a_refused_newcomer_gets_the_reason() {
    let Some(daemon) = reachable(With::FallBacks, &["--connections", "3"]) else { return };
    // `client` tries again while it is refused: the daemon may not have closed an earlier connection of this test yet.
    let clients: Vec<Client> = std::iter::repeat_with(|| daemon.client()).take(3).collect();
    let refused = Client::connect_to(&daemon.socket()).unwrap_err();
    let Refused::Declined { reason } = &refused else { panic!("{refused}") };
    assert!(reason.contains("has 3 connections already") && reason.contains("--connections"), "{reason}");
    assert!(refused.to_string().contains(reason), "{refused}");
    if may_become(FIRST_USER) {
        pass(&as_user(0, || daemon.client()));
    }
    clients.iter().for_each(|client| _ = pass(client));
    drop(clients);
    pass(&daemon.client());
}

/// Starts a daemon to which other users can connect.
fn reachable(with: With, args: &[&str]) -> Option<Daemon> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    Daemon::start_with(folder, with, args)
}

/// Sends requests on all these sockets, whether the daemon reads them or not.
fn flood(sockets: &[File], over: &AtomicBool) {
    let request = Request { virtual_time: u64::MAX, cpus: Vec::new() }.to_bytes();
    for socket in sockets {
        // SAFETY: fcntl takes integers, on a descriptor of this process.
        unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    }
    while !over.load(Relaxed) {
        for mut socket in sockets {
            let _full = socket.write(&request);
        }
    }
}

/// Observes the daemon's processor time until it has kept to its share for a while. This may take several attempts: if other
/// programs slow the daemon's processor down, the same work may take more time than the share allows.
fn assert_within(daemon: &Daemon, percent: f64) {
    const WINDOWS: usize = 5;
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        let (begun, before) = (Instant::now(), used(daemon));
        thread::sleep(Duration::from_secs(2));
        let (used, gone) = (used(daemon) - before, begun.elapsed());
        println!("{}: {used:?} of processor time in {gone:?}", daemon.about.trim());
        if used < gone.mul_f64(percent / 100.0) + SAVED {
            return;
        }
        windows.push((used, gone));
    }
    panic!("{}: {windows:?}", daemon.about);
}

/// Returns the processor time that the daemon has used.
fn used(daemon: &Daemon) -> Duration {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both calls write to a local variable of the type that they expect.
    unsafe {
        assert_eq!(libc::clock_getcpuclockid(daemon.process() as libc::pid_t, &raw mut clock), 0);
        assert_eq!(libc::clock_gettime(clock, &raw mut time), 0);
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn may_become(user: u32) -> bool {
    thread::spawn(move || become_user(user)).join().unwrap()
}

/// Changes the user of this thread alone. Returns whether the kernel permits it.
fn become_user(user: u32) -> bool {
    let unchanged = u32::MAX;
    // SAFETY: the system call takes integers. Unlike the C library's function, it affects only the calling thread.
    unsafe { libc::syscall(libc::SYS_setresuid, unchanged, user, unchanged) == 0 }
}

/// Runs `work` in a thread that changes to another user, if the kernel permits it.
fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let work = move || {
            let _may = become_user(FIRST_USER + user);
            work()
        };
        scope.spawn(work).join().unwrap()
    })
}

impl Daemon {
    /// Returns a connection without a client, as a file.
    pub(crate) fn connection(&self) -> File {
        seqpacket(&self.socket())
    }
}

/// Connects, and waits until the daemon has room for the connection.
fn seqpacket(path: &Path) -> File {
    // SAFETY: the address consists of zeros and a path that fits, and it outlives the call; the descriptor is new and has no
    // other owner.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as _;
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = *from as _;
        }
        let outcome = libc::connect(socket, (&raw const address).cast(), size_of_val(&address) as u32);
        assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
        File::from_raw_fd(socket)
    }
}
