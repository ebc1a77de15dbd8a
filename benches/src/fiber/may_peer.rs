//! The rows on coroutines of the crate `may`.

use std::io::{Read, Write};
use std::net;
use std::os::fd::{FromRawFd, IntoRawFd};

use may::coroutine::{JoinHandle, spawn, yield_now};
use may::net::TcpListener;
use may::sync::mpsc::channel;

use super::alone::per_step;
use super::row::{RING, Row};

fn configure(workers: usize) {
    // The unit of the stack size is a word, so this is 64 KiB.
    may::config().set_workers(workers).set_stack_size(8 << 10);
}

fn begin<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the body uses no thread local across a wait, and little stack.
    unsafe { spawn(body) }
}

fn inside(body: impl FnOnce() -> f64 + Send + 'static) -> f64 {
    begin(body).join().expect("the measured body does not fail")
}

pub(super) fn run(row: Row, count: u64, workers: usize) -> Option<f64> {
    configure(workers);
    Some(match row {
        Row::Yield => inside(move || {
            per_step(count, || {
                let yields = move || (0..count / 2).for_each(|_| yield_now());
                let other = begin(yields);
                yields();
                other.join().expect("it only yields");
            })
        }),
        Row::Hop => hop(count),
        Row::Spawn => {
            inside(move || per_step(count, || (0..count).for_each(|n| assert!(begin(move || n).join().is_ok()))))
        }
        Row::Fresh => inside(move || {
            per_step(count, || {
                let all: Vec<_> = (0..count).map(|n| begin(move || n)).collect();
                all.into_iter().for_each(|one| assert!(one.join().is_ok()));
            })
        }),
        _ => return None,
    })
}

fn hop(count: u64) -> f64 {
    let rounds = count / RING as u64 + 1;
    let (first, mut inbox) = channel::<u64>();
    for _ in 0..RING {
        let (outbox, next) = channel();
        let receiver = std::mem::replace(&mut inbox, next);
        begin(move || receiver.iter().try_for_each(|token| outbox.send(token)));
    }
    inside(move || {
        let round = || {
            first.send(0).expect("the ring is whole");
            inbox.recv().expect("the ring is whole");
        };
        round();
        per_step(rounds * RING as u64, || (0..rounds).for_each(|_| round()))
    })
}

pub(super) fn serve(listener: &net::TcpListener, workers: usize) {
    configure(workers);
    let own = listener.try_clone().expect("a descriptor").into_raw_fd();
    // SAFETY: the descriptor is a listener's that nothing else owns.
    let listener = unsafe { TcpListener::from_raw_fd(own) };
    let accept = begin(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nodelay(true).expect("a connection");
            begin(move || {
                let mut buf = [0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buf) {
                    if stream.write_all(&buf[..bytes]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    accept.join().expect("the server does not fail");
}
