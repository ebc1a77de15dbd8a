//! Recorded histories of allocations and frees, by Nathan Taylor's protocol: no allocation answers with an object that is
//! allocated, and what is freed is allocated. And an allocator with a mistake, which the same check must catch; with
//! `MILLSTREAM_PICTURES=folder` what was caught is drawn there.
#![cfg(not(loom))]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use millstream_history::record::{Log, Recorder};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Op, Options, Verdict, check};
use millstream_slab::{Handle, Slab};

const THREADS: usize = 4;

fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// A history of what `work` does in each thread.
fn record(work: impl Fn(&mut Log, usize) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 12);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut log, work) = (recorder.log(), &work);
            scope.spawn(move || work(&mut log, thread));
        }
    });
    recorder.finish()
}

fn verdict(history: &History) -> Verdict {
    check(history, &Kind::Allocator.into(), &Options::default()).unwrap()
}

#[test]
fn allocation_and_free_are_linearizable_whoever_frees() {
    let slab = Slab::<u64>::options(64).chain(2).caches(THREADS as u64).private().unwrap();
    let passed: Mutex<Vec<Handle>> = Mutex::default();
    let history = record(|log, thread| {
        let cache = slab.cache().unwrap();
        for n in 0..5000 * stress() {
            let alloc = || cache.alloc(n).ok();
            let object = log.record_as(Op::ALLOC, (), alloc, |object| object.as_ref().map(|o| o.handle().index()));
            let Some(object) = object else { continue };
            match (n + thread as u64) % 3 {
                // By its owner, while private.
                0 => log.record(Op::FREE, object.handle().index(), || drop(object)),
                // By whoever comes.
                _ => passed.lock().unwrap().push(object.publish()),
            }
            let other = (n % 2 == 0).then(|| passed.lock().unwrap().pop()).flatten();
            for handle in other.into_iter().chain(if n % 4 == 0 { passed.lock().unwrap().pop() } else { None }) {
                log.record(Op::FREE, handle.index(), || cache.free(handle).unwrap());
            }
        }
    });
    let verdict = verdict(&history);
    assert_eq!(verdict.holds(), Some(true), "{verdict:?}");
    assert!(slab.raw().verify().is_sound());
}

#[test]
fn an_allocator_that_looks_before_it_takes_is_caught() {
    let taken: Vec<AtomicBool> = (0..8).map(|_| AtomicBool::new(false)).collect();
    let alloc = || {
        let free = taken.iter().position(|taken| !taken.load(Ordering::SeqCst))?;
        // The mistake: somebody else may look now, too.
        (0..20).for_each(|_| thread::yield_now());
        taken[free].store(true, Ordering::SeqCst);
        Some(free as u64)
    };
    let together = Barrier::new(THREADS);
    let history = record(|log, _| {
        together.wait();
        for _ in 0..1000 {
            if let Some(object) = log.record(Op::ALLOC, (), alloc) {
                // Held for a while, so that the other allocation can't be taken to be before or after.
                (0..40).for_each(|_| thread::yield_now());
                log.record(Op::FREE, object, || taken[object as usize].store(false, Ordering::SeqCst));
            }
        }
    });
    let verdict = verdict(&history);
    let Verdict::Fails(found) = &verdict else { panic!("it was not caught: {verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        let title = "an allocator that looks before it takes";
        fs::write(folder.join("looked-before-it-took.svg"), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
