//! How far apart two cores are: the time of a cache line to the other one and back.
//!
//! On a virtual machine that changes while it runs, when the host moves a core to another die. Whatever passes events between
//! the two takes two to three times as long then, so a figure's scatter is to be read beside this.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const TRIPS: u64 = 10_000;

/// Nanoseconds there and back between the first two processors that this process may use; `None` if it may use but one, or the
/// kernel lets no thread choose.
pub(super) fn round_trip() -> Option<f64> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let (here, there) = (cpus.next()?, cpus.next()?);
    let word = AtomicU64::new(0);
    // Each side waits for its number and writes the next.
    let pass = |cpu, first: u64| {
        let mut own = CpuSet::new();
        own.set(cpu);
        let stays = sched_setaffinity(None, &own).is_ok();
        let began = Instant::now();
        for number in (first..2 * TRIPS).step_by(2) {
            while word.load(Ordering::Acquire) != number {
                std::hint::spin_loop();
            }
            word.store(number + 1, Ordering::Release);
        }
        stays.then(|| began.elapsed().as_nanos() as f64 / TRIPS as f64)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| pass(there, 1));
        let own = scope.spawn(|| pass(here, 0));
        let (own, other) = (own.join().ok()?, other.join().ok()?);
        own.zip(other).map(|(own, _)| own)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_goes_there_and_back() {
        assert!(super::round_trip().is_none_or(|ns| ns > 1.0));
    }
}
