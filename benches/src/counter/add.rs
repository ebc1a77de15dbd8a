//! Threads that do nothing but count.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use millstream_sync::counter::Counter;

use crate::args::Args;
use crate::compare::{Comparison, Competitor, Role, alternate, median};
use crate::error::Error;
use crate::eventcount::clock;
use crate::picture::{self, curves::Curves};
use crate::reclaim::threads::together;

const ADDITIONS: u64 = 20_000_000;
const QUICK_ADDITIONS: u64 = 20_000;

/// Runs `threads` threads, each of which adds one `n` times. Returns the time per addition, and the final count.
type Work = fn(threads: usize, n: u64) -> (f64, u64);

const PER_THREAD: &str = "Counter, a Local each";
const PER_PROCESSOR: &str = "Counter, by its Adder";
const ANYWHERE: &str = "Counter::add";
const SHARED: &str = "shared fetch_add";
const OWN: &str = "a variable of its own";
const RACY: &str = "shared load and store";

const WORKS: [(&str, Role, Work); 6] = [
    (PER_THREAD, Role::Ours, per_thread),
    (PER_PROCESSOR, Role::Ours, per_processor),
    (ANYWHERE, Role::Ours, anywhere),
    (SHARED, Role::Peer, shared),
    (OWN, Role::Reference, own),
    (RACY, Role::Reference, racy),
];

/// Prints a table for each number of threads and draws the picture.
///
/// # Errors
/// Fails when a counter other than the racy one lost an addition, or when the picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_ADDITIONS } else { ADDITIONS };
    let mut curves = Curves::default();
    for threads in [1, 2, 4] {
        println!("### add: {threads} thread(s), {n} times each\n");
        let lost = Cell::new(0);
        let lost = &lost;
        let competitors = WORKS.map(|(name, role, work)| {
            Competitor::new(name, role, move || {
                let (took, counted) = work(threads, n);
                let missing = n * threads as u64 - counted;
                if name == RACY {
                    lost.set(missing);
                } else if missing != 0 {
                    return Err(Error::new(format!("{missing} additions were lost")));
                }
                Ok(took)
            })
        });
        let comparison = alternate(clock::UNIT, 1, args.rounds, competitors.into())?;
        println!("{}\n", comparison.render());
        for ours in [PER_THREAD, PER_PROCESSOR, ANYWHERE] {
            println!(
                "{ours}: {:.2} times a variable of its own, 1/{:.1} of shared fetch_add",
                of(&comparison, ours) / of(&comparison, OWN),
                of(&comparison, SHARED) / of(&comparison, ours),
            );
        }
        println!("{RACY}: lost {:.0} % in the last round\n", 100.0 * lost.get() as f64 / (n * threads as u64) as f64);
        curves.add(threads, &comparison, |took| 1e3 * threads as f64 / took);
    }
    picture::save(args.pictures.as_deref(), "counter-add", || {
        let said = format!(
            "Vertical: additions in 1000 {}, all threads together. The counter of loads and stores loses some.",
            clock::UNIT
        );
        curves.draw("Counters that do nothing but count", &said)
    })
}

fn of(comparison: &Comparison, name: &str) -> f64 {
    let figures = comparison.figures.iter().find(|figures| figures.name == name);
    median(&figures.expect("every competitor is in the table").rounds)
}

fn per_thread(threads: usize, n: u64) -> (f64, u64) {
    let counter = Counter::new();
    let (took, _) = together(threads, n, |_| {
        let local = counter.local();
        move |n| {
            (0..n).for_each(|_| local.increment());
            0
        }
    });
    (took, counter.sum())
}

fn per_processor(threads: usize, n: u64) -> (f64, u64) {
    let counter = Counter::new();
    let (took, _) = together(threads, n, |_| {
        |n| {
            let adder = counter.adder();
            (0..n).for_each(|_| adder.increment());
            0
        }
    });
    (took, counter.sum())
}

fn anywhere(threads: usize, n: u64) -> (f64, u64) {
    let counter = Counter::new();
    counter.add(0);
    let (took, _) = together(threads, n, |_| {
        |n| {
            (0..n).for_each(|_| counter.increment());
            0
        }
    });
    (took, counter.sum())
}

fn shared(threads: usize, n: u64) -> (f64, u64) {
    let counter = AtomicU64::new(0);
    let (took, _) = together(threads, n, |_| {
        |n| {
            for _ in 0..n {
                counter.fetch_add(1, Relaxed);
            }
            0
        }
    });
    (took, counter.into_inner())
}

/// Not a counter: code that looks good enough, but is neither exact nor fast.
fn racy(threads: usize, n: u64) -> (f64, u64) {
    let counter = AtomicU64::new(0);
    let (took, _) = together(threads, n, |_| {
        |n| {
            (0..n).for_each(|_| counter.store(counter.load(Relaxed) + 1, Relaxed));
            0
        }
    });
    (took, counter.into_inner())
}

/// The lower bound for any counter. Volatile accesses prevent the compiler from merging all additions into one.
fn own(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        |n| {
            let mut count = 0_u64;
            let place: *mut u64 = black_box(&mut count);
            // SAFETY: the pointer comes from a reference to this thread's own variable.
            (0..n).for_each(|_| unsafe { place.write_volatile(place.read_volatile() + 1) });
            count
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_racy_one_count_every_addition() {
        for (name, _, work) in WORKS.iter().filter(|(name, _, _)| *name != RACY) {
            assert_eq!(work(3, 1000).1, 3000, "{name}");
        }
    }
}
