//! The duration of a visit (lock, do nothing, unlock) with more threads than cores; each visit is timed individually.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use millstream_sync::lock::lock_api::Mutex;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};

use super::section::{Lock, Section};
use crate::args::Args;
use crate::error::Error;
use crate::eventcount::clock;
use crate::picture::{self, boxes};
use crate::table;
use crate::times::{self, Quantiles, Times};

const TIME: Duration = Duration::from_millis(300);
const QUICK_TIME: Duration = Duration::from_millis(3);
const THREADS: usize = 4;

/// Returns the quantiles of the times of all threads' visits within a duration.
type Work = fn(Duration) -> Quantiles;

const WORKS: [(&str, Work); 7] = [
    ("Adaptive", visit::<Mutex<Adaptive, u64>>),
    ("std Mutex", visit::<std::sync::Mutex<u64>>),
    ("parking_lot Mutex", visit::<parking_lot::Mutex<u64>>),
    ("TAS", visit::<Mutex<Tas, u64>>),
    ("TTAS", visit::<Mutex<Ttas, u64>>),
    ("TTAS, back-off", visit::<Mutex<TtasBackoff, u64>>),
    ("Ticket", visit::<Mutex<Ticket, u64>>),
];

/// Prints the quantiles and draws the picture.
///
/// # Errors
/// Fails when the picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let time = if args.quick { QUICK_TIME } else { TIME };
    println!("### latency: {THREADS} threads, {time:?}, {}\n", clock::UNIT);
    let all = WORKS.map(|(name, work)| (name, work(time)));
    println!("{}\n", table::render(times::header(), all.iter().map(|&(name, quantiles)| times::row(name, quantiles))));
    picture::save(args.pictures.as_deref(), "lock-latency", || {
        boxes::draw(&format!("Duration of a visit, {THREADS} threads, empty section"), clock::UNIT, &all)
    })
}

fn visit<L: Lock>(time: Duration) -> Quantiles {
    let (lock, barrier, over) = (L::default(), Barrier::new(THREADS + 1), AtomicBool::new(false));
    let one = || {
        let mut times = Times::new();
        barrier.wait();
        // Every thread makes at least one visit, even if it starts late.
        loop {
            let began = clock::now();
            lock.visit(Section::Empty);
            times.record(clock::now() - began);
            if over.load(Relaxed) {
                return times;
            }
        }
    };
    let times: Vec<Times> = thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        barrier.wait();
        thread::sleep(time);
        over.store(true, Relaxed);
        running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    Times::quantiles(&times)
}
