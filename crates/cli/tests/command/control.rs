//! The control socket with hostile and careless peers: floods, half requests, unread answers, other runs at the same
//! path, and impostors in place of servers.

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::steer::{GATE, gated, stop};
use crate::support::{PATIENCE, Room, ended, until};

const STATUS: &[u8] = b"{\"do\":\"status\"}\n";

#[test]
fn a_run_takes_no_other_runs_socket_away() {
    let room = Room::new(GATE);
    let control = room.path("control");
    let path = control.to_str().unwrap();
    let mut first = gated(&room, &["--control", path]);
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "--control", path]), 2);
    assert!(err.contains("control socket of a run that is still there"), "{err}");
    assert_eq!(room.status(path)["flow"], "gate", "the first is still reached");
    // A user removes the socket, and a second run uses the path.
    fs::remove_file(&control).unwrap();
    let second = room.start(&["run", "flow.toml", "in", "--control", path]);
    first.signal(libc::SIGINT);
    first.line_with("interrupted");
    first.signal(libc::SIGINT);
    let (_, _, err) = first.end();
    assert!(control.exists(), "it is the second run's: {err}");
    assert_eq!(room.status(path)["flow"], "gate");
    stop(&room, second, 0);
    assert!(!control.exists());
}

#[test]
fn clients_that_drip_or_flood_delay_neither_run_nor_clients() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let path = running.control.to_str().unwrap();
    let connect = || UnixStream::connect(&running.control).unwrap();
    let (is_over, pid) = (AtomicBool::new(false), running.child.id());
    thread::scope(|scope| {
        // This thread sends incomplete requests, one byte at a time.
        scope.spawn(|| {
            let mut drips: Vec<_> = (0..80).map(|_| connect()).collect();
            while !is_over.load(Ordering::Relaxed) {
                drips.retain_mut(|drip| drip.write_all(b" ").is_ok());
                thread::sleep(Duration::from_millis(50));
            }
        });
        // The clients of this thread send requests and never read.
        scope.spawn(|| {
            let mut deaf: Vec<_> = (0..10).map(|_| connect()).collect();
            for client in &deaf {
                client.set_nonblocking(true).unwrap();
            }
            let asked = STATUS.repeat(100);
            while !is_over.load(Ordering::Relaxed) {
                deaf.retain_mut(|client| match client.write(&asked) {
                    Ok(_) => true,
                    Err(error) => error.kind() == ErrorKind::WouldBlock,
                });
                thread::sleep(Duration::from_millis(5));
            }
        });
        // This thread opens ten thousand connections, a hundred at once.
        scope.spawn(|| {
            let mut open = VecDeque::new();
            for number in 0..10_000 {
                let mut client = connect();
                if number % 2 == 0 {
                    let _ = client.write_all(b"{\"do\":");
                }
                open.push_back(client);
                if open.len() > 100 {
                    open.pop_front();
                }
            }
        });
        let mut descriptors = 0;
        for _ in 0..10 {
            let mut tries = 0;
            // During a flood, a new client may be refused, but must succeed after some attempts.
            until("the run answers", || {
                tries += 1;
                room.run(&["status", path]).status.success()
            });
            assert!(tries < 20, "it took {tries} tries");
            descriptors = descriptors.max(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count());
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(descriptors < 64 + 40, "{descriptors} files are open");
    });
    assert_eq!(room.status(path)["phase"], "running");
    stop(&room, running, 0);
}

#[test]
fn the_end_of_a_run_closes_connections_cleanly() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let mut clients: Vec<_> = (0..20).map(|_| UnixStream::connect(&running.control).unwrap()).collect();
    for client in &mut clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"{\"do\":").unwrap();
    }
    stop(&room, running, 0);
    for mut client in clients {
        assert_eq!(client.read_to_end(&mut Vec::new()).expect("closed, not reset"), 0);
    }
}

#[test]
fn the_client_gives_up_on_a_server_that_drips_or_never_ends_its_answer() {
    let room = Room::new(GATE);
    for (name, pause, expected) in [
        ("drip", Duration::from_millis(200), "does not answer within 10 s"),
        ("endless", Duration::ZERO, "a line is longer than"),
        ("short", Duration::MAX, "ended before it answered"),
    ] {
        let listener = UnixListener::bind(room.path(name)).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let bytes: &[u8] = if pause.is_zero() { &[b' '; 65_536] } else { b" " };
            while stream.write_all(bytes).is_ok() && pause != Duration::MAX {
                thread::sleep(pause);
            }
            // The client's request is read before the stream is closed. Otherwise the client would see a reset.
            let _ = stream.read(&mut [0; 100]);
        });
        let (_, err) = ended(&room.run(&["status", &format!("./{name}")]), 2);
        assert!(err.contains(expected), "{name}: {err}");
        server.join().unwrap();
    }
}

#[test]
fn hung_runs_are_listed_beside_those_that_answer() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let own = std::process::id();
    let folder = running.control.parent().unwrap();
    let hanging: Vec<_> =
        (0..3).map(|number| UnixListener::bind(folder.join(format!("hangs{number}-{own}"))).unwrap()).collect();
    let (out, err) = ended(&room.run(&["status"]), 0);
    assert!(out.contains("gate-"), "{out}");
    assert_eq!(err.matches("does not answer within").count(), hanging.len(), "{err}");
    stop(&room, running, 0);
}
