//! The time from a send until a sleeping consumer has the event, compared with a bare futex.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_ring::channel;

use super::percentile;
use crate::args::Args;
use crate::compare::median;
use crate::error::Error;
use crate::table;

/// The pause between sends, in which the consumer falls asleep.
const PAUSE: Duration = Duration::from_micros(300);

/// Alternates the ring and the futex, and prints the percentiles of all samples of all rounds.
pub(super) fn run(args: &Args, _: u64) -> Result<(), Error> {
    let samples = if args.quick { 20 } else { 1000 };
    let [mut ring, mut futex] = [Vec::new(), Vec::new()];
    let [mut p50, mut p99] = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        let [own, bare] = [sorted(through_ring(samples)), sorted(through_futex(samples))];
        p50.push(percentile(&own, 50) / percentile(&bare, 50));
        p99.push(percentile(&own, 99) / percentile(&bare, 99));
        ring.extend(own);
        futex.extend(bare);
    }
    let rows = [("mpsc", sorted(ring)), ("bare futex", sorted(futex))].map(|(name, samples)| {
        [
            name.to_owned(),
            format!("{:.1}", percentile(&samples, 50) / 1e3),
            format!("{:.1}", percentile(&samples, 99) / 1e3),
        ]
    });
    println!("{}\n", table::render(["", "p50, µs", "p99, µs"], rows));
    println!(
        "mpsc / bare futex, median of {} rounds: p50 {:.2}, p99 {:.2} (target: at most 1.10)\n",
        p50.len(),
        median(&p50),
        median(&p99)
    );
    Ok(())
}

fn sorted(mut samples: Vec<f64>) -> Vec<f64> {
    samples.sort_by(f64::total_cmp);
    samples
}

fn through_ring(samples: usize) -> Vec<f64> {
    let (sender, receiver) = channel::mpsc::<Instant>(1024);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(move || receiver.into_iter().map(|sent| sent.elapsed().as_nanos() as f64).collect());
        for _ in 0..samples {
            std::thread::sleep(PAUSE);
            sender.send(Instant::now()).expect("the receiver outlives the sends");
        }
        drop(sender);
        consumer.join().expect("the consumer does not panic")
    })
}

/// Measures a bare futex: the producer increments a word, on which the consumer sleeps.
fn through_futex(samples: usize) -> Vec<f64> {
    let (count, sent_ns, epoch) = (AtomicU32::new(0), AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let now = |seen: u32| {
                while count.load(Ordering::Acquire) == seen {
                    futex(&count, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, seen);
                }
                epoch.elapsed().as_nanos() as f64 - sent_ns.load(Ordering::Relaxed) as f64
            };
            (0..samples as u32).map(now).collect()
        });
        for _ in 0..samples {
            std::thread::sleep(PAUSE);
            sent_ns.store(epoch.elapsed().as_nanos() as u64, Ordering::Relaxed);
            count.fetch_add(1, Ordering::Release);
            futex(&count, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        }
        consumer.join().expect("the consumer does not panic")
    })
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: the word outlives the call, and the timeout is null.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, std::ptr::null::<libc::timespec>());
    }
}
