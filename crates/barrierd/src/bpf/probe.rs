//! Finds the tracepoints that fire often enough. In a trial, all of them are counted while every processor is busy.
//!
//! Idle processors need no event, because the daemon knows that they are idle. What matters is the longest time without an event
//! on a busy processor.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::call::{self, BpfError};
use super::{IN_INTERRUPTS, INTERRUPTS, program};
use crate::memory::Words;
use crate::processors;

/// The duration of the trial.
const TRIAL: Duration = Duration::from_millis(120);
/// The rate of events per second that every busy processor must reach: half of 100 Hz, the slowest tick that Linux can be built
/// with.
const OFTEN_HZ: f64 = 50.0;

/// Returns the tracepoints to use, and human-readable text with their rates.
pub(super) fn often_enough(cpus: usize) -> Result<(Vec<&'static str>, String), BpfError> {
    let candidates: Vec<&str> = INTERRUPTS.into_iter().chain(IN_INTERRUPTS).collect();
    let words = call::array(candidates.len() * cpus * size_of::<u64>())?;
    let counts =
        Words::map(words.as_fd(), candidates.len() * cpus).map_err(|error| BpfError::new("a map's memory", error))?;
    let mut links = Vec::new();
    let mut there = vec![false; candidates.len()];
    for (place, name) in candidates.iter().enumerate() {
        let program = call::load(&program::counter(cpus, words.as_raw_fd(), place * cpus))?;
        if let Ok(link) = call::attach(program.as_fd(), name) {
            there[place] = true;
            links.push(link);
        }
    }
    let seconds = keep_busy();
    drop(links);

    let busy = processors::allowed(cpus);
    let on = |place: usize, cpu: usize| counts.get(place * cpus + cpu).load(Ordering::Relaxed);
    // Returns the combined event rate of the candidates `from..to` on the processor with the fewest events.
    let fewest = |from: usize, to: usize| {
        let sums = busy.iter().map(|cpu| (from..to).map(|place| on(place, *cpu)).sum::<u64>());
        sums.min().unwrap_or(0) as f64 / seconds
    };
    let mut end = INTERRUPTS.len();
    if fewest(0, end) < OFTEN_HZ {
        end = candidates.len();
    }
    let names: Vec<_> = (0..end).filter(|place| there[*place]).map(|place| candidates[place]).collect();
    let about = format!("{} ({:.0} a second on a busy processor)", names.join(", "), fewest(0, end));
    Ok((names, about))
}

/// Keeps every allowed processor busy during the trial, at a lower priority than all other threads. Returns the duration of the
/// trial in seconds.
fn keep_busy() -> f64 {
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let cpus = processors::allowed(usize::MAX);
    let (started, numbers) = mpsc::channel();
    thread::scope(|scope| {
        for cpu in cpus {
            let (over, started) = (&over, started.clone());
            // If a thread can't be started, its processor is not kept busy.
            let _ = thread::Builder::new().spawn_scoped(scope, move || {
                processors::stay_on(cpu);
                // The message is sent before the thread lowers its priority, because another thread may be waiting for the
                // message.
                let _ = started.send(processors::thread_number());
                drop(started);
                processors::only_when_idle();
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        drop(started);
        let threads: Vec<i32> = numbers.iter().collect();
        thread::sleep(TRIAL);
        // Raise the priority of the trial's threads again. If other threads are busy, a thread of low priority may not run for
        // seconds, and so would not see in time that the trial is over.
        threads.iter().for_each(|thread| processors::as_usual(*thread));
        over.store(true, Ordering::Relaxed);
    });
    start.elapsed().as_secs_f64()
}
