//! The latency of single allocations. Four threads allocate for a fixed time, the same for each allocator. The longest
//! latency shows how long the scheduler stopped a thread. It depends on the duration of the measurement, not on the
//! number of allocations.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

#[cfg(feature = "allocators")]
use mimalloc::MiMalloc;
#[cfg(feature = "allocators")]
use tikv_jemallocator::Jemalloc;

use super::heap::{Listed, Local, Private, Published, slab};
use super::list::Shared;
use crate::args::Args;
use crate::compare;
use crate::error::Error;
use crate::eventcount::clock;
use crate::picture::{self, boxes};
use crate::table;
use crate::times::{self, Quantiles, Times};

const THREADS: usize = 4;
const TIME: Duration = Duration::from_millis(300);
const QUICK_TIME: Duration = Duration::from_millis(3);

/// Prints the table and draws the picture.
///
/// # Errors
/// Fails when the picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let time = if args.quick { QUICK_TIME } else { TIME };
    println!("### latency: allocation, {THREADS} threads, {time:?}, {}\n", clock::UNIT);
    let slab = slab(THREADS, 64);
    let cache = || slab.cache().expect("there are enough caches");
    let list = Shared::new(THREADS * 64);
    let one = |name: &'static str| -> Quantiles {
        match name {
            "slab, private" => sample(time, || Private(cache())),
            "slab, published" => sample(time, || Published(cache())),
            #[cfg(feature = "allocators")]
            "mimalloc" => sample(time, || super::heap::Global(MiMalloc)),
            #[cfg(feature = "allocators")]
            "jemalloc" => sample(time, || super::heap::Global(Jemalloc)),
            "one list, wide CAS" => sample(time, || Listed(&list)),
            _ => sample(time, || Nothing),
        }
    };
    let names = [
        "nothing: the clock alone",
        "slab, private",
        "slab, published",
        #[cfg(feature = "allocators")]
        "mimalloc",
        #[cfg(feature = "allocators")]
        "jemalloc",
        "one list, wide CAS",
    ];
    let rounds: Vec<_> = (0..args.rounds).map(|_| names.map(one)).collect();
    let medians: Vec<(&str, Quantiles)> = (0..names.len())
        .map(|competitor| {
            let over_rounds =
                |quantile: usize| rounds.iter().map(|round| round[competitor][quantile]).collect::<Vec<_>>();
            (names[competitor], std::array::from_fn(|quantile| compare::median(&over_rounds(quantile))))
        })
        .collect();
    let rows = medians.iter().map(|&(name, quantiles)| times::row(name, quantiles));
    println!(
        "{}\n\nMedians over {} rounds of each round's quantile.\n",
        table::render(times::header(), rows),
        args.rounds
    );
    picture::save(args.pictures.as_deref(), "slab-latency", || {
        boxes::draw(&format!("Duration of an allocation, {THREADS} threads"), clock::UNIT, &medians)
    })
}

/// Does nothing: shows the cost of reading the clock, and disturbances by the machine.
struct Nothing;

impl Local for Nothing {
    type Object<'l> = ();

    #[inline(always)]
    fn alloc(&self) {}

    #[inline(always)]
    fn free(&self, (): ()) {}
}

/// The quantiles of the times of single allocations, over all threads.
fn sample<L: Local>(time: Duration, local: impl Fn() -> L + Sync) -> Quantiles {
    let (barrier, over) = (Barrier::new(THREADS + 1), AtomicBool::new(false));
    let one = || {
        let local = local();
        let mut times = Times::new();
        barrier.wait();
        // Every thread makes at least one allocation, even if it starts late.
        loop {
            let began = clock::now();
            let object = local.alloc();
            black_box(&raw const object);
            times.record(clock::now() - began);
            local.free(object);
            if over.load(Relaxed) {
                return times;
            }
        }
    };
    let times: Vec<Times> = thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        barrier.wait();
        thread::sleep(time);
        over.store(true, Relaxed);
        running.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    Times::quantiles(&times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_ascend() {
        let list = Shared::new(THREADS * 64);
        let time = Duration::from_millis(1);
        for quantiles in [sample(time, || Nothing), sample(time, || Listed(&list))] {
            assert!(quantiles.is_sorted(), "{quantiles:?}");
        }
    }
}
