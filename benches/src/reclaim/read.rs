//! The cost of reading one word behind a shared pointer. No compiler merges two atomic loads of one address, so the
//! loops do all of their reads.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use arc_swap::ArcSwap;
use millstream_sync::reclaim::Snapshot;
use millstream_sync::reclaim::epoch::{self, Collector};
use millstream_sync::reclaim::hazard::Domain;

use super::threads::together;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::eventcount::clock;

const READS: u64 = 50_000_000;
const QUICK_READS: u64 = 50_000;
/// The word that is read.
pub(super) const NUMBER: u64 = 3;

/// Reads `n` times in each of `threads` threads. Returns the time per read, and the sum of the words read.
type Work = fn(threads: usize, n: u64) -> (f64, u64);

const OBJECT: [(&str, Role, Work); 4] = [
    ("Hazard::protect", Role::Ours, hazard_protect),
    ("haphazard", Role::Peer, haphazard_load),
    ("plain load", Role::Reference, plain_load),
    ("two stores", Role::Reference, two_stores),
];

/// Reading sections, each with one load or empty.
fn sections<const LOADS: bool>() -> Vec<(&'static str, Role, Work)> {
    let mut works: Vec<(_, _, Work)> = vec![
        ("epoch::pin", Role::Ours, epoch_pin::<LOADS>),
        ("epoch Local::pin", Role::Ours, local_pin::<LOADS>),
        ("crossbeam-epoch pin", Role::Peer, crossbeam_pin::<LOADS>),
        ("crossbeam-epoch LocalHandle::pin", Role::Peer, crossbeam_local_pin::<LOADS>),
        ("seize enter", Role::Peer, seize_enter::<LOADS>),
        ("two stores", Role::Reference, two_stores),
    ];
    #[cfg(liburcu)]
    works.push(("liburcu memb", Role::Peer, super::liburcu::section::<LOADS>));
    works.extend(LOADS.then_some(("plain load", Role::Reference, plain_load as Work)));
    works
}

const CELL: [(&str, Role, Work); 4] = [
    ("Snapshot::read", Role::Ours, snapshot_read),
    ("arc-swap load", Role::Peer, arc_swap_load),
    ("plain load", Role::Reference, plain_load),
    ("two stores", Role::Reference, two_stores),
];

/// Prints the tables.
///
/// # Errors
/// Fails when a reader read anything but the number.
pub fn run(args: &Args) -> Result<(), Error> {
    if !cfg!(liburcu) {
        println!("Without liburcu, which was not installed when this program was built.\n");
    }
    for threads in [1, 2] {
        table(args, "protect, read and release an object", threads, &OBJECT)?;
        table(args, "an empty reading section", threads, &sections::<false>())?;
        table(args, "a reading section with one load", threads, &sections::<true>())?;
        table(args, "read a cell's value", threads, &CELL)?;
    }
    Ok(())
}

fn table(args: &Args, title: &str, threads: usize, works: &[(&str, Role, Work)]) -> Result<(), Error> {
    let n = if args.quick { QUICK_READS } else { READS };
    println!("### {title}, {threads} thread(s), {n} times each\n");
    let competitors = works.iter().map(|&(name, role, work)| {
        Competitor::new(name, role, move || {
            let (took, sum) = work(threads, n);
            let expected = NUMBER * n * threads as u64;
            if sum == expected { Ok(took) } else { Err(Error::new(format!("read a sum of {sum}, not {expected}"))) }
        })
    });
    let comparison = alternate(clock::UNIT, 1, args.rounds, competitors.collect())?;
    println!("{}\n", comparison.render());
    Ok(())
}

fn plain_load(threads: usize, n: u64) -> (f64, u64) {
    let source = AtomicPtr::new(Box::leak(Box::new(NUMBER)));
    let source = black_box(&source);
    together(threads, n, |_| {
        // SAFETY: the object is leaked, so it is never freed.
        move |n| (0..n).fold(0, |sum, _| sum + unsafe { *source.load(Acquire) })
    })
}

/// Writes a word at the beginning and at the end of each read: the lower bound of every scheme in this comparison.
fn two_stores(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        let state = Box::new(Line(AtomicU64::new(0)));
        move |n| {
            let state = &black_box(&*state).0;
            (0..n).fold(0, |sum, _| {
                state.store(1, Release);
                state.store(0, Release);
                sum + NUMBER
            })
        }
    })
}

/// A value on its own cache lines.
#[repr(align(128))]
struct Line(AtomicU64);

fn hazard_protect(threads: usize, n: u64) -> (f64, u64) {
    let (domain, source) = (Domain::new(), AtomicPtr::new(Box::leak(Box::new(NUMBER))));
    let (domain, source) = (&domain, black_box(&source));
    together(threads, n, |_| {
        let mut hazard = domain.hazard();
        move |n| {
            // SAFETY: the object is leaked, so it is never freed.
            let mut read = || unsafe { hazard.protect(source) }.map_or(0, |number| *number);
            (0..n).fold(0, |sum, _| sum + read())
        }
    })
}

fn haphazard_load(threads: usize, n: u64) -> (f64, u64) {
    let source = haphazard::AtomicPtr::from(Box::new(NUMBER));
    let source = black_box(&source);
    together(threads, n, |_| {
        let mut hazard = haphazard::HazardPointer::new();
        move |n| {
            let mut read = || {
                let number = source.safe_load(&mut hazard).map_or(0, |number: &u64| *number);
                hazard.reset_protection();
                number
            };
            (0..n).fold(0, |sum, _| sum + read())
        }
    })
}

fn epoch_pin<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let source = AtomicPtr::new(Box::leak(Box::new(NUMBER)));
    let source = black_box(&source);
    together(threads, n, |_| {
        let read = || {
            let guard = epoch::pin();
            // SAFETY: the object is leaked, so it is never freed.
            if LOADS { unsafe { guard.load(source) }.copied().unwrap_or(0) } else { NUMBER }
        };
        move |n| (0..n).fold(0, |sum, _| sum + read())
    })
}

fn local_pin<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let (collector, source) = (Collector::new(), AtomicPtr::new(Box::leak(Box::new(NUMBER))));
    let (collector, source) = (&collector, black_box(&source));
    together(threads, n, |_| {
        let local = collector.local();
        move |n| {
            let read = || {
                let guard = local.pin();
                // SAFETY: the object is leaked, so it is never freed.
                if LOADS { unsafe { guard.load(source) }.copied().unwrap_or(0) } else { NUMBER }
            };
            (0..n).fold(0, |sum, _| sum + read())
        }
    })
}

fn crossbeam_pin<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let source = crossbeam_epoch::Atomic::new(NUMBER);
    let source = black_box(&source);
    together(threads, n, |_| {
        let read = || {
            let guard = crossbeam_epoch::pin();
            // SAFETY: the object is never retired.
            if LOADS { unsafe { source.load(Acquire, &guard).as_ref() }.copied().unwrap_or(0) } else { NUMBER }
        };
        move |n| (0..n).fold(0, |sum, _| sum + read())
    })
}

fn crossbeam_local_pin<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let (collector, source) = (crossbeam_epoch::Collector::new(), crossbeam_epoch::Atomic::new(NUMBER));
    let (collector, source) = (&collector, black_box(&source));
    together(threads, n, |_| {
        let local = collector.register();
        move |n| {
            let read = || {
                let guard = local.pin();
                // SAFETY: the object is never retired.
                if LOADS { unsafe { source.load(Acquire, &guard).as_ref() }.copied().unwrap_or(0) } else { NUMBER }
            };
            (0..n).fold(0, |sum, _| sum + read())
        }
    })
}

fn seize_enter<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    use seize::Guard as _;

    let (collector, source) = (seize::Collector::new(), AtomicPtr::new(Box::leak(Box::new(NUMBER))));
    let (collector, source) = (&collector, black_box(&source));
    together(threads, n, |_| {
        let read = || {
            let guard = collector.enter();
            // SAFETY: the object is leaked, so it is never freed.
            if LOADS { unsafe { *guard.protect(source, Acquire) } } else { NUMBER }
        };
        move |n| (0..n).fold(0, |sum, _| sum + read())
    })
}

fn snapshot_read(threads: usize, n: u64) -> (f64, u64) {
    let cell = Snapshot::new(NUMBER);
    let cell = black_box(&cell);
    together(threads, n, |_| move |n| (0..n).fold(0, |sum, _| sum + *cell.read()))
}

fn arc_swap_load(threads: usize, n: u64) -> (f64, u64) {
    let cell = ArcSwap::from_pointee(NUMBER);
    let cell = black_box(&cell);
    together(threads, n, |_| move |n| (0..n).fold(0, |sum, _| sum + **cell.load()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_reads_the_number() {
        for (name, _, work) in OBJECT.iter().chain(&sections::<true>()).chain(&sections::<false>()).chain(&CELL) {
            assert_eq!(work(2, 100).1, 2 * 100 * NUMBER, "{name}");
        }
    }
}
