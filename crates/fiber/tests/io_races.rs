//! Tests of cancellations that race with data: no byte is lost, and no descriptor leaks.

#[path = "support/io_models.rs"]
mod io_models;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use io_models::IO_MODELS;
use millstream_fiber::net::{TcpListener, TcpStream, UnixStream};
use millstream_fiber::{IoModel, JoinError, Options, Runtime, Threads, yield_now};
use millstream_verify_random::{Random, stress};

/// One test at a time, since one of them counts the process's descriptors.
static TURN: Mutex<()> = Mutex::new(());

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Starts readers one after the other and cancels each. Each reader continues where the one before was unwound. A call that has
/// taken data never unwinds, so the numbers must arrive without a gap.
fn read_through_cancellations(runtime: &Runtime, random: &mut Random, values: u64) {
    let (mut writer, reader) = UnixStream::pair().unwrap();
    let feed = runtime.spawn(move || {
        for value in 0..values {
            writer.write_all(&value.to_le_bytes()).unwrap();
            if value % 3 == 0 {
                yield_now();
            }
        }
    });
    let (reader, next) = (Arc::new(reader), Arc::new(AtomicU64::new(0)));
    while next.load(SeqCst) < values {
        let (source, expected) = (Arc::clone(&reader), Arc::clone(&next));
        let fiber = runtime.spawn(move || {
            let mut word = [0; 8];
            while expected.load(SeqCst) < values {
                let bytes = (&*source).read(&mut word).unwrap();
                assert_eq!(bytes, 8, "a stream of whole words is read by words");
                assert_eq!(u64::from_le_bytes(word), expected.fetch_add(1, SeqCst));
            }
        });
        for _ in 0..random.below(200) {
            std::hint::spin_loop();
        }
        if random.below(2) == 0 {
            std::thread::yield_now();
        }
        fiber.cancel();
        match fiber.join() {
            Ok(()) | Err(JoinError::Cancelled) => {}
            Err(other) => panic!("{other}"),
        }
    }
    feed.join().unwrap();
}

#[test]
fn a_cancelled_read_loses_no_data() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for io in IO_MODELS {
        for threads in [Threads::OneEach, Threads::One, Threads::Workers(2)] {
            // A blocking wait notices a cancellation only when its slice of time ends.
            let values = if io == IoModel::Blocking { 100 } else { 3000 };
            let seed = millstream_verify_random::seed();
            println!("{io:?}, {threads:?}, seed {seed}");
            let runtime = Runtime::start(Options::new(threads).io(io)).unwrap();
            read_through_cancellations(&runtime, &mut Random::new(seed), values * stress());
        }
    }
}

#[test]
fn connections_that_are_cancelled_at_any_moment_leave_no_descriptor() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = open_descriptors();
    for io in [IoModel::NonBlocking, IoModel::Readiness, IoModel::Completion] {
        let seed = millstream_verify_random::seed();
        println!("{io:?}, seed {seed}");
        let mut random = Random::new(seed);
        let runtime = Runtime::start(Options::new(Threads::Workers(2)).io(io)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = runtime.spawn(move || {
            for stream in listener.incoming() {
                // A peer may have gone before its connection is accepted.
                let Ok(mut stream) = stream else { continue };
                millstream_fiber::spawn(move || {
                    let mut buf = [0; 64];
                    while let Ok(1..) = stream.read(&mut buf) {
                        if stream.write_all(&buf).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        for _ in 0..40 * stress() {
            let clients: Vec<_> = (0..8)
                .map(|_| {
                    runtime.spawn(move || {
                        let Ok(mut stream) = TcpStream::connect_to(&address) else { return };
                        let mut answer = [0; 64];
                        for _ in 0..3 {
                            if stream.write_all(&[7; 64]).is_err() || stream.read_exact(&mut answer).is_err() {
                                return;
                            }
                            assert_eq!(answer, [7; 64]);
                        }
                    })
                })
                .collect();
            for client in &clients {
                for _ in 0..random.below(300) {
                    std::hint::spin_loop();
                }
                client.cancel();
            }
            for client in clients {
                assert!(matches!(client.join(), Ok(()) | Err(JoinError::Cancelled)));
            }
        }
        server.cancel();
        drop(server);
    }
    assert_eq!(open_descriptors(), before);
}

#[test]
fn the_handle_of_a_fiber_that_has_ended_keeps_no_descriptor() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for io in IO_MODELS {
        let before = open_descriptors();
        let runtime = Runtime::start(Options::new(Threads::OneEach).io(io)).unwrap();
        let wait = || {
            let (mut quiet, _peer) = UnixStream::pair().unwrap();
            quiet.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            assert!(quiet.read(&mut [0]).is_err());
        };
        let handles: Vec<_> = (0..20).map(|_| runtime.spawn(wait)).collect();
        let begun = Instant::now();
        // Under `OneEach`, a thread closes its poller a little after the end of its fiber.
        while runtime.live_fibers() > 0 || open_descriptors() > before {
            assert!(begun.elapsed() < Duration::from_secs(120), "{io:?}: {before}, now {}", open_descriptors());
            std::thread::yield_now();
        }
        drop(handles);
    }
}
