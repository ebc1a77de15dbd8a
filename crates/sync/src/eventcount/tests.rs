//! Counts of the futex calls that waits and increments make, which only a test inside the crate can see.

use std::time::{Duration, Instant};

use super::parameters::{InPlace, Kind, Many, TwoWord};
use super::sleep::count::system_calls;
use super::{Count, EventCount, Incrementer, SpinPolicy, Waited};

/// Number of futex calls that `work` makes on this thread.
fn calls(work: impl FnOnce()) -> u64 {
    let before = system_calls();
    work();
    system_calls() - before
}

fn increment<K: Kind>(count: &Count<K>) {
    // SAFETY: only this thread uses the count, so no other increment runs.
    unsafe { count.add_waking_unchecked(1, usize::MAX) }
}

fn without_sleepers<K: Kind>() {
    let count = Count::<K>::new();
    assert_eq!(calls(|| (0..1_000_000).for_each(|_| increment(&count))), 0);
    let key = count.snapshot();
    increment(&count);
    assert_eq!(calls(|| count.wait(key)), 0, "a waiter sees a change without sleeping");
}

#[test]
fn without_sleepers_a_million_increments_make_no_system_call() {
    without_sleepers::<Many<u32>>();
    without_sleepers::<Many<u64>>();
    without_sleepers::<InPlace<u32>>();
    without_sleepers::<InPlace<u64>>();
    without_sleepers::<TwoWord<u32>>();
    without_sleepers::<TwoWord<u64>>();
}

/// Waits until a deadline passes, and repeats that until a wait has slept on the futex.
fn sleep_until_timeout<K: Kind>(count: &Count<K>) {
    let wait = || {
        let soon = Instant::now() + Duration::from_millis(2);
        assert_eq!(count.wait_with(count.snapshot(), Some(soon), SpinPolicy::NONE), Waited::TimedOut);
    };
    while calls(wait) == 0 {}
}

fn gave_up<K: Kind>(most: u64) {
    let count = Count::<K>::new();
    sleep_until_timeout(&count);
    let calls = calls(|| (0..1000).for_each(|_| increment(&count)));
    assert!((1..=most).contains(&calls), "{calls}");
}

#[test]
fn an_abandoned_wait_costs_one_system_call() {
    gave_up::<Many<u32>>(1);
    gave_up::<InPlace<u32>>(1);
    gave_up::<InPlace<u64>>(1);
    gave_up::<TwoWord<u64>>(1);
}

#[test]
fn a_waiter_that_naps_costs_the_incrementer_nothing() {
    let count = EventCount::new();
    let policy = SpinPolicy::NONE.naps(u32::MAX, Duration::from_micros(100));
    let soon = Instant::now() + Duration::from_millis(5);
    let waiting = calls(|| {
        let _ = count.wait_with(count.snapshot(), Some(soon), policy);
    });
    assert_eq!(waiting, 0, "the waiter slept on the futex");
    assert_eq!(calls(|| count.increment()), 0);
}

fn waking_few<K: Kind>() {
    let count = Count::<K>::new();
    sleep_until_timeout(&count);
    // SAFETY: only this thread uses the count, so no other increment runs.
    let calls = calls(|| (0..1000).for_each(|_| unsafe { count.add_waking_unchecked(1, 1) }));
    assert!((1..=2).contains(&calls), "the flag outlived the last waiter: {calls} system calls");
}

#[test]
fn waking_one_without_waiters_ends_the_system_calls() {
    waking_few::<Many<u32>>();
    waking_few::<InPlace<u64>>();
    waking_few::<TwoWord<u32>>();
}

/// The first sum has the flag set, as when a waiter sets the flag in the middle of an increment.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_flagged_sum_wakes_and_the_next_increment_clears_the_flag() {
    let count = Count::<InPlace<u32>>::starting_at(u64::MAX);
    let each: Vec<u64> = (0..4).map(|_| calls(|| increment(&count))).collect();
    assert_eq!((each, count.value()), (vec![1, 1, 0, 0], 3));
}

/// A waiter whose key is old does not set the flag, so it costs the incrementer nothing.
fn late<K: Kind>() {
    let count = Count::<K>::new();
    let calls = calls(|| {
        for _ in 0..1000 {
            let key = count.snapshot();
            increment(&count);
            assert_eq!(count.wait_with(key, None, SpinPolicy::NONE), Waited::Changed);
        }
    });
    assert_eq!(calls, 0);
}

#[test]
fn a_wait_for_a_change_that_has_happened_costs_no_system_call() {
    late::<Many<u32>>();
    late::<InPlace<u32>>();
    late::<InPlace<u64>>();
    late::<TwoWord<u32>>();
    late::<TwoWord<u64>>();
}

#[test]
fn an_incrementer_goes_on_from_the_count_it_finds_and_wraps_around() {
    let mut count = Count::<TwoWord<u32>>::starting_at(u64::from(u32::MAX) - 1);
    let key = count.snapshot();
    let (mut incrementer, reader) = count.split();
    let mut values = Vec::new();
    for n in [1, 0, 1, 1 << 32, 3] {
        incrementer.add(n);
        values.push(reader.value());
    }
    assert_eq!(values, [u32::MAX.into(), u32::MAX.into(), 0, 0, 3]);
    // The first incrementer is gone. The next one continues from the current count.
    increment(&count);
    count.split().0.add(1);
    assert_eq!((count.value(), count.has_changed(key)), (5, true));
}

/// An incrementer has a copy of the count, so a second incrementer would make it lose increments and wake-ups.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "another incrementer")]
fn a_build_for_debugging_notices_a_second_incrementer() {
    let count = Count::<TwoWord<u32>>::new();
    // SAFETY: the contract is broken on purpose. Only this thread uses the count, so at worst increments are lost.
    let mut incrementer = unsafe { Incrementer::new(&count) };
    increment(&count);
    incrementer.increment();
}
