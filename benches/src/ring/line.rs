//! The distance between two cores: the round-trip time of a cache line.
//!
//! On a virtual machine the distance changes at run time, when the host moves a virtual core to another die or to the
//! other half of the same core. Passing events between the two cores then takes up to three times as long. Consider
//! this when you compare figures.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const TRIPS: u64 = 2_000;
/// The number of attempts. Only the fastest attempt counts, because other programs may use the core during some
/// attempts.
const TIMES: u64 = 5;

/// The round-trip time in nanoseconds between the first two processors that this process may use; `None` if it may
/// use only one, or if the kernel refuses to pin threads.
pub(super) fn round_trip() -> Option<f64> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let cpus = [cpus.next()?, cpus.next()?];
    let (word, both, refused) = (AtomicU64::new(0), Barrier::new(2), AtomicBool::new(false));
    // Each side waits for its number and writes the next one.
    let pass = |side: usize| {
        let mut own = CpuSet::new();
        own.set(cpus[side]);
        refused.fetch_or(sched_setaffinity(None, &own).is_err(), Ordering::Relaxed);
        both.wait();
        if refused.load(Ordering::Relaxed) {
            return None;
        }
        let times = (0..TIMES).map(|time| {
            let began = Instant::now();
            for number in (2 * TRIPS * time + side as u64..2 * TRIPS * (time + 1)).step_by(2) {
                while word.load(Ordering::Acquire) != number {
                    std::hint::spin_loop();
                }
                word.store(number + 1, Ordering::Release);
            }
            began.elapsed().as_nanos() as f64 / TRIPS as f64
        });
        times.reduce(f64::min)
    };
    thread::scope(|scope| {
        let sides = [0, 1].map(|side| scope.spawn(move || pass(side)));
        sides.map(|side| side.join().ok().flatten())[0]
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_makes_the_round_trip() {
        assert!(super::round_trip().is_none_or(|ns| ns > 1.0));
    }
}
