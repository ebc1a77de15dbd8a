//! The narrow race: the waiter sets its flag while the incrementer's last store is still on its way to memory.
//!
//! This is a separate program, because the two threads meet only if no other test runs. Without the fence that makes up
//! for overwritten flags, the test fails now and then; the larger `MILLSTREAM_STRESS` is, the more often it fails. The
//! proof is the model in `verify/tso`.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/fences.rs"]
mod fences;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use millstream_sync::eventcount::Count;
use millstream_sync::eventcount::parameters::{InPlace, Kind, TwoWord};
use millstream_verify_random::{Random, stress};

/// No thread is kept from running for this long.
const LOST: Duration = Duration::from_secs(60);

/// A test ends after this time multiplied by `MILLSTREAM_STRESS`, unless there were fewer than [`MIN_ROUNDS`].
const RUN_TIME: Duration = Duration::from_secs(10);
const MIN_ROUNDS: u64 = 1000;

/// Serializes the tests: their two threads need a core each to meet.
static ALONE: Mutex<()> = Mutex::new(());

/// Cache lines that both threads write, so that the other thread's next store to them takes a long time.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The incrementer's last store is delayed for a long time, behind stores that wait for their cache lines. At that
/// moment the waiter sets its flag.
fn a_flag_set_while_the_sum_is_on_its_way_is_seen<K: Kind>() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = millstream_verify_random::seed();
    let enough = Instant::now() + RUN_TIME * u32::try_from(stress()).unwrap_or(u32::MAX);
    let last = Line(AtomicU64::new(60_000 * stress()));
    let (count, answer) = (Count::<K>::new(), AtomicU64::new(0));
    let lines: [Line; 4] = Default::default();
    let write = |value| lines.iter().for_each(|line| line.0.store(value, Relaxed));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(!seed);
            for round in 1.. {
                write(round);
                let key = count.key_of(round - 1);
                answer.store(round, Release);
                delay(random.below(100));
                finish(count.wait_async(key), round);
                if round == last.0.load(Relaxed) {
                    break;
                }
            }
        });
        let mut random = Random::new(seed);
        for round in 1.. {
            let deadline = Instant::now() + 2 * LOST;
            let mut looks = 0_u32;
            while answer.load(Acquire) < round {
                looks = looks.saturating_add(1);
                if looks > 100_000 {
                    thread::sleep(Duration::from_micros(10));
                    assert!(Instant::now() < deadline, "no answer in round {round}");
                }
            }
            if round >= MIN_ROUNDS && round.is_multiple_of(256) && Instant::now() > enough {
                last.0.store(round, Relaxed); // the count carries it
            }
            let ends = round == last.0.load(Relaxed);
            delay(random.below(400));
            write(round);
            // SAFETY: no other thread increments this count.
            unsafe { count.add_waking_unchecked(1, usize::MAX) }
            if ends {
                break;
            }
        }
    });
}

/// Waits as a task does. For a thread that falls asleep, the kernel would check the count, and by then the store would
/// have arrived.
fn finish(mut future: impl Future<Output = ()> + Unpin, round: u64) {
    let alarm = Arc::new(Alarm { rung: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(Arc::clone(&alarm));
    let deadline = Instant::now() + LOST;
    while Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending() {
        while !alarm.rung.swap(false, Acquire) {
            assert!(Instant::now() < deadline, "not woken in round {round}");
            thread::park_timeout(LOST);
        }
    }
}

struct Alarm {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Release);
        self.thread.unpark();
    }
}

/// Delays the thread by about a nanosecond per turn.
fn delay(turns: u64) {
    (0..turns).for_each(|turn| {
        std::hint::black_box(turn);
    });
}

#[test]
fn sole_32_a_flag_set_while_the_sum_is_on_its_way_is_seen() {
    a_flag_set_while_the_sum_is_on_its_way_is_seen::<InPlace<u32>>();
}

#[test]
fn sole_64_a_flag_set_while_the_sum_is_on_its_way_is_seen() {
    a_flag_set_while_the_sum_is_on_its_way_is_seen::<InPlace<u64>>();
}

#[test]
fn two_word_64_a_flag_set_while_the_sum_is_on_its_way_is_seen() {
    a_flag_set_while_the_sum_is_on_its_way_is_seen::<TwoWord<u64>>();
}

#[test]
fn the_flag_is_seen_with_symmetric_fences() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    fences::again_with_symmetric_fences("the_flag_is_seen_with_symmetric_fences");
}
