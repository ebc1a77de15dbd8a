//! How long it takes to get in, do nothing, and get out, with more threads than cores: each visit is timed by itself.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use millstream_sync::lock::lock_api::Mutex;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};

use super::section::{Lock, Section};
use crate::args::Args;
use crate::eventcount::clock;
use crate::table;

const TIME: Duration = Duration::from_millis(300);
const QUICK_TIME: Duration = Duration::from_millis(3);
/// A thread keeps the times of so many of its visits, the first ones.
const KEPT: usize = 10_000_000;
const THREADS: usize = 4;

/// The times of all threads' visits for so long, sorted.
type Work = fn(Duration) -> Vec<u64>;

const WORKS: [(&str, Work); 7] = [
    ("Adaptive", visit::<Mutex<Adaptive, u64>>),
    ("std Mutex", visit::<std::sync::Mutex<u64>>),
    ("parking_lot Mutex", visit::<parking_lot::Mutex<u64>>),
    ("TAS", visit::<Mutex<Tas, u64>>),
    ("TTAS", visit::<Mutex<Ttas, u64>>),
    ("TTAS, back-off", visit::<Mutex<TtasBackoff, u64>>),
    ("Ticket", visit::<Mutex<Ticket, u64>>),
];

/// Prints the quantiles.
pub fn run(args: &Args) {
    let time = if args.quick { QUICK_TIME } else { TIME };
    println!("### latency: {THREADS} threads, {time:?}, {}\n", clock::UNIT);
    let rows = WORKS.map(|(name, work)| {
        let times = work(time);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].to_string();
        [name.to_owned(), at(0.5), at(0.99), at(0.999), at(1.0)]
    });
    println!("{}\n", table::render(["", "p50", "p99", "p99.9", "max"], rows));
}

fn visit<L: Lock>(time: Duration) -> Vec<u64> {
    let (lock, barrier, over) = (L::default(), Barrier::new(THREADS + 1), AtomicBool::new(false));
    let mut times: Vec<u64> = thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    // Written once, so that no page is new when it counts.
                    let mut times = vec![1; KEPT];
                    times.clear();
                    barrier.wait();
                    while !over.load(Relaxed) && times.len() < KEPT {
                        let began = clock::now();
                        lock.visit(Section::Empty);
                        times.push(clock::now() - began);
                    }
                    times
                })
            })
            .collect();
        barrier.wait();
        thread::sleep(time);
        over.store(true, Relaxed);
        running.into_iter().flat_map(|thread| thread.join().expect("nobody panics")).collect()
    });
    times.sort_unstable();
    times
}
