//! What only an inside view shows: the system calls that are made, and those that are not.

use std::time::{Duration, Instant};

use super::sleep::count::system_calls;
use super::{Count, EventCount, Kind, Many, Patience, Sole, TwoWord, Waited};

/// The futex calls that `work` makes on this thread.
fn calls(work: impl FnOnce()) -> u64 {
    let before = system_calls();
    work();
    system_calls() - before
}

fn increment<K: Kind>(count: &Count<K>) {
    // SAFETY: each count of these tests belongs to one thread.
    unsafe { count.add_unchecked(1) }
}

fn nobody_asleep<K: Kind>() {
    let count = Count::<K>::new();
    assert_eq!(calls(|| (0..1_000_000).for_each(|_| increment(&count))), 0);
    let key = count.snapshot();
    increment(&count);
    assert_eq!(calls(|| count.wait(key)), 0, "a change is seen without sleeping");
}

#[test]
fn without_sleepers_a_million_increments_make_no_system_call() {
    nobody_asleep::<Many<u32>>();
    nobody_asleep::<Many<u64>>();
    nobody_asleep::<Sole<u32>>();
    nobody_asleep::<Sole<u64>>();
    nobody_asleep::<TwoWord<u32>>();
    nobody_asleep::<TwoWord<u64>>();
}

/// Sleeps for a moment, which is not over before it sleeps.
fn sleep_in_vain<K: Kind>(count: &Count<K>) {
    let wait = || {
        let soon = Instant::now() + Duration::from_millis(2);
        assert_eq!(count.wait_patiently(count.snapshot(), Some(soon), &Patience::NONE), Waited::TimedOut);
    };
    while calls(wait) == 0 {}
}

fn gave_up<K: Kind>(most: u64) {
    let count = Count::<K>::new();
    sleep_in_vain(&count);
    let calls = calls(|| (0..1000).for_each(|_| increment(&count)));
    assert!((1..=most).contains(&calls), "{calls}");
}

#[test]
fn who_gives_up_costs_the_next_increment_one_system_call_and_the_others_none() {
    gave_up::<Many<u32>>(1);
    gave_up::<Sole<u32>>(1);
    gave_up::<Sole<u64>>(1);
    gave_up::<TwoWord<u64>>(1);
}

#[test]
fn a_waiter_that_naps_costs_the_incrementer_nothing() {
    let count = EventCount::new();
    let patience = Patience::NONE.naps(u32::MAX, Duration::from_micros(100));
    let soon = Instant::now() + Duration::from_millis(5);
    let waiting = calls(|| {
        let _ = count.wait_patiently(count.snapshot(), Some(soon), &patience);
    });
    assert_eq!(waiting, 0, "it did not sleep on the futex");
    assert_eq!(calls(|| count.increment()), 0);
}

fn waking_few<K: Kind>() {
    let count = Count::<K>::new();
    sleep_in_vain(&count);
    // SAFETY: the count belongs to this thread.
    let calls = calls(|| (0..1000).for_each(|_| unsafe { count.add_waking_unchecked(1, 1) }));
    assert!((1..=2).contains(&calls), "the flag goes when nobody is left: {calls}");
}

#[test]
fn waking_one_where_nobody_is_left_ends_the_system_calls() {
    waking_few::<Many<u32>>();
    waking_few::<Sole<u64>>();
    waking_few::<TwoWord<u32>>();
}

/// What also happens when the flag is set in the middle of an increment: the sum has it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sum_with_the_flag_wakes_and_the_next_increment_removes_the_flag() {
    let count = Count::<Sole<u32>>::starting_at(u64::MAX);
    let each: Vec<u64> = (0..4).map(|_| calls(|| increment(&count))).collect();
    assert_eq!((each, count.value()), (vec![1, 1, 0, 0], 3));
}
