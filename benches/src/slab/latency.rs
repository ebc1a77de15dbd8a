//! How late an allocation can be: the time of each, with four threads at work.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use mimalloc::MiMalloc;
use tikv_jemallocator::Jemalloc;

use super::heap::{Global, Listed, Local, Private, Published, slab};
use super::list::Shared;
use crate::args::Args;
use crate::compare;
use crate::error::Error;
use crate::eventcount::clock;
use crate::table;

const THREADS: usize = 4;
const SAMPLES: usize = 2_000_000;
const QUICK_SAMPLES: usize = 10_000;

/// What is shown of a distribution: the box, then the tail.
const QUANTILES: [f64; 6] = [0.25, 0.5, 0.75, 0.99, 0.999, 1.0];

/// Prints the table.
///
/// # Errors
/// Never, but competitors elsewhere can.
pub fn run(args: &Args) -> Result<(), Error> {
    let samples = if args.quick { QUICK_SAMPLES } else { SAMPLES };
    println!("### latency: allocation, {THREADS} threads, {samples} each, {}\n", clock::UNIT);
    let slab = slab(THREADS, 64);
    let cache = || slab.cache().expect("there are enough caches");
    let list = Shared::new(THREADS * 64);
    let one = |name: &'static str| -> [f64; 6] {
        match name {
            "slab, private" => sample(samples, || Private(cache())),
            "slab, published" => sample(samples, || Published(cache())),
            "mimalloc" => sample(samples, || Global(MiMalloc)),
            "jemalloc" => sample(samples, || Global(Jemalloc)),
            "one list, wide CAS" => sample(samples, || Listed(&list)),
            _ => sample(samples, || Nothing),
        }
    };
    let names =
        ["nothing: the clock alone", "slab, private", "slab, published", "mimalloc", "jemalloc", "one list, wide CAS"];
    let rounds: Vec<Vec<[f64; 6]>> = (0..args.rounds).map(|_| names.map(one).to_vec()).collect();
    let header = ["", "p25", "p50", "p75", "p99", "p99.9", "max"];
    let rows = names.iter().enumerate().map(|(competitor, name)| {
        let figures: [String; 6] = std::array::from_fn(|quantile| {
            let over_rounds: Vec<f64> = rounds.iter().map(|round| round[competitor][quantile]).collect();
            format!("{:.0}", compare::median(&over_rounds))
        });
        let [p25, p50, p75, p99, p999, max] = figures;
        [(*name).to_owned(), p25, p50, p75, p99, p999, max]
    });
    println!("{}\n\nMedians over {} rounds of each round's quantile.\n", table::render(header, rows), args.rounds);
    Ok(())
}

/// Does nothing, to see what the clock and the machine do.
struct Nothing;

impl Local for Nothing {
    type Object<'l> = ();

    #[inline(always)]
    fn alloc(&self) {}

    #[inline(always)]
    fn free(&self, (): ()) {}
}

/// The quantiles of the times of single allocations, of all threads together.
fn sample<L: Local>(samples: usize, local: impl Fn() -> L + Sync) -> [f64; 6] {
    let barrier = Barrier::new(THREADS);
    let one = || {
        let local = local();
        // Touched before, so that no page fault is measured.
        let mut times = vec![u32::MAX; samples];
        barrier.wait();
        for time in &mut times {
            let began = clock::now();
            let object = local.alloc();
            black_box(&raw const object);
            *time = u32::try_from(clock::now() - began).unwrap_or(u32::MAX);
            local.free(object);
        }
        times
    };
    let mut times: Vec<u32> = thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    times.sort_unstable();
    QUANTILES.map(|quantile| f64::from(times[((times.len() - 1) as f64 * quantile) as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_ascend() {
        let list = Shared::new(THREADS * 64);
        for quantiles in [sample(1000, || Nothing), sample(1000, || Listed(&list))] {
            assert!(quantiles.is_sorted(), "{quantiles:?}");
        }
    }
}
