//! Hand-offs by the hundred thousand, with naps, yields and changes of core in between. A lost wake-up shows as a
//! time-out.
//!
//! In each round the incrementer adds once and then waits for the answer, so each increment is the last for a while: a
//! flag that it overlooked stays overlooked. `MILLSTREAM_STRESS=n` runs n times as long. Where a heavy fence or a
//! wake-up takes milliseconds, as on a host with other busy virtual machines, there are fewer rounds.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/fences.rs"]
mod fences;

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::parameters::{InPlace, Kind, Many, TwoWord};
use millstream_sync::eventcount::{Count, EventCount, EventCount64, SpinPolicy};
use millstream_verify_random::{Random, stress};

/// No thread is kept from running for this long.
const LOST: Duration = Duration::from_secs(30);

/// A run of rounds ends after this time multiplied by `MILLSTREAM_STRESS`, unless there were fewer than [`MIN_ROUNDS`].
const RUN_TIME: Duration = Duration::from_secs(10);
const MIN_ROUNDS: u64 = 500;

/// The value passed instead of a round's number when there are no more rounds.
const END: u64 = u64::MAX;

/// The payload has no ordering of its own. The counts must order its accesses, and ThreadSanitizer checks that they do.
struct Payload(UnsafeCell<u64>);

// SAFETY: the incrementer writes it once all waiters have answered, and waiters read it when the count says so.
unsafe impl Sync for Payload {}

impl Payload {
    fn put(&self, value: u64) {
        // SAFETY: all waiters have answered and do not read before the next increment.
        unsafe { *self.0.get() = value }
    }

    fn get(&self) -> u64 {
        // SAFETY: the incrementer does not write until this waiter has answered.
        unsafe { *self.0.get() }
    }
}

/// Delays a thread in a random way before it continues.
fn dawdle(random: &mut Random) {
    match random.below(64) {
        0 => thread::yield_now(),
        1 => thread::sleep(Duration::from_micros(random.below(100))),
        2 => move_to_core(random),
        _ => pause(random.below(300)),
    }
}

fn pause(turns: u64) {
    (0..turns).for_each(|_| std::hint::spin_loop());
}

/// Lets this thread run on one random core of those allowed to the process, or on all of them.
fn move_to_core(random: &mut Random) {
    // The number is read only once, because for a thread that was moved to a core, the system would report a single
    // core.
    static CORES: OnceLock<usize> = OnceLock::new();
    let available = || thread::available_parallelism().map_or(1, usize::from).min(libc::CPU_SETSIZE as usize);
    let cores = *CORES.get_or_init(available);
    let one = random.below(2 * cores as u64) as usize;
    // SAFETY: a cpu_set_t of zeros is an empty set; the calls only read and write the set they are given. A refusal (a
    // core that is not allowed) leaves the thread where it is.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for core in (0..cores).filter(|&core| one >= cores || core == one) {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// The number of times this thread has gone to sleep so far.
fn sleeps() -> u64 {
    // SAFETY: an rusage of zeros is valid, and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nvcsw as u64
}

/// Runs one incrementer and `waiters` waiters that answer each increment; returns the number of rounds and of the
/// waiters' sleeps.
fn hand_offs<K: Kind>(rounds: u64, waiters: u64, policy: SpinPolicy, seed: u64) -> (u64, u64) {
    let enough = Instant::now() + RUN_TIME * u32::try_from(stress()).unwrap_or(u32::MAX);
    let mut done = 0;
    let (count, answers) = (Count::<K>::new(), EventCount64::new());
    let (payload, slept) = (Payload(UnsafeCell::new(0)), AtomicU64::new(0));
    thread::scope(|scope| {
        for waiter in 0..waiters {
            let (count, answers, payload, slept) = (&count, &answers, &payload, &slept);
            scope.spawn(move || {
                let mut random = Random::new(seed.wrapping_add(waiter + 1));
                let before = sleeps();
                for round in 1.. {
                    let seen = || (count.value() >= round).then_some(());
                    let deadline = Instant::now() + LOST;
                    let woken = count.wait_for_with(seen, Some(deadline), policy);
                    assert!(
                        woken.is_some() && Instant::now() < deadline,
                        "waiter {waiter} was not woken in round {round}"
                    );
                    let got = payload.get();
                    if got == END {
                        break;
                    }
                    assert_eq!(got, round);
                    dawdle(&mut random);
                    answers.increment();
                }
                slept.fetch_add(sleeps() - before, Relaxed);
            });
        }
        let mut random = Random::new(seed);
        for round in 1.. {
            let ends = round > rounds || (round > MIN_ROUNDS && Instant::now() > enough);
            payload.put(if ends { END } else { round });
            // SAFETY: no other thread increments this count.
            unsafe { count.add_waking_unchecked(1, usize::MAX) }
            if ends {
                done = round - 1;
                break;
            }
            let answered = || (answers.value() == round * waiters).then_some(());
            let deadline = Instant::now() + 2 * LOST;
            assert!(
                answers.wait_for_with(answered, Some(deadline), SpinPolicy::DEFAULT).is_some(),
                "no answer in round {round}"
            );
            dawdle(&mut random);
        }
    });
    (done, slept.into_inner())
}

fn no_wake_up_is_lost<K: Kind>(name: &str) {
    let seed = millstream_verify_random::seed();
    for (waiters, rounds) in [(1, 40_000), (2, 15_000), (6, 2_000)] {
        let asked = rounds * stress();
        let (rounds, slept) = hand_offs::<K>(asked, waiters, SpinPolicy::NONE, seed);
        println!("{name}: {rounds} rounds, {waiters} waiters, {slept} sleeps");
        assert!(slept > rounds / 100, "the waiters slept only {slept} times");
        hand_offs::<K>(asked / 4, waiters, SpinPolicy::DEFAULT.spins(20), seed);
    }
}

#[test]
fn many_32_no_wake_up_is_lost() {
    no_wake_up_is_lost::<Many<u32>>("many, 32 bits");
}

#[test]
fn sole_32_no_wake_up_is_lost() {
    no_wake_up_is_lost::<InPlace<u32>>("sole, 32 bits");
}

#[test]
fn sole_64_no_wake_up_is_lost() {
    no_wake_up_is_lost::<InPlace<u64>>("sole, 64 bits");
}

#[test]
fn two_word_32_no_wake_up_is_lost() {
    no_wake_up_is_lost::<TwoWord<u32>>("two words, 32 bits");
}

#[test]
fn two_word_64_no_wake_up_is_lost() {
    no_wake_up_is_lost::<TwoWord<u64>>("two words, 64 bits");
}

/// A semaphore. Each permit wakes one thread, so a lost wake-up leaves both a permit and a sleeper.
#[test]
fn waking_one_at_a_time_leaves_no_item_behind() {
    let seed = millstream_verify_random::seed();
    let (each, takers, putters) = (20_000 * stress(), 4, 2);
    let (items, count) = (AtomicU64::new(0), EventCount::new());
    let taken = AtomicU64::new(0);
    let total = each * putters;
    thread::scope(|scope| {
        for taker in 0..takers {
            let (items, count, taken) = (&items, &count, &taken);
            scope.spawn(move || {
                let mut random = Random::new(seed + taker);
                let take = || {
                    let one = items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1)).ok();
                    one.or((taken.load(Relaxed) == total).then_some(0))
                };
                loop {
                    let deadline = Instant::now() + LOST;
                    let item = count.wait_for_with(take, Some(deadline), SpinPolicy::NONE);
                    assert!(Instant::now() < deadline, "taker {taker} was not woken");
                    match item {
                        None | Some(0) => break,
                        Some(_) if taken.fetch_add(1, Relaxed) + 1 == total => count.increment(),
                        Some(_) => dawdle(&mut random),
                    }
                }
            });
        }
        for putter in 0..putters {
            let (items, count) = (&items, &count);
            scope.spawn(move || {
                let mut random = Random::new(seed + takers + putter);
                for _ in 0..each {
                    items.fetch_add(1, Relaxed);
                    count.add_waking(1, 1);
                    dawdle(&mut random);
                }
            });
        }
    });
    assert_eq!((taken.into_inner(), items.into_inner()), (total, 0));
}

#[test]
fn no_wake_up_is_lost_with_symmetric_fences() {
    fences::again_with_symmetric_fences("no_wake_up_is_lost_with_symmetric_fences");
}
