//! The same work on several threads at once.

use std::sync::Barrier;
use std::thread;

use crate::eventcount::clock;

/// Runs `threads` threads that start together and do `n` operations each. Returns the average time of an operation, in
/// the clock's unit, and the sum of the values that the work returned.
///
/// `work` prepares a thread and returns its loop, so that the preparation is not measured.
pub fn together<L: FnOnce(u64) -> u64>(threads: usize, n: u64, work: impl Fn(usize) -> L + Sync) -> (f64, u64) {
    let barrier = Barrier::new(threads);
    let one = &|thread: usize| {
        let work = work(thread);
        barrier.wait();
        let began = clock::now();
        let result = work(n);
        ((clock::now() - began) as f64 / n as f64, result)
    };
    if threads == 1 {
        return one(0);
    }
    let results: Vec<(f64, u64)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect::<Vec<_>>();
        running.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    let average = results.iter().map(|(took, _)| took).sum::<f64>() / threads as f64;
    (average, results.iter().fold(0, |sum, (_, result)| sum.wrapping_add(*result)))
}
