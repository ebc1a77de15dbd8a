//! Recorded runs of what each processor has of its own, checked for linearizability: no value of a bag is taken twice or made up,
//! and no addition to a word is lost. And both with a mistake, which the same check must catch: the section is not
//! restarted when its thread loses the processor in the middle. `MILLSTREAM_STRESS=n` makes the runs n times longer; with
//! `MILLSTREAM_PICTURES=folder` what was caught is drawn there.
#![cfg(all(target_os = "linux", not(loom)))]

#[path = "support/length.rs"]
mod length;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use length::stress;
use millstream_history::record::{Log, Recorder};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Op, Options, Verdict, check};
use millstream_sync::percpu::{Bag, Words};

/// Loses the core, sleeps, or does something.
fn busy(round: u64) {
    match round % 32 {
        0 => thread::sleep(Duration::from_micros(30)),
        1..8 => thread::yield_now(),
        _ => (0..round % 100).for_each(|_| std::hint::spin_loop()),
    }
}

fn verdict(history: &History, kind: Kind) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(60)), ..Options::default() };
    check(history, &kind.into(), &options).unwrap()
}

fn assert_holds(history: &History, kind: Kind) {
    let verdict = verdict(history, kind);
    assert_eq!(verdict.holds(), Some(true), "{kind}: {verdict:?}");
}

/// Who takes a value has it until it puts it in. Nothing is promised by "none": other processors may have some.
fn take(bag: &Bag<u64>, log: &mut Log) -> Option<u64> {
    log.begin(Op::ALLOC, ());
    let taken = bag.take();
    match taken {
        Some(value) => log.end(value),
        None => log.fail(),
    }
    taken
}

#[test]
fn a_value_of_a_bag_is_with_one_at_a_time() {
    for threads in [1, 2, 8] {
        let (bag, recorder) = (Bag::new(), Recorder::new().room(1 << 12));
        thread::scope(|scope| {
            for thread in 0..threads {
                let (bag, mut log) = (&bag, recorder.log());
                scope.spawn(move || {
                    let own = 10 * thread..10 * thread + 10;
                    let mut mine: Vec<u64> = own.map(|value| log.record(Op::ALLOC, (), || value)).collect();
                    for round in 0..2000 * stress() {
                        busy(thread + round);
                        if (round + thread) % 5 < 2 {
                            mine.extend(take(bag, &mut log));
                        } else if let Some(value) = mine.pop() {
                            log.record(Op::FREE, value, || bag.put(value));
                        }
                        if round % 400 == 399 {
                            // Whoever drains has what was in there.
                            let drained = bag.drain().unwrap();
                            for &value in &drained {
                                log.record(Op::ALLOC, (), || value);
                            }
                            mine.extend(drained);
                        }
                    }
                    for value in mine {
                        log.record(Op::FREE, value, || bag.put(value));
                    }
                });
            }
        });
        let history = recorder.finish();
        assert_holds(&history, Kind::Allocator);
        let mut left = bag.drain().unwrap();
        left.sort_unstable();
        assert_eq!(left, (0..10 * threads).collect::<Vec<u64>>(), "all are in the bag at last, once each");
    }
}

/// While all add ones, a sum of the copies is the count at some moment of its call.
#[test]
fn additions_of_one_to_a_word_are_counted() {
    for threads in [1, 2, 8] {
        let (words, recorder) = (Words::new(1), Recorder::new().room(1 << 12));
        thread::scope(|scope| {
            for thread in 0..threads {
                let (word, mut log) = (words.word(0), recorder.log());
                scope.spawn(move || {
                    for round in 0..2000 * stress() {
                        busy(thread + round);
                        if round % 8 == 7 {
                            log.record(Op::GET, (), || word.copies().sum::<u64>());
                        } else {
                            log.record(Op::ADD, 1, || word.add(1));
                        }
                    }
                });
            }
        });
        assert_holds(&recorder.finish(), Kind::Counter);
    }
}

fn assert_caught(name: &str, title: &str, history: &History, kind: Kind) {
    let verdict = verdict(history, kind);
    let Verdict::Fails(found) = &verdict else { panic!("{title} was not caught: {verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{title}: {found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join(format!("{name}.svg")), Timeline::new(title, history, &verdict).svg()).unwrap();
    }
}

/// Longer than the clocks of two cores may differ.
fn a_while() {
    thread::sleep(Duration::from_micros(10));
}

/// A processor's copy, added to without a section: its thread loses the processor between the load and the store.
#[test]
fn an_addition_that_is_not_restarted_is_caught() {
    let (copy, recorder) = (AtomicU64::new(0), Recorder::new());
    let add = |between: &mut dyn FnMut()| {
        let before = copy.load(Ordering::Relaxed);
        between();
        copy.store(before + 1, Ordering::Relaxed);
    };
    let (mut stopped, mut next) = (recorder.log(), recorder.log());
    stopped.record(Op::ADD, 1, || {
        add(&mut || {
            // The next thread on this processor.
            a_while();
            (0..3).for_each(|_| next.record(Op::ADD, 1, || add(&mut || ())));
        });
    });
    a_while();
    next.record(Op::GET, (), || copy.load(Ordering::Relaxed));
    drop((stopped, next));
    assert_caught("not-restarted", "an addition that is not restarted", &recorder.finish(), Kind::Counter);
}

/// A processor's list, taken from without a section.
#[test]
fn a_value_that_is_taken_without_a_section_is_caught() {
    let (list, recorder) = (AtomicU64::new(1), Recorder::new());
    let (mut stopped, mut next) = (recorder.log(), recorder.log());
    stopped.record(Op::ALLOC, (), || 1_u64);
    stopped.record(Op::FREE, 1, || list.store(1, Ordering::Relaxed));
    a_while();
    let take = |between: &mut dyn FnMut()| {
        let first = list.load(Ordering::Relaxed);
        between();
        list.store(0, Ordering::Relaxed);
        first
    };
    stopped.begin(Op::ALLOC, ());
    let taken = take(&mut || {
        a_while();
        next.record(Op::ALLOC, (), || take(&mut || ()));
        a_while();
    });
    stopped.end(taken);
    drop((stopped, next));
    assert_caught("taken-in-two-steps", "a list taken from in two steps", &recorder.finish(), Kind::Allocator);
}
