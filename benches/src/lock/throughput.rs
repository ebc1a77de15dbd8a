//! Sections under one lock, run by several threads that do nothing else, for a fixed time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_sync::lock::lock_api::Mutex;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};

use super::section::{Lock, Section, Unlocked};
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::picture::{self, curves::Curves};

const TIME: Duration = Duration::from_millis(150);
const QUICK_TIME: Duration = Duration::from_millis(2);

/// Returns the wall time divided by the visits of all threads, in nanoseconds.
type Work = fn(threads: usize, Section, Duration) -> Result<f64, Error>;

const WORKS: [(&str, Role, Work); 8] = [
    ("Adaptive", Role::Ours, visit::<Mutex<Adaptive, u64>>),
    ("std Mutex", Role::Peer, visit::<std::sync::Mutex<u64>>),
    ("parking_lot Mutex", Role::Peer, visit::<parking_lot::Mutex<u64>>),
    ("TAS", Role::Reference, visit::<Mutex<Tas, u64>>),
    ("TTAS", Role::Reference, visit::<Mutex<Ttas, u64>>),
    ("TTAS, back-off", Role::Reference, visit::<Mutex<TtasBackoff, u64>>),
    ("Ticket", Role::Reference, visit::<Mutex<Ticket, u64>>),
    ("no lock", Role::Reference, alone),
];

/// Prints a table for each kind of section and number of threads, and draws a picture of each kind.
///
/// # Errors
/// Fails when a lock admitted two threads at once, or when a picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let time = if args.quick { QUICK_TIME } else { TIME };
    for (section, name) in [(Section::Empty, "lock-throughput-empty"), (Section::Long, "lock-throughput-100ns")] {
        let mut curves = Curves::default();
        for threads in [1, 2, 4] {
            println!("### throughput: {}, {threads} thread(s), {time:?} each\n", section.title());
            let works = WORKS.iter().filter(|(name, _, _)| threads == 1 || *name != "no lock");
            let competitors =
                works.map(|&(name, role, work)| Competitor::new(name, role, move || work(threads, section, time)));
            let comparison = alternate("ns per section", 1, args.rounds, competitors.collect())?;
            println!("{}\n", comparison.render());
            curves.add(threads, &comparison, |ns| 1e3 / ns);
        }
        picture::save(args.pictures.as_deref(), name, || {
            let title = format!("Locks: {}", section.title());
            curves.draw(&title, "Vertical: millions of sections a second, all threads together.")
        })?;
    }
    Ok(())
}

fn visit<L: Lock>(threads: usize, section: Section, time: Duration) -> Result<f64, Error> {
    let (lock, over, barrier) = (L::default(), AtomicBool::new(false), Barrier::new(threads + 1));
    let (took, visits) = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut visits = 0_u64;
                    barrier.wait();
                    while !over.load(Relaxed) {
                        lock.visit(section);
                        visits += 1;
                    }
                    visits
                })
            })
            .collect();
        barrier.wait();
        let began = Instant::now();
        thread::sleep(time);
        over.store(true, Relaxed);
        let took = began.elapsed();
        let visits = running.into_iter().map(|thread| thread.join().expect("no thread panics")).sum::<u64>();
        (took, visits)
    });
    let counted = lock.into_visits();
    if counted != visits {
        return Err(Error::new(format!("the lock does not exclude: {visits} visits counted only {counted}")));
    }
    Ok(took.as_nanos() as f64 / visits as f64)
}

fn alone(_threads: usize, section: Section, time: Duration) -> Result<f64, Error> {
    visit::<Unlocked>(1, section, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_excludes() {
        for (name, _, work) in WORKS {
            assert!(work(3, Section::Empty, Duration::from_millis(5)).unwrap() > 0.0, "{name}");
        }
    }
}
