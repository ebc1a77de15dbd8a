//! The rows on Millstream's fibers.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use millstream_fiber::net::TcpListener;
use millstream_fiber::sync::{Event, channel};
use millstream_fiber::{Options, Runtime, Threads, park, spawn, yield_now};

use super::alone::{per_step, waiting};
use super::row::{RING, Row, STACKS};

/// The number of frames of [`Row::Deep`], as in the comparison of Ruby's threads that the crate's docs mention.
const DEEP: u32 = 100;

fn start(workers: usize) -> Runtime {
    let threads = if workers == 1 { Threads::One } else { Threads::Workers(workers) };
    let options = Options::new(threads).max_fibers(usize::MAX).on_report(|_| {});
    Runtime::start(options).expect("the system has a thread")
}

fn in_fiber(runtime: &Runtime, body: impl FnOnce() -> f64 + Send + 'static) -> f64 {
    runtime.spawn(body).join().expect("the measured body does not fail")
}

pub(super) fn run(row: Row, count: u64, workers: usize) -> Option<f64> {
    let runtime = start(workers);
    let figure = match row {
        Row::Yield => in_fiber(&runtime, move || yields(2, count)),
        Row::Rotate => in_fiber(&runtime, move || yields(STACKS.min(count as usize), count)),
        Row::Hop => hop(&runtime, count, 0),
        Row::Deep => hop(&runtime, count, DEEP),
        Row::Spawn => in_fiber(&runtime, move || {
            per_step(count, || (0..count).for_each(|n| assert!(spawn(move || n).join().is_ok())))
        }),
        Row::Fresh => in_fiber(&runtime, move || {
            per_step(count, || {
                let release = Arc::new(Event::new());
                let wait = |_| {
                    let release = Arc::clone(&release);
                    spawn(move || release.wait())
                };
                let fibers: Vec<_> = (0..count).map(wait).collect();
                yield_now();
                release.set();
                fibers.into_iter().for_each(|fiber| fiber.join().expect("it only waits"));
            })
        }),
        _ => return None,
    };
    // The process ends, so a million fibers are not unwound.
    std::mem::forget(runtime);
    Some(figure)
}

/// `count` yields by fibers in turn. All fibers start before the clock does, and end after it has stopped.
fn yields(fibers: usize, count: u64) -> f64 {
    let (each, started) = (count / fibers as u64, Arc::new(AtomicUsize::new(0)));
    let (go, done) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let finished = Arc::new(AtomicUsize::new(0));
    for _ in 0..fibers {
        let (started, finished) = (Arc::clone(&started), Arc::clone(&finished));
        let (go, done) = (Arc::clone(&go), Arc::clone(&done));
        drop(spawn(move || {
            started.fetch_add(1, Relaxed);
            go.wait();
            (0..each).for_each(|_| yield_now());
            if finished.fetch_add(1, Relaxed) + 1 == fibers {
                done.set();
            }
        }));
    }
    while started.load(Relaxed) < fibers {
        yield_now();
    }
    per_step(each * fibers as u64, || {
        go.set();
        done.wait();
    })
}

/// Calls `work` below `frames` frames.
#[inline(never)]
fn below(frames: u32, work: &mut dyn FnMut()) {
    if frames == 0 {
        return work();
    }
    let frame = black_box([frames; 16]);
    below(frames - 1, work);
    black_box(&frame);
}

fn hop(runtime: &Runtime, count: u64, frames: u32) -> f64 {
    let rounds = count / RING as u64 + 1;
    let (first, mut inbox) = channel(1);
    for _ in 0..RING {
        let (outbox, next) = channel(1);
        let receiver = std::mem::replace(&mut inbox, next);
        drop(runtime.spawn(move || {
            below(frames, &mut || {
                receiver.iter().for_each(|token: u64| outbox.send(token).expect("the ring is whole"));
            });
        }));
    }
    in_fiber(runtime, move || {
        // The first round starts the fibers.
        first.send(0).expect("the ring is whole");
        assert_eq!(inbox.recv(), Ok(0));
        per_step(rounds * RING as u64, || {
            for round in 0..rounds {
                first.send(round).expect("the ring is whole");
                assert_eq!(inbox.recv(), Ok(round));
            }
        })
    })
}

pub(super) fn parked(count: u64) -> Vec<f64> {
    let runtime = start(1);
    waiting(count, || {
        let mut fibers: Vec<_> = (0..count).map(|_| runtime.spawn(park)).collect();
        // Fibers start in order, so when the last one has ended, all have started.
        let last = fibers.pop().expect("there are some");
        last.fiber().unpark();
        last.join().expect("it only parks");
        (fibers, runtime)
    })
}

pub(super) fn serve(listener: net::TcpListener, workers: usize) {
    let runtime = start(workers);
    let listener = TcpListener::from_std(listener).expect("a listener");
    runtime.spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nodelay(true).expect("a connection");
            spawn(move || {
                let mut buf = [0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buf) {
                    if stream.write_all(&buf[..bytes]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    runtime.finish();
}
