//! Per-CPU data: no value of a bag is taken twice or made up, no addition to a word is lost, and a thread stores
//! nothing after it has lost its lock. The twins' sections do not restart when the thread loses its processor during
//! the section.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::decided::assert_holds_once_decided;
use crate::recorded::{a_while, disturb, record};
use crate::sources::again_with_other_areas;
use crate::verdict::{assert_caught, assert_holds};
use millstream_history::{History, Kind, Op};
use millstream_recorder::{Log, Recorder};
use millstream_sync::percpu::{Bag, Revocable, Words};
use millstream_verify_random::{Random, stress};

#[test]
fn with_other_areas() {
    again_with_other_areas("with_other_areas", "percpu::");
}

/// Takes a value, which the thread owns until it puts it back. "None" promises nothing: other processors may have some.
fn take(bag: &Bag<u64>, log: &mut Log) -> Option<u64> {
    log.begin(Op::ALLOC, ());
    let taken = bag.take();
    match taken {
        Some(value) => log.end(value),
        None => log.fail(),
    }
    taken
}

/// Drains the bag, whose values the thread then owns.
fn drain(bag: &Bag<u64>, log: &mut Log) -> Vec<u64> {
    let drained = bag.drain().unwrap();
    for &value in &drained {
        log.record(Op::ALLOC, (), || value);
    }
    drained
}

#[test]
fn a_bag_s_value_has_one_owner_at_a_time() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 8] {
        let bag = Bag::new();
        let history = record(threads, &mut random, |log, random| {
            let first = 10 * u64::from(log.process());
            let mut mine: Vec<u64> = (first..first + 10).map(|value| log.record(Op::ALLOC, (), || value)).collect();
            for round in 1..=8000 * stress() {
                disturb(random);
                if random.below(5) < 2 {
                    mine.extend(take(&bag, log));
                } else if let Some(value) = mine.pop() {
                    log.record(Op::FREE, value, || bag.put(value));
                }
                if round % 400 == 0 {
                    mine.extend(drain(&bag, log));
                }
            }
            for value in mine {
                log.record(Op::FREE, value, || bag.put(value));
            }
        });
        assert_holds(&history, Kind::Allocator);
        let mut left = bag.drain().unwrap();
        left.sort_unstable();
        assert_eq!(
            left,
            (0..10 * threads).collect::<Vec<u64>>(),
            "not every value is in the bag exactly once at the end"
        );
    }
}

/// While all threads add ones, a sum of the copies is the count at some moment of its call.
#[test]
fn additions_of_one_to_a_word_are_counted() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 8] {
        assert_holds_once_decided(Kind::Counter, || {
            let words = Words::new(1);
            let word = words.word(0);
            record(threads, &mut random, |log, random| {
                for _ in 0..8000 * stress() {
                    disturb(random);
                    if random.below(8) == 0 {
                        log.record(Op::GET, (), || word.copies().sum::<u64>());
                    } else {
                        log.record(Op::ADD, 1, || word.add(1));
                    }
                }
            })
        });
    }
}

/// The owner of the lock keeps counting as long as it owns the lock: it reads the count once, and then only stores. A
/// store after the loss of the lock would undo the next owner's count.
#[test]
fn a_thread_that_lost_a_revocable_lock_stores_no_more() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 8] {
        assert_holds_once_decided(Kind::FetchAdd, || {
            let (lock, place) = (Revocable::new(), AtomicU64::new(0));
            record(threads, &mut random, |log, random| {
                for _ in 0..4000 * stress() {
                    disturb(random);
                    let ownership = match random.below(8) {
                        0 => lock.revoke(),
                        1..4 => lock.own(),
                        _ => match lock.try_own() {
                            Some(ownership) => ownership,
                            None => continue,
                        },
                    };
                    let first = place.load(Ordering::Acquire);
                    for count in first..first + random.below(8) {
                        disturb(random);
                        log.begin(Op::FETCH_ADD, 1);
                        if ownership.store(&place, count + 1).is_err() {
                            log.fail();
                            break;
                        }
                        log.end(count);
                    }
                }
                log.record(Op::READ, (), || place.load(Ordering::Acquire));
            })
        });
    }
}

/// Adds to a processor's copy without a section: the thread loses the processor between the load and the store.
fn not_restarted() -> History {
    let (copy, recorder) = (AtomicU64::new(0), Recorder::new());
    let add = |between: &mut dyn FnMut()| {
        let before = copy.load(Ordering::Relaxed);
        between();
        copy.store(before + 1, Ordering::Relaxed);
    };
    let (mut stopped, mut next) = (recorder.log(), recorder.log());
    stopped.record(Op::ADD, 1, || {
        add(&mut || {
            // These are the operations of the next thread on this processor.
            a_while();
            (0..3).for_each(|_| next.record(Op::ADD, 1, || add(&mut || ())));
        });
    });
    a_while();
    next.record(Op::GET, (), || copy.load(Ordering::Relaxed));
    drop((stopped, next));
    recorder.finish()
}

#[test]
fn an_addition_that_is_not_restarted_is_caught() {
    assert_caught("not-restarted", "an addition that is not restarted", Kind::Counter, not_restarted);
}

/// Takes from a processor's list without a section.
fn taken_in_two_steps() -> History {
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
    recorder.finish()
}

#[test]
fn a_value_that_is_taken_without_a_section_is_caught() {
    assert_caught("taken-in-two-steps", "a list taken from in two steps", Kind::Allocator, taken_in_two_steps);
}

/// A lock's holder checks that it still owns the lock and then stores, without a section: it loses the lock between the
/// two.
fn stored_after_the_loss() -> History {
    let (owner, place, recorder) = (AtomicU64::new(1), AtomicU64::new(0), Recorder::new());
    let store = |me: u64, value: u64, between: &mut dyn FnMut()| {
        let mine = owner.load(Ordering::Relaxed) == me;
        between();
        if mine {
            place.store(value, Ordering::Relaxed);
        }
        mine
    };
    let (mut first, mut second) = (recorder.log(), recorder.log());
    first.begin(Op::FETCH_ADD, 1);
    assert!(store(1, 1, &mut || {
        owner.store(2, Ordering::Relaxed);
        for count in 0..3 {
            a_while();
            second.begin(Op::FETCH_ADD, 1);
            assert!(store(2, count + 1, &mut || ()));
            second.end(count);
        }
    }));
    first.end(0);
    a_while();
    second.record(Op::READ, (), || place.load(Ordering::Relaxed));
    drop((first, second));
    recorder.finish()
}

#[test]
fn a_store_after_the_lock_was_taken_away_is_caught() {
    let title = "a store after the lock was taken away";
    assert_caught("stored-after-the-loss", title, Kind::FetchAdd, stored_after_the_loss);
}
