//! Readers that are stopped anywhere, objects that are poisoned when they are freed, and garbage that is counted.
//!
//! A stopped reader is a thread that a signal has interrupted, at any instruction, and whose handler does not return
//! before it is told to. `MILLSTREAM_STRESS=n` retires n times as many objects (`MILLSTREAM_STRESS=200` makes it 10^8
//! in a release build).
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/fences.rs"]
mod fences;
#[path = "../../fence/tests/support/race.rs"]
mod race;

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fences::again_with_symmetric_fences;
use millstream_recorder::Preemption;
use millstream_sync::reclaim::epoch::{self, Collector, Local};
use millstream_sync::reclaim::hazard::{self, Domain};
use millstream_sync::reclaim::{Epochs, Fence, Hazards, Queue, Settings, Stack};
use millstream_verify_random::{Random, stress};

const RETIRES: u64 = 500_000;
const PLACES: usize = 8;
const READERS: usize = 3;
const BATCH: usize = 64;

/// Readers check both words: a freed object has neither of their values.
struct Object {
    number: AtomicU64,
    same: AtomicU64,
}

const POISON: u64 = 0xDEAD_DEAD_DEAD_DEAD;

impl Object {
    fn boxed(number: u64) -> *mut Object {
        ALIVE.fetch_add(1, Relaxed);
        Box::into_raw(Box::new(Object { number: AtomicU64::new(number), same: AtomicU64::new(number) }))
    }

    fn check(&self, random: &mut Random) {
        for _ in 0..=random.below(4) {
            let (number, same) = (self.number.load(Relaxed), self.same.load(Relaxed));
            assert!(number == same && number != POISON, "an object was freed while it was read: {number:x}, {same:x}");
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.number.store(POISON, Relaxed);
        self.same.store(POISON, Relaxed);
        ALIVE.fetch_sub(1, Relaxed);
    }
}

/// The number of objects not yet freed. Tests that read it run one after another.
static ALIVE: AtomicUsize = AtomicUsize::new(0);
static TURN: Mutex<()> = Mutex::new(());

/// Whether stopped threads may continue.
static GO_ON: AtomicBool = AtomicBool::new(true);
static STOPPED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn stop(_signal: libc::c_int) {
    STOPPED.fetch_add(1, Relaxed);
    while !GO_ON.load(Acquire) {
        let nap = libc::timespec { tv_sec: 0, tv_nsec: 200_000 };
        // SAFETY: `nanosleep` is async-signal-safe, and `nap` is valid.
        unsafe { libc::nanosleep(&raw const nap, ptr::null_mut()) };
    }
    STOPPED.fetch_sub(1, Relaxed);
}

fn stoppable() {
    let handler: extern "C" fn(libc::c_int) = stop;
    // SAFETY: the handler only touches atomics and sleeps.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
}

/// A thread that may be stopped.
struct Thread(libc::pthread_t);

impl Thread {
    fn this() -> Self {
        // SAFETY: `pthread_self` has no preconditions.
        Thread(unsafe { libc::pthread_self() })
    }
}

/// Stops readers, different ones each time, until `over` is set.
fn disturb(readers: &[Thread], over: &AtomicBool, random: &mut Random) {
    while !over.load(Acquire) {
        GO_ON.store(false, Release);
        for reader in readers {
            if random.below(2) == 0 {
                // SAFETY: the readers are alive, because they wait for this thread to end.
                unsafe { libc::pthread_kill(reader.0, libc::SIGUSR1) };
            }
        }
        thread::sleep(Duration::from_micros(200 + random.below(3000)));
        GO_ON.store(true, Release);
        while STOPPED.load(Relaxed) > 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(random.below(1000)));
    }
}

/// Runs readers, a disturbing thread, and a writer that retires the given number of objects; returns when all have
/// ended.
fn torture(
    seed: u64,
    read: impl Fn(&[AtomicPtr<Object>], &AtomicBool, Random) + Sync,
    write: impl FnOnce(&[AtomicPtr<Object>], u64, &mut Random),
) {
    stoppable();
    let mut random = Random::new(seed);
    let places: Vec<_> = (0..PLACES).map(|place| AtomicPtr::new(Object::boxed(place as u64))).collect();
    let (over, disturbed) = (AtomicBool::new(false), AtomicBool::new(false));
    let (threads, ids) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..READERS {
            let (threads, random) = (threads.clone(), Random::new(random.below(u64::MAX)));
            let (read, places, over, disturbed) = (&read, &places, &over, &disturbed);
            scope.spawn(move || {
                threads.send(Thread::this()).unwrap();
                read(places, over, random);
                while !disturbed.load(Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let readers: Vec<Thread> = ids.iter().take(READERS).collect();
        let (over, disturbed) = (&over, &disturbed);
        let mut disturber = Random::new(random.below(u64::MAX));
        scope.spawn(move || {
            disturb(&readers, over, &mut disturber);
            disturbed.store(true, Release);
        });
        write(&places, RETIRES * stress(), &mut random);
        over.store(true, Release);
    });
    for place in places {
        // SAFETY: the readers have ended, so this is the only reference to the box.
        drop(unsafe { Box::from_raw(place.into_inner()) });
    }
}

fn replace(places: &[AtomicPtr<Object>], number: u64, random: &mut Random) -> *mut Object {
    let place = &places[random.below(PLACES as u64) as usize];
    place.swap(Object::boxed(number), AcqRel)
}

fn hazards(fence: Fence) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = Domain::with(Settings { batch: BATCH, fence });
    torture(
        millstream_verify_random::seed(),
        |places, over, mut random| {
            let mut hazard = domain.hazard();
            while !over.load(Relaxed) {
                let place = &places[random.below(PLACES as u64) as usize];
                // SAFETY: objects of the places are retired to this domain.
                unsafe { hazard.protect(place) }.unwrap().check(&mut random);
            }
        },
        |places, retires, random| {
            let local = domain.local();
            for number in 0..retires {
                let old = replace(places, number, random);
                // SAFETY: the object comes from a box, has just been unlinked, and is retired once.
                unsafe { local.retire(old) };
                let waiting = ALIVE.load(Relaxed) - PLACES;
                assert!(waiting <= 3 * BATCH + READERS, "{waiting} objects wait");
            }
        },
    );
    drop(domain);
    assert_eq!(ALIVE.load(Relaxed), 0);
}

#[test]
fn hazards_survive_torture_with_bounded_garbage() {
    hazards(Fence::FAST);
}

#[test]
fn quiet_hazards_survive_torture_with_bounded_garbage() {
    hazards(Fence::QUIET);
}

/// The bound on the writer's garbage.
const LIMIT: usize = 5000;

fn epochs(fence: Fence) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let collector = Collector::with(Settings { batch: BATCH, fence });
    torture(
        millstream_verify_random::seed(),
        |places, over, mut random| {
            let local = collector.local();
            while !over.load(Relaxed) {
                read_a_section(&local, places, &mut random);
            }
        },
        |places, retires, random| {
            let local = collector.local();
            for number in 0..retires {
                while local.make_room(1, LIMIT).is_err() {
                    thread::yield_now(); // a stopped reader holds garbage back
                }
                let guard = local.pin();
                let old = replace(places, number, random);
                // SAFETY: the object comes from a box, has just been unlinked, and is retired once.
                unsafe { guard.retire(old) };
                let waiting = ALIVE.load(Relaxed) - PLACES;
                assert!(waiting <= LIMIT, "{waiting} objects wait");
            }
        },
    );
    drop(collector);
    assert_eq!(ALIVE.load(Relaxed), 0);
}

fn read_a_section(local: &Local, places: &[AtomicPtr<Object>], random: &mut Random) {
    let mut guard = local.pin();
    for _ in 0..random.below(4) {
        let _nested = local.pin();
        for _ in 0..random.below(8) {
            let place = &places[random.below(PLACES as u64) as usize];
            // SAFETY: objects of the places are retired by this collector.
            unsafe { guard.load(place) }.unwrap().check(random);
        }
        drop(_nested);
        guard.refresh();
    }
}

#[test]
fn epochs_survive_torture_with_bounded_garbage() {
    epochs(Fence::FAST);
}

#[test]
fn quiet_epochs_survive_torture_with_bounded_garbage() {
    epochs(Fence::QUIET);
}

#[test]
fn a_pinning_thread_and_a_heavy_fence_do_not_miss_each_other() {
    let rounds = 20_000 * stress() as u32;
    // Each round enters with the state that the previous one left.
    assert_eq!(race::both_missed(rounds, || drop(epoch::pin()), || Fence::FAST.heavy()), 0);
}

#[test]
fn all_of_it_holds_with_symmetric_fences() {
    again_with_symmetric_fences("all_of_it_holds_with_symmetric_fences");
}

/// A thread that pops reads the value after it has taken the node out, and may be stopped before the read. Meanwhile
/// other threads may retire the node, free it, and reuse its memory for another value.
fn each_value_is_popped_once(push: impl Fn(u64) + Sync, pop: impl Fn() -> Option<u64> + Sync, flush: fn()) {
    const THREADS: u64 = 3;
    let each = 400_000 * stress();
    let popped: Vec<AtomicBool> = (0..THREADS * each).map(|_| AtomicBool::new(false)).collect();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let _stops = Preemption::start().unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (push, pop, popped) = (&push, &pop, &popped);
            scope.spawn(move || {
                for n in 0..each {
                    push(THREADS * n + thread);
                    let value = pop().expect("this thread has pushed once more than it has popped");
                    let seen = popped.get(value as usize).unwrap_or_else(|| panic!("{value} was never pushed"));
                    assert!(!seen.swap(true, Relaxed), "{value} was popped twice");
                    // The other threads free in large batches, so that they are not held up.
                    if thread == 0 && n % 16 == 0 {
                        flush();
                    }
                }
            });
        }
    });
    assert!(popped.iter().all(|seen| seen.load(Relaxed)), "a value was lost");
}

#[test]
fn stopped_threads_pop_each_value_once_from_a_queue_on_hazards() {
    let queue = Queue::<u64, Hazards>::with_scheme();
    each_value_is_popped_once(|value| queue.push(value), || queue.pop(), hazard::flush);
}

#[test]
fn stopped_threads_pop_each_value_once_from_a_queue_on_epochs() {
    let queue = Queue::<u64, Epochs>::with_scheme();
    each_value_is_popped_once(|value| queue.push(value), || queue.pop(), epoch::flush);
}

#[test]
fn stopped_threads_pop_each_value_once_from_a_stack_on_hazards() {
    let stack = Stack::<u64, Hazards>::with_scheme();
    each_value_is_popped_once(|value| stack.push(value), || stack.pop(), hazard::flush);
}
