//! The cost of replacing a shared object, and of freeing the old object later.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::AcqRel;

use millstream_sync::reclaim::{epoch, hazard};

use super::threads::together;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::eventcount::clock;

const UPDATES: u64 = 4_000_000;
const QUICK_UPDATES: u64 = 10_000;

type Work = fn(threads: usize, n: u64) -> (f64, u64);

const WORKS: [(&str, Role, Work); 5] = [
    ("epoch", Role::Ours, by_epoch),
    ("hazard", Role::Ours, by_hazard),
    ("crossbeam-epoch", Role::Peer, by_crossbeam),
    ("haphazard", Role::Peer, by_haphazard),
    ("seize", Role::Peer, by_seize),
];

/// Prints the tables.
///
/// # Errors
/// Fails when a competitor did not make every update.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_UPDATES } else { UPDATES };
    for threads in [1, 2, 4] {
        let n = n / threads as u64;
        println!("### replace an object and retire the old one, {threads} thread(s), {n} times each\n");
        let competitors = WORKS.map(|(name, role, work)| {
            Competitor::new(name, role, move || {
                let (took, made) = work(threads, n);
                let expected = n * threads as u64;
                if made == expected { Ok(took) } else { Err(Error::new(format!("{made} updates, not {expected}"))) }
            })
        });
        let comparison = alternate(clock::UNIT, 1, args.rounds, competitors.into())?;
        println!("{}\n", comparison.render());
    }
    Ok(())
}

/// The replaced object: 32 bytes.
type Object = [u64; 4];

fn object(number: u64) -> Object {
    [number; 4]
}

/// Gives each thread its own pointer, so that threads share only the reclamation.
fn by_epoch(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        let place = AtomicPtr::new(Box::into_raw(Box::new(object(0))));
        move |n| {
            for number in 1..=n {
                let guard = epoch::pin();
                let old = place.swap(Box::into_raw(Box::new(object(number))), AcqRel);
                // SAFETY: the object came from a box, and the swap has just unlinked it.
                unsafe { guard.retire(old) };
            }
            // SAFETY: the last object is still linked, and no other thread has this pointer.
            unsafe { Box::from_raw(place.into_inner())[0] }
        }
    })
}

fn by_hazard(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        let place = AtomicPtr::new(Box::into_raw(Box::new(object(0))));
        move |n| {
            for number in 1..=n {
                let old = place.swap(Box::into_raw(Box::new(object(number))), AcqRel);
                // SAFETY: the object came from a box, and the swap has just unlinked it.
                unsafe { hazard::retire(old) };
            }
            // SAFETY: the last object is still linked, and no other thread has this pointer.
            unsafe { Box::from_raw(place.into_inner())[0] }
        }
    })
}

fn by_crossbeam(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        let place = crossbeam_epoch::Atomic::new(object(0));
        move |n| {
            for number in 1..=n {
                let guard = crossbeam_epoch::pin();
                let old = place.swap(crossbeam_epoch::Owned::new(object(number)), AcqRel, &guard);
                // SAFETY: the swap has just unlinked the object.
                unsafe { guard.defer_destroy(old) };
            }
            // SAFETY: the last object is still linked, and no other thread has this pointer.
            unsafe { place.into_owned()[0] }
        }
    })
}

fn by_haphazard(threads: usize, n: u64) -> (f64, u64) {
    together(threads, n, |_| {
        let place = haphazard::AtomicPtr::from(Box::new(object(0)));
        move |n| {
            let mut last = 0;
            for number in 1..=n {
                if let Some(old) = place.swap(Box::new(object(number))) {
                    // SAFETY: the swap has just unlinked the object.
                    unsafe { old.retire() };
                }
                last = number;
            }
            last
        }
    })
}

fn by_seize(threads: usize, n: u64) -> (f64, u64) {
    use seize::Guard as _;

    let collector = seize::Collector::new();
    let collector = &collector;
    together(threads, n, |_| {
        let place = AtomicPtr::new(Box::into_raw(Box::new(object(0))));
        move |n| {
            for number in 1..=n {
                let guard = collector.enter();
                let old = guard.swap(&place, Box::into_raw(Box::new(object(number))), AcqRel);
                // SAFETY: the object came from a box, and the swap has just unlinked it.
                unsafe { guard.defer_retire(old, seize::reclaim::boxed) };
            }
            // SAFETY: the last object is still linked, and no other thread has this pointer.
            unsafe { Box::from_raw(place.into_inner())[0] }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_makes_every_update() {
        for (name, _, work) in WORKS {
            assert_eq!(work(2, 1000).1, 2000, "{name}");
        }
    }
}
