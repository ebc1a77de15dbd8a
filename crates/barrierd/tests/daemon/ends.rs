//! Tests that end clients or the daemon in the middle of their work.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use millstream_fence::barrierd::{Gone, Refused};

use crate::support::{Daemon, LIMIT, With, pass};

#[test]
fn killed_clients_are_forgotten() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let client = daemon.client();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.process())).unwrap().count();
    pass(&client);
    let before = open();
    for _ in 0..20 {
        // SAFETY: the child only makes system calls on its own memory until it is killed. It takes no lock that a thread of its
        // parent may have held at the fork.
        unsafe {
            let mut ready = [0; 2];
            assert_eq!(libc::pipe2(ready.as_mut_ptr(), libc::O_CLOEXEC), 0);
            let child = libc::fork();
            if child == 0 {
                let outcome = std::panic::catch_unwind(|| {
                    let client = daemon.client();
                    client.ask(client.now());
                    libc::write(ready[1], [1_u8].as_ptr().cast(), 1);
                    loop {
                        let _ = client.wait(client.now(), Instant::now() + LIMIT);
                    }
                });
                libc::_exit(i32::from(outcome.is_err()));
            }
            // The parent must not keep this end open: otherwise it would not notice that the child has ended early.
            libc::close(ready[1]);
            let mut byte = 0_u8;
            assert_eq!(libc::read(ready[0], (&raw mut byte).cast(), 1), 1);
            libc::kill(child, libc::SIGKILL);
            assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
            libc::close(ready[0]);
        }
    }
    pass(&client);
    let begun = Instant::now();
    while open() > before {
        assert!(begun.elapsed() < LIMIT, "descriptors of dead clients stay open");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_notices_within_the_bound_that_the_daemon_was_killed() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        pass(&client);
        assert!(client.is_alive());
        drop(daemon.kill());
        assert!(!client.is_alive());
        // Earlier statements can still be read, and there are no new ones.
        let since = client.now();
        let begun = Instant::now();
        // A wait takes at most 20 ms, unless the machine keeps its thread from running.
        let gone = (0..3).find_map(|_| {
            let gone = client.wait(since, Instant::now() + LIMIT).err();
            assert!(gone.is_some() || !client.has_passed(since) || with == With::Bpf);
            gone
        });
        assert_eq!(gone, Some(Gone), "{with:?}");
        assert!(begun.elapsed() < LIMIT / 2, "{with:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_sleeper_wakes_when_the_daemon_is_killed() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let client = daemon.client();
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            loop {
                if client.wait(client.now(), Instant::now() + LIMIT).is_err() {
                    return;
                }
            }
        });
        thread::sleep(Duration::from_millis(30));
        drop(daemon.kill());
        let begun = Instant::now();
        sleeper.join().unwrap();
        // If a wake-up were missed, the client would sleep for the whole time.
        assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_new_daemon_takes_the_folder_and_old_clients_keep_their_page() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let old = daemon.client();
    pass(&old);
    let process = daemon.process();
    let folder = daemon.kill();
    let before = old.view().page().least_virtual.load(Relaxed);
    let daemon = Daemon::start_in(folder, With::FallBacks, &[]);
    let new = daemon.client();
    pass(&new);
    assert_eq!(old.view().page().least_virtual.load(Relaxed), before, "no process writes to the old page");
    assert_eq!((old.view().page().daemon, new.view().page().daemon), (process, daemon.process()));
    assert!(!old.is_alive() && new.is_alive());
}

#[test]
fn an_invalid_message_ends_only_its_connection() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let client = daemon.client();
    assert!(UnixStream::connect(daemon.socket()).is_err(), "another kind of socket");
    for message in [&[][..], &[1; 7], &[0xff; 8], &[0xff; 4000]] {
        let mut socket = seqpacket(&daemon);
        let mut greeting = [0; 64];
        assert!(socket.read(&mut greeting).unwrap() > 0);
        let _ = socket.write(message);
        pass(&client);
    }
}

#[test]
fn a_folder_without_a_daemon_refuses() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let folder = daemon.kill();
    let refused = millstream_fence::barrierd::Client::connect_to(&folder.path().join("socket")).unwrap_err();
    assert!(matches!(refused, Refused::NoDaemon { .. }), "{refused}");
}

/// Returns a connection without a client, as a file.
fn seqpacket(daemon: &Daemon) -> std::fs::File {
    use std::os::fd::FromRawFd;
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the address consists of zeros and a path that fits, and it outlives the call; the descriptor is new and has no
    // other owner.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as _;
        let path = daemon.socket();
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = *from as _;
        }
        assert_eq!(libc::connect(socket, (&raw const address).cast(), size_of_val(&address) as u32), 0);
        std::fs::File::from_raw_fd(socket)
    }
}
