//! Increments without a waiter.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use millstream_sync::eventcount::parameters::{InPlace, SoleKind, TwoWord};
use millstream_sync::eventcount::{Count, EventCount, EventCount64};

use super::clock;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const INCREMENTS: u64 = 100_000_000;
const QUICK_INCREMENTS: u64 = 100_000;

/// Does `n` increments and returns the count.
type Work = fn(n: u64) -> u64;

const ONE: [(&str, Role, Work); 6] = [
    ("SpEventCount, 32 bits", Role::Ours, sole::<TwoWord<u32>>),
    ("SpEventCount, 64 bits", Role::Ours, sole::<TwoWord<u64>>),
    ("InPlaceEventCount, 32 bits", Role::Ours, sole::<InPlace<u32>>),
    ("InPlaceEventCount64", Role::Ours, sole::<InPlace<u64>>),
    ("plain store", Role::Peer, plain_stores),
    ("plain store, loop unrolled", Role::Reference, unrolled_stores),
];

const MANY: [(&str, Role, Work); 4] = [
    ("EventCount, 32 bits", Role::Ours, many_32),
    ("EventCount, 64 bits", Role::Ours, many_64),
    ("bare locked addition, 64 bits", Role::Peer, locked_64),
    ("bare locked addition, 32 bits", Role::Reference, locked_32),
];

/// Prints the two tables.
///
/// # Errors
/// Fails when a count is wrong after the work.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_INCREMENTS } else { INCREMENTS };
    println!("### One incrementer, no waiter, {n} increments\n");
    table(args, n, &ONE)?;
    println!("### Many possible incrementers, one active, no waiter, {n} increments\n");
    table(args, n, &MANY)
}

fn table(args: &Args, n: u64, works: &[(&str, Role, Work)]) -> Result<(), Error> {
    let competitors = works.iter().map(|&(name, role, work)| {
        Competitor::new(name, role, move || {
            let began = clock::now();
            let counted = work(n);
            let took = clock::now() - began;
            if counted == n {
                Ok(took as f64 / n as f64)
            } else {
                Err(Error::new(format!("the count is {counted} after {n} increments")))
            }
        })
    });
    let comparison = alternate(clock::UNIT, 1, args.rounds, competitors.collect())?;
    println!("{}\n", comparison.render());
    Ok(())
}

fn sole<K: SoleKind>(n: u64) -> u64 {
    let mut count = Count::<K>::new();
    let (mut incrementer, count) = count.split();
    for _ in 0..n {
        incrementer.increment();
    }
    count.value()
}

fn many_32(n: u64) -> u64 {
    let count = EventCount::new();
    (0..n).for_each(|_| count.increment());
    count.value()
}

fn many_64(n: u64) -> u64 {
    let count = EventCount64::new();
    (0..n).for_each(|_| count.increment());
    count.value()
}

fn locked_32(n: u64) -> u64 {
    let count = AtomicU32::new(0);
    for _ in 0..n {
        std::hint::black_box(count.fetch_add(1, Ordering::Release));
    }
    count.into_inner().into()
}

fn locked_64(n: u64) -> u64 {
    let count = AtomicU64::new(0);
    for _ in 0..n {
        std::hint::black_box(count.fetch_add(1, Ordering::Release));
    }
    count.into_inner()
}

/// Does a release store for each number, in a loop that is not unrolled, like the loops of the competitors.
fn plain_stores(n: u64) -> u64 {
    let count = AtomicU64::new(0);
    let mut number = 0;
    for _ in 0..n {
        number += 1;
        store(&count, number);
    }
    count.into_inner()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store(count: &AtomicU64, number: u64) {
    // SAFETY: the store goes to a live atomic. It is assembly because the compiler unrolls a loop of stores that it
    // can see.
    unsafe {
        std::arch::asm!("mov qword ptr [{count}], {number}",
            count = in(reg) count.as_ptr(), number = in(reg) number, options(nostack));
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn store(count: &AtomicU64, number: u64) {
    count.store(number, Ordering::Release);
}

fn unrolled_stores(n: u64) -> u64 {
    let count = AtomicU64::new(0);
    let published = std::hint::black_box(&count);
    (1..=n).for_each(|number| published.store(number, Ordering::Release));
    count.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_counts_every_increment() {
        for (name, _, work) in ONE.iter().chain(&MANY) {
            assert_eq!(work(1000), 1000, "{name}");
        }
    }
}
