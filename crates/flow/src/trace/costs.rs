//! The machine's own costs, measured when a recording begins. These costs are part of every wait, and differ between
//! machines and over time.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{EventCount, SpinPolicy};

use super::file::Machine;

/// The number of timed wake-ups, whose median is used.
const ROUNDS: usize = 15;

/// A pause before each wake-up, during which the thread goes to sleep.
const PAUSE: Duration = Duration::from_micros(50);

/// Measures the machine; takes about two milliseconds.
pub(crate) fn measure() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bell = Arc::new(EventCount::new());
    let theirs = bell.clone();
    let (tell, heard) = channel();
    let started = Instant::now();
    let thread = std::thread::Builder::new().name("ms-costs".into()).spawn(move || {
        for _ in 0..=ROUNDS {
            let key = theirs.snapshot();
            if tell.send(Instant::now()).is_err() {
                return;
            }
            let _ = theirs.wait_with(key, Some(Instant::now() + Duration::from_secs(1)), SpinPolicy::NONE);
        }
    });
    let Ok(thread) = thread else { return Machine { cores, wake_ns: 0, start_ns: 0 } };
    let elapsed = |since: Instant, at: Instant| at.saturating_duration_since(since).as_nanos() as u64;
    let start_ns = heard.recv().map_or(0, |at| elapsed(started, at));
    let mut wakes: Vec<u64> = (0..ROUNDS)
        .map_while(|_| {
            std::thread::sleep(PAUSE);
            let woken = Instant::now();
            bell.increment();
            heard.recv().ok().map(|at| elapsed(woken, at))
        })
        .collect();
    bell.increment();
    drop(heard);
    drop(thread.join());
    wakes.sort_unstable();
    Machine { cores, wake_ns: wakes.get(wakes.len() / 2).copied().unwrap_or(0), start_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_costs_are_plausible() {
        let Machine { cores, wake_ns, start_ns } = measure();
        assert!(cores > 0 && wake_ns > 0 && start_ns > 0);
        assert!(wake_ns < 1_000_000_000 && start_ns < 1_000_000_000, "{wake_ns} {start_ns}");
    }
}
