//! Fault injection under every model: calls are interrupted, delayed, cut short, or fail.

use std::io::{self, Read, Write};
use std::net::{self as std_net, Shutdown};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use millstream_verify_random::{Random, seed, stress};
use parking_lot::{Mutex, MutexGuard};

use super::fault::{FAILURE, Plan, calls};
use crate::fs::File;
use crate::net::{TcpListener, TcpStream};
use crate::{IoModel, Options, PollFd, PollFlags, Runtime, Threads, poll, sleep, spawn, yield_now};

const MODELS: [IoModel; 4] = [IoModel::Blocking, IoModel::NonBlocking, IoModel::Readiness, IoModel::Completion];

/// A plan of faults is valid for the whole process, so the tests of this module run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

fn is_planned(error: &io::Error) -> bool {
    error.to_string() == FAILURE
}

/// Sends bytes through a connection and back, and returns whether all came back. If one side fails, the other side ends as well.
fn round_trip(runtime: &Runtime, sent: Vec<u8>) -> io::Result<bool> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = runtime.spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut buf = [0; 512];
        loop {
            match stream.read(&mut buf)? {
                0 => return Ok(()),
                bytes => stream.write_all(&buf[..bytes])?,
            }
        }
    });
    let client = runtime.spawn(move || -> io::Result<bool> {
        let stream = TcpStream::connect_to(&address)?;
        let mut got = Vec::new();
        crate::scope(|scope| {
            let writer = scope.spawn(|| {
                let written = (&stream).write_all(&sent);
                stream.shutdown(Shutdown::Write).and(written)
            });
            let read = (&stream).read_to_end(&mut got);
            if read.is_err() {
                // The client no longer reads. Without this call, the writer could wait forever for room.
                let _ = stream.shutdown(Shutdown::Both);
            }
            first_cause(read.map(drop), writer.join().expect("the writer does not panic"))
        })?;
        Ok(got == sent)
    });
    let client = client.join().unwrap();
    if client.is_err() {
        // Without this call, the server could wait forever for a connection.
        server.cancel();
    }
    let server = server.join().unwrap_or(Ok(()));
    let is_whole = *client.as_ref().unwrap_or(&false);
    first_cause(client.map(drop), server).map(|()| is_whole)
}

/// Returns the injected failure, if one side has failed with it and the other side has seen its peer vanish.
fn first_cause(one: io::Result<()>, other: io::Result<()>) -> io::Result<()> {
    match (one, other) {
        (Err(error), Err(planned)) if is_planned(&planned) => {
            assert!(!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted), "{error}");
            Err(planned)
        }
        (one, other) => one.and(other),
    }
}

#[test]
fn bytes_arrive_or_the_failure_is_reported() {
    let _alone = alone();
    let mut random = Random::new(seed());
    for io in MODELS {
        let runtime = Runtime::start(Options::new(Threads::Workers(2)).io(io)).unwrap();
        let (mut whole, mut failed) = (0, 0);
        for _ in 0..20 * stress() {
            let plan_seed = random.next();
            let length = random.below(6000) as usize;
            let plan = Plan::begin(plan_seed);
            match round_trip(&runtime, (0..length).map(|n| (n * 31) as u8).collect()) {
                Ok(is_whole) => {
                    assert!(is_whole, "{io:?}, plan {plan_seed}: bytes are missing or others");
                    whole += 1;
                }
                Err(error) => {
                    assert!(is_planned(&error), "{io:?}, plan {plan_seed}: {error}");
                    failed += 1;
                }
            }
            drop(plan);
        }
        println!("{io:?}: {whole} whole, {failed} failed");
        files_are_whole(&runtime, random.next());
    }
}

#[test]
fn a_poll_reports_the_event_or_the_failure() {
    let _alone = alone();
    let mut random = Random::new(seed());
    for io in MODELS {
        let runtime = Runtime::start(Options::new(Threads::Workers(2)).io(io)).unwrap();
        for _ in 0..50 * stress() {
            let plan_seed = random.next();
            let plan = Plan::begin(plan_seed);
            let poller = runtime.spawn(|| {
                let ((reader, mut writer), (silent, _silent)) = (std::io::pipe()?, std::io::pipe()?);
                let writing = spawn(move || {
                    yield_now();
                    writer.write_all(b"x").map(|()| writer)
                });
                let mut fds = [PollFd::new(&silent, PollFlags::IN), PollFd::new(&reader, PollFlags::IN)];
                let polled = poll(&mut fds, Some(Duration::from_secs(60)));
                // The pipe stays open until here: a poll that sees the byte and the end together may report only the end.
                let _writer = writing.join().unwrap()?;
                Ok((polled?, fds.map(|fd| fd.revents())))
            });
            match poller.join().unwrap() {
                Ok(told) => assert_eq!(told, (1, [PollFlags::empty(), PollFlags::IN]), "{io:?}, plan {plan_seed}"),
                Err(error) => assert!(is_planned(&error), "{io:?}, plan {plan_seed}: {error}"),
            }
            drop(plan);
        }
    }
}

/// Checks that a file is written and read completely even though individual calls are short.
fn files_are_whole(runtime: &Runtime, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let plan = Plan::begin(seed);
    let fiber = runtime.spawn(move || {
        let content: Vec<u8> = (0..3000_u32).map(|n| (n % 253) as u8).collect();
        File::create(&path).unwrap().write_all(&content).unwrap();
        let mut got = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut got).unwrap();
        assert!(got == content);
    });
    fiber.join().unwrap();
    drop(plan);
}

#[test]
fn a_stream_that_a_read_has_emptied_is_waited_for_without_another_read() {
    let _alone = alone();
    const ROUNDS: u64 = 200;
    let runtime = Runtime::start(Options::new(Threads::One).io(IoModel::Readiness)).unwrap();
    let made = runtime.spawn(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect_to(&listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let echo = spawn(move || {
            let mut buf = [0; 4096];
            while let Ok(bytes @ 1..) = server.read(&mut buf) {
                server.write_all(&buf[..bytes]).unwrap();
            }
        });
        let before = calls();
        for _ in 0..ROUNDS {
            client.write_all(&[7; 64]).unwrap();
            let mut buf = [0; 4096];
            assert_eq!(client.read(&mut buf).unwrap(), 64);
        }
        let made = calls() - before;
        drop(client);
        echo.join().unwrap();
        made
    });
    let made = made.join().unwrap();
    assert!((4 * ROUNDS..4 * ROUNDS + 20).contains(&made), "two reads and two writes a round: {made} calls");
}

/// Sends `bytes` in random pieces, some after a pause or an urgent `!`, and ends the stream.
fn send_in_pieces(mut peer: &std_net::TcpStream, mut bytes: &[u8], mut random: Random) {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(1 + random.below(40) as usize));
        bytes = rest;
        match random.below(6) {
            0 => std::thread::sleep(Duration::from_micros(random.below(300))),
            1 => {
                rustix::net::send(peer, b"!", rustix::net::SendFlags::OOB).unwrap();
            }
            _ => {}
        }
        peer.write_all(piece).unwrap();
    }
    if random.below(2) == 0 {
        std::thread::sleep(Duration::from_micros(random.below(300)));
    }
    peer.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn readers_see_every_byte_and_the_end_whatever_came_together() {
    let _alone = alone();
    let mut random = Random::new(seed());
    for threads in [Threads::One, Threads::Workers(2)] {
        let runtime = Runtime::start(Options::new(threads).io(IoModel::Readiness)).unwrap();
        for _ in 0..10 * stress() {
            let listener = std_net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let readers: Vec<_> = (0..8)
                .map(|_| {
                    let mut random = Random::new(random.next());
                    runtime.spawn(move || {
                        let mut stream = TcpStream::connect_to(&address).unwrap();
                        let pause = move |_| match random.below(8) {
                            0 => yield_now(),
                            1 => sleep(Duration::from_micros(random.below(500))),
                            _ => {}
                        };
                        read_to_end_soon(&mut stream, pause)
                    })
                })
                .collect();
            let sent: Vec<u8> = (0..random.below(2000)).map(|n| b'a' + (n % 26) as u8).collect();
            let peers: Vec<_> = readers.iter().map(|_| listener.accept().unwrap().0).collect();
            std::thread::scope(|scope| {
                for peer in &peers {
                    let (random, sent) = (Random::new(random.next()), &sent);
                    scope.spawn(move || send_in_pieces(peer, sent, random));
                }
            });
            for reader in readers {
                let mut got = reader.join().unwrap();
                // An urgent byte becomes an ordinary byte of the stream if another urgent one follows it soon.
                got.retain(|&byte| byte != b'!');
                assert!(got == sent, "bytes are missing or wrong");
            }
        }
    }
}

/// Reads to the end of a stream, and calls `pause` with the number of bytes so far after each read. Fails if a read waits
/// although there is something to read. Such a read succeeds only at its time limit, when the call is tried once more.
fn read_to_end_soon(stream: &mut TcpStream, mut pause: impl FnMut(usize)) -> Vec<u8> {
    let limit = Duration::from_secs(20);
    stream.set_read_timeout(Some(limit)).unwrap();
    let (mut got, mut buf) = (Vec::new(), [0; 64]);
    loop {
        let began = Instant::now();
        let bytes = stream.read(&mut buf).unwrap();
        assert!(began.elapsed() < limit, "a read has overslept {bytes} bytes");
        match bytes {
            0 => return got,
            bytes => got.extend_from_slice(&buf[..bytes]),
        }
        pause(got.len());
    }
}

#[test]
fn a_read_that_fills_its_buffer_is_followed_by_another() {
    let _alone = alone();
    let runtime = Runtime::start(Options::new(Threads::One).io(IoModel::Readiness)).unwrap();
    let listener = std_net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut peer, sent) = (std_net::TcpStream::connect(address).unwrap(), vec![7; 1000]);
    let accepted = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
    let ended = peer.try_clone().unwrap();
    let expected = sent.len();
    let reader = runtime.spawn(move || {
        let mut stream = accepted;
        // The peer ends the stream only after all of it has been read, so the end is never reported together with bytes.
        read_to_end_soon(&mut stream, |got| {
            if got == expected {
                ended.shutdown(Shutdown::Write).unwrap();
            }
        })
    });
    // By the end of this pause the reader is waiting. The conclusion under test needs a read that has waited.
    std::thread::sleep(Duration::from_millis(20));
    peer.write_all(&sent).unwrap();
    assert_eq!(reader.join().unwrap(), sent);
}

/// A clone keeps its registration in the poller after the original has been closed and another stream has got its number.
#[test]
fn events_of_an_earlier_owner_of_the_number_say_nothing_about_a_stream() {
    let _alone = alone();
    let runtime = Runtime::start(Options::new(Threads::One).io(IoModel::Readiness)).unwrap();
    let listener = std_net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let fiber = runtime.spawn(move || {
        let mut earlier = TcpStream::connect_to(&address).unwrap();
        let (mut earlier_peer, _) = listener.accept().unwrap();
        earlier_peer.write_all(b"hello").unwrap();
        assert_eq!(earlier.read(&mut [0; 64]).unwrap(), 5);
        let clone = earlier.try_clone().unwrap();
        let number = earlier.as_raw_fd();
        for _ in 0..50 {
            drop(earlier);
            let mut later = TcpStream::connect_to(&address).unwrap();
            assert_eq!(later.as_raw_fd(), number);
            let (mut later_peer, _) = listener.accept().unwrap();
            let reader = spawn(move || (read_to_end_soon(&mut later, |_| ()), later));
            yield_now();
            // By now the reader is waiting. One turn gets three events: the bytes and the end of its stream, and then the bytes
            // of the earlier stream.
            later_peer.write_all(b"all").unwrap();
            drop(later_peer);
            earlier_peer.write_all(b"more").unwrap();
            let (got, later) = reader.join().unwrap();
            assert_eq!(got, b"all");
            earlier = later;
        }
        drop(clone);
    });
    fiber.join().unwrap();
}
