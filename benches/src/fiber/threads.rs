//! The rows on threads of the system.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::alone::per_step;
use super::row::{RING, Row};

/// A thread's step takes up to a thousand times as long as a fiber's, so fewer steps suffice.
const FEWER: u64 = 20;

pub(super) fn run(row: Row, count: u64) -> Option<f64> {
    let count = (count / FEWER).max(2);
    Some(match row {
        Row::Yield => per_step(count, || {
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..count / 2).for_each(|_| thread::yield_now()));
                }
            });
        }),
        Row::Hop => hop(count),
        Row::Spawn => per_step(count, || (0..count).for_each(|n| assert!(thread::spawn(move || n).join().is_ok()))),
        _ => return None,
    })
}

fn hop(count: u64) -> f64 {
    let rounds = count / RING as u64 + 1;
    let (first, mut inbox) = sync_channel::<u64>(1);
    for _ in 0..RING {
        let (outbox, next) = sync_channel(1);
        let receiver = std::mem::replace(&mut inbox, next);
        thread::spawn(move || receiver.iter().try_for_each(|token| outbox.send(token)));
    }
    let round = || {
        first.send(0).expect("the ring is whole");
        assert_eq!(inbox.recv(), Ok(0));
    };
    round();
    per_step(rounds * RING as u64, || (0..rounds).for_each(|_| round()))
}

pub(super) fn serve(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        stream.set_nodelay(true).expect("a connection");
        let answer = move || {
            let mut buf = [0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut buf) {
                if stream.write_all(&buf[..bytes]).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().stack_size(64 << 10).spawn(answer).expect("a thread");
    }
}
