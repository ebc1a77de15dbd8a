//! Recorded histories of allocations and frees, by Nathan Taylor's protocol: no allocation returns an object that is
//! allocated, and only an allocated object is freed. A twin (a copy with a deliberate mistake) must fail the same
//! check; with `MILLSTREAM_PICTURES=folder` its rejected history is drawn there.
#![cfg(not(loom))]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Op, Options, Verdict, check};
use millstream_recorder::{Log, Preemption, Recorder};
use millstream_slab::{Handle, Parcel, Slab};
use millstream_verify_random::stress;

/// The default number of threads; the other cases are a single thread, one per core, and several per core.
const THREADS: usize = 4;
const EACH_THREADS: [usize; 4] = [1, 2, THREADS, 8];
/// The maximum number of objects in a parcel.
const PARCEL: usize = 4;

/// Records a history of `work` in each thread, with random preemptions. A thread has as many logs as a parcel has
/// objects.
fn record(threads: usize, work: impl Fn(&mut [Log; PARCEL], usize) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 12);
    let preemption = Preemption::start().unwrap();
    thread::scope(|scope| {
        for thread in 0..threads {
            let (mut logs, work) = ([(); PARCEL].map(|()| recorder.log()), &work);
            scope.spawn(move || work(&mut logs, thread));
        }
    });
    drop(preemption); // preemption would disturb the measurement at the end
    recorder.finish()
}

fn verdict(history: &History) -> Verdict {
    check(history, &Kind::Allocator.into(), &Options::default()).unwrap()
}

fn assert_holds(history: &History) {
    let verdict = verdict(history);
    assert_eq!(verdict.holds(), Some(true), "{verdict:?}");
}

#[test]
fn allocation_and_free_are_linearizable_from_any_thread() {
    for threads in EACH_THREADS {
        let slab = Slab::<u64>::options(64).chain(2).caches(threads as u64).private().unwrap();
        let passed: Mutex<Vec<Handle>> = Mutex::default();
        let history = record(threads, |[log, ..], thread| {
            let cache = slab.cache().unwrap();
            for n in 0..3000 * stress() {
                let alloc = || cache.alloc(n).ok();
                let object = log.record_as(Op::ALLOC, (), alloc, |object| object.as_ref().map(|o| o.handle().index()));
                let Some(object) = object else { continue };
                match (n + thread as u64) % 3 {
                    // The owner frees the object while it is private.
                    0 => log.record(Op::FREE, object.handle().index(), || drop(object)),
                    // Any thread frees the object.
                    _ => passed.lock().unwrap().push(object.publish()),
                }
                let other = (n % 2 == 0).then(|| passed.lock().unwrap().pop()).flatten();
                if let Some(handle) = other {
                    log.record(Op::FREE, handle.index(), || cache.free(handle).unwrap());
                }
                let other = (n % 4 == 0).then(|| passed.lock().unwrap().pop()).flatten();
                if let Some(handle) = other {
                    log.record(Op::FREE, handle.index(), || drop(cache.claim(handle).unwrap()));
                }
            }
        });
        assert_holds(&history);
        assert!(slab.raw().verify().is_sound());
    }
}

/// A parcel's objects are freed one at a time, or all at once; in the history, freeing all at once counts as one free
/// per object, each by a separate process.
#[test]
fn objects_of_a_parcel_are_freed_once() {
    for threads in EACH_THREADS {
        let caches = 3 * threads as u64;
        // There are fewer objects than the parcels have room for.
        let slab = Slab::<u64>::options(caches * PARCEL as u64 / 2).chain(2).caches(caches).private().unwrap();
        let parcels = (0..2 * threads).map(|_| (slab.parcel().unwrap(), Vec::new()));
        let passed: Mutex<Vec<(Parcel<u64>, Vec<u64>)>> = Mutex::new(parcels.collect());
        let history = record(threads, |logs, thread| {
            let cache = slab.cache().unwrap();
            for n in 0..2000 * stress() {
                let (mut parcel, mut objects) = passed.lock().unwrap().pop().expect("two for each thread");
                let turn = (n + thread as u64) % 4;
                if let 0 | 2 = turn {
                    objects.iter().zip(&mut *logs).for_each(|(&object, log)| log.begin(Op::FREE, object));
                    let raw = parcel.raw();
                    if turn == 0 { raw.free(cache.raw()) } else { raw.clear(cache.raw()) }.unwrap();
                    objects.drain(..).zip(&mut *logs).for_each(|(_, log)| log.end(()));
                }
                let [log, ..] = logs;
                if turn == 1 {
                    while let Some(object) = parcel.pop(&cache).unwrap() {
                        assert_eq!(Some(object.handle().index()), objects.pop());
                        log.record(Op::FREE, object.handle().index(), || drop(object));
                    }
                }
                while objects.len() < PARCEL {
                    log.begin(Op::ALLOC, ());
                    // Allocates either straight into the parcel, from which the object is taken again to read its
                    // index, or from the cache.
                    let object = if (n + objects.len() as u64).is_multiple_of(2) {
                        parcel.alloc(&cache, n).ok().and_then(|()| parcel.pop(&cache).unwrap())
                    } else {
                        cache.alloc(n).ok()
                    };
                    log.end(object.as_ref().map(|object| object.handle().index()));
                    let Some(object) = object else { break };
                    objects.push(object.handle().index());
                    parcel.push(object).unwrap();
                }
                // Puts the parcel back at a random position among those that wait for a thread.
                let mut passed = passed.lock().unwrap();
                let place = n as usize % (passed.len() + 1);
                passed.insert(place, (parcel, objects));
            }
        });
        assert_holds(&history);
        drop(passed);
        assert_eq!(slab.raw().usage().allocated(), 0);
        assert!(slab.raw().verify().is_sound());
    }
}

/// The maximum number of runs in which the twin's mistake may stay unseen.
const MAX_RUNS: u32 = 200;

/// Records a history of the twin, which first finds a free object and then takes it.
fn looked_before_it_took() -> History {
    let taken: Vec<AtomicBool> = (0..8).map(|_| AtomicBool::new(false)).collect();
    let alloc = || {
        let free = taken.iter().position(|taken| !taken.load(Ordering::SeqCst))?;
        // The mistake: another thread may find the same object at this moment.
        (0..20).for_each(|_| thread::yield_now());
        taken[free].store(true, Ordering::SeqCst);
        Some(free as u64)
    };
    let together = Barrier::new(THREADS);
    record(THREADS, |[log, ..], _| {
        together.wait();
        for _ in 0..1000 {
            if let Some(object) = log.record(Op::ALLOC, (), alloc) {
                // The object is held for a while, so that the other allocation can't be linearized before or after.
                (0..40).for_each(|_| thread::yield_now());
                log.record(Op::FREE, object, || taken[object as usize].store(false, Ordering::SeqCst));
            }
        }
    })
}

#[test]
fn an_allocator_that_looks_before_it_takes_is_caught() {
    let fails = |history: &History| verdict(history).holds() == Some(false);
    let history = (0..MAX_RUNS).map(|_| looked_before_it_took()).find(fails);
    let history = history.unwrap_or_else(|| panic!("it was not caught in {MAX_RUNS} runs"));
    let verdict = verdict(&history);
    let Verdict::Fails(found) = &verdict else { panic!("{verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        let title = "an allocator that looks before it takes";
        fs::write(folder.join("looked-before-it-took.svg"), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
