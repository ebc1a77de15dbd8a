//! The same work on several threads at once, timed as a whole.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Nanoseconds per operation of `threads` threads that do `n` operations each: the time from the first start to the
/// last end, divided by the total number of operations.
///
/// `work` prepares a thread and returns its loop, so that the preparation is not measured.
pub fn together<L: FnOnce(u64)>(threads: usize, n: u64, work: impl Fn(usize) -> L + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let one = &|thread: usize| {
        let work = work(thread);
        barrier.wait();
        let began = Instant::now();
        work(n);
        (began, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    let began = times.iter().map(|&(began, _)| began).min().expect("there is a thread");
    let ended = times.iter().map(|&(_, ended)| ended).max().expect("there is a thread");
    (ended - began).as_nanos() as f64 / (n * threads as u64) as f64
}
