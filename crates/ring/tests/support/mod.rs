//! What several test files need.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use millstream_ring::WaitStrategy;

pub const STRATEGIES: [WaitStrategy; 4] =
    [WaitStrategy::Adaptive, WaitStrategy::Block, WaitStrategy::Yield, WaitStrategy::Spin];

/// `MILLSTREAM_STRESS`: how many times longer than usual stress tests run.
pub fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().map_or(1, |factor| factor.parse().expect("MILLSTREAM_STRESS is a number"))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Polls once, with a waker that does nothing.
pub fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A small generator (splitmix64) whose seed is printed.
pub struct Random(u64);

impl Random {
    pub fn seeded() -> Self {
        let seed = std::env::var("MILLSTREAM_SEED").ok().map_or_else(
            || std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970").as_nanos() as u64,
            |seed| seed.parse().expect("MILLSTREAM_SEED is a number"),
        );
        println!("MILLSTREAM_SEED={seed}");
        Random(seed)
    }

    pub fn fork(&mut self) -> Self {
        Random(self.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
