//! Revocable locks, bags that another thread drains, and the activity of other threads, with every kind of rseq area.
#![cfg(all(feature = "std", not(loom)))]

#[path = "../examples/flat_combining.rs"]
mod flat_combining;
#[path = "support/sources.rs"]
mod sources;

use millstream_sync::percpu::{Activity, Bag, Revocable, activity};
use millstream_verify_random::{seed, stress};
use std::hint;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;
use std::time::{Duration, Instant};

/// This thread's id in the kernel.
fn me() -> i32 {
    // SAFETY: `gettid` has no preconditions.
    unsafe { libc::gettid() }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: this did not happen within a minute");
        thread::yield_now();
    }
}

#[test]
fn a_lock_has_one_owner_at_a_time() {
    let (lock, place) = (Revocable::new(), AtomicU64::new(0));
    let first = lock.try_own().unwrap();
    assert!(lock.try_own().is_none() && first.is_ours());
    first.store(&place, 1).unwrap();
    let second = lock.revoke();
    assert!(!first.is_ours() && second.is_ours());
    first.store(&place, 2).unwrap_err();
    drop(first);
    assert!(lock.try_own().is_none(), "a former owner released the lock of the new one");
    second.store(&place, 3).unwrap();
    drop(second);
    assert_eq!(place.load(Relaxed), 3);
    assert!(lock.try_own().is_some());
}

#[test]
fn no_store_is_made_after_the_lock_was_taken_away() {
    let began = Instant::now();
    let until = began + Duration::from_millis(700) * stress() as u32;
    let (lock, place, over) = (Revocable::new(), AtomicU64::new(0), AtomicBool::new(false));
    let (mut broken, mut kept) = (0, 0);
    thread::scope(|scope| {
        for thread in 1..=2 {
            let (lock, place, over) = (&lock, &place, &over);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    if let Some(ownership) = lock.try_own() {
                        while !over.load(Relaxed) && ownership.store(place, thread).is_ok() {}
                    }
                }
            });
        }
        while Instant::now() < until || (kept <= 100 && began.elapsed() < Duration::from_secs(60)) {
            let ownership = lock.revoke();
            ownership.store(&place, 7).unwrap();
            // From now on no other thread may store. These loads check that for a while.
            if (0..100).any(|_| place.load(Relaxed) != 7) {
                broken += 1;
            }
            kept += 1;
        }
        over.store(true, Relaxed);
    });
    assert!(kept > 100, "the lock was taken away in only {kept} rounds");
    assert_eq!(broken, 0, "a former owner stored in some of {kept} rounds");
}

#[test]
fn flat_combining_gives_each_ticket_once() {
    flat_combining::main();
}

/// Delays between the steps of combiners and readers cause locks to be taken away in the middle, and versions to be
/// rewritten while they are read.
#[test]
fn flat_combining_gives_each_ticket_once_with_delays_anywhere() {
    let step = AtomicU64::new(seed());
    let pause = || {
        // The number is a hash of the step's number, so that all threads draw from one sequence.
        let random = step.fetch_add(1, Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        match random % 16 {
            0 => thread::sleep(Duration::from_micros(random >> 4 & 127)),
            1..4 => thread::yield_now(),
            _ => {}
        }
    };
    let tickets = flat_combining::draw_all(2000 * stress(), pause);
    assert!(flat_combining::each_once(tickets));
}

#[test]
fn a_holder_that_sleeps_loses_the_lock() {
    let (lock, place) = (Revocable::new(), AtomicU64::new(0));
    let (held, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let ownership = lock.own();
            held.store(true, SeqCst);
            while !over.load(SeqCst) {
                thread::sleep(Duration::from_millis(50));
            }
            assert!(ownership.store(&place, 1).is_err());
        });
        eventually("the thread holds the lock", || held.load(SeqCst));
        let ownership = lock.own();
        ownership.store(&place, 2).unwrap();
        over.store(true, SeqCst);
    });
    assert_eq!(place.load(Relaxed), 2);
}

#[test]
fn a_thread_runs_is_preempted_sleeps_or_has_ended() {
    assert_eq!(activity(me()), Activity::Running);
    let (other, state) = (AtomicI32::new(0), Mutex::new(()));
    let over = AtomicBool::new(false);
    let guard = state.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            other.store(me(), SeqCst);
            drop(state.lock().unwrap());
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        eventually("it starts", || other.load(SeqCst) != 0);
        let other = other.load(SeqCst);
        eventually("it sleeps", || activity(other) == Activity::Asleep);
        drop(guard);
        eventually("it runs", || activity(other) == Activity::Running);
        // The two threads share one processor: while this thread is running, the other is not. SAFETY: the masks are
        // valid, and the threads belong to this test.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
            for thread in [me(), other] {
                assert_eq!(libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &one), 0);
            }
        }
        eventually("the thread is preempted", || activity(other) == Activity::Preempted);
        over.store(true, Relaxed);
    });
    let other = other.into_inner();
    eventually("it ends", || activity(other) == Activity::Ended);
}

/// Counts its living instances.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicU64) -> Self {
        alive.fetch_add(1, Relaxed);
        Counted(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn a_value_put_into_a_bag_comes_out_once() {
    let alive = AtomicU64::new(0);
    let bag = Bag::new();
    let until = Instant::now() + Duration::from_millis(500) * stress() as u32;
    let (puts, takes) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < until {
                    for _ in 0..20 {
                        bag.put(Counted::new(&alive));
                    }
                    puts.fetch_add(20, Relaxed);
                    // This takes as many values as were put in, so a drain has little to drop, and the next drain comes
                    // soon.
                    takes.fetch_add((0..20).filter(|_| bag.take().is_some()).count() as u64, Relaxed);
                }
            });
        }
        while Instant::now() < until {
            takes.fetch_add(bag.drain().unwrap().len() as u64, Relaxed);
            // Threads that found their list closed by this drain wait for its mutex. A drain that came before they were
            // done would find no thread in a section.
            let seen = puts.load(Relaxed);
            while puts.load(Relaxed) == seen && Instant::now() < until {
                hint::spin_loop();
            }
        }
    });
    let rest = bag.drain().unwrap();
    assert_eq!(puts.into_inner(), takes.into_inner() + rest.len() as u64);
    assert_eq!(alive.load(Relaxed), rest.len() as u64);
    drop(rest);
    bag.put(Counted::new(&alive));
    drop(bag);
    assert_eq!(alive.into_inner(), 0, "the bag did not drop its values");
}

#[test]
fn again_with_other_areas() {
    sources::again_with_other_areas("again_with_other_areas", "");
}
