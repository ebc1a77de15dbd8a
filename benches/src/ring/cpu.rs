//! The CPU time of waiting.

use std::time::{Duration, Instant};

use millstream_ring::channel;

use crate::args::Args;
use crate::error::Error;

/// The CPU time of this process so far.
pub(super) fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Measures idle consumers, and the producers of a full ring.
pub(super) fn run(args: &Args, _: u64) -> Result<(), Error> {
    let window = if args.quick { Duration::from_millis(50) } else { Duration::from_secs(10) };
    let idle = idle_consumers(window);
    println!("100 blocked consumers, {window:?}: {:.2} ms (target: at most 10 ms in 10 s)\n", idle.as_secs_f64() * 1e3);
    let (full, received) = full_ring(window);
    println!(
        "8 producers, full ring, a consumer that takes an event each millisecond, {window:?} ({received} events): \
         {:.2} % of a core (target: at most 5 %)\n",
        100.0 * full.as_secs_f64() / window.as_secs_f64()
    );
    Ok(())
}

fn idle_consumers(window: Duration) -> Duration {
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        for _ in 0..100 {
            let (sender, receiver) = channel::mpsc::<u64>(1024);
            senders.push(sender);
            scope.spawn(move || receiver.into_iter().count());
        }
        std::thread::sleep(Duration::from_millis(200));
        let before = process_time();
        std::thread::sleep(window);
        process_time() - before
    })
}

fn full_ring(window: Duration) -> (Duration, u64) {
    let (sender, receiver) = channel::mpsc(1024);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let sender = sender.clone();
            scope.spawn(move || (0u64..).find(|&n| sender.send(n).is_err()));
        }
        drop(sender);
        std::thread::sleep(Duration::from_millis(200));
        let (before, end) = (process_time(), Instant::now() + window);
        let mut received = 0;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
            received += u64::from(receiver.recv().is_ok());
        }
        let used = process_time() - before;
        // Dropping the receiver ends the producers.
        drop(receiver);
        (used, received)
    })
}
