//! Threads are stopped at arbitrary instructions and continue later. No event is lost or repeated, each producer's
//! events stay in order, and no thread is left asleep. `MILLSTREAM_STRESS=n` makes the runs n times longer.
//!
//! SIGSTOP would stop the whole process (`shared.rs` stops a ring's producer with it). To stop one thread of many,
//! these tests send it a signal whose handler returns only when it is told to.
#![cfg(all(target_os = "linux", not(loom)))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use millstream_ring::graph::Builder;
use millstream_ring::{Options, WaitStrategy, channel};
use millstream_verify_random::{Random, stress};

const PRODUCERS: u64 = 3;

/// Whether a thread is stopped now, and whether it may continue.
static STOPPED: AtomicBool = AtomicBool::new(false);
static GO_ON: AtomicBool = AtomicBool::new(true);

/// The signal's handler, which stops the thread. It uses only atomics and a system call, because the thread may hold
/// any lock.
extern "C" fn stand_still(_: libc::c_int) {
    STOPPED.store(true, SeqCst);
    while !GO_ON.load(SeqCst) {
        let nap = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
        // SAFETY: `nanosleep` is async-signal-safe, and `nap` is valid.
        unsafe { libc::nanosleep(&raw const nap, std::ptr::null_mut()) };
    }
}

fn install() {
    // SAFETY: an all-zero action is valid, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stand_still as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// The threads that may be stopped. A thread removes its id before it ends.
#[derive(Default)]
struct Stage {
    threads: [AtomicI32; PRODUCERS as usize + 1],
    passed: AtomicU64,
    /// How often a thread was stopped.
    stops: AtomicU64,
    /// Whether a thread has panicked, so that not all events will pass.
    is_over: AtomicBool,
}

impl Stage {
    fn act<R>(&self, place: usize, part: impl FnOnce() -> R) -> R {
        // SAFETY: `gettid` has no preconditions.
        self.threads[place].store(unsafe { libc::gettid() }, SeqCst);
        let result = self.watch(part);
        self.threads[place].store(0, SeqCst);
        result
    }

    /// Runs `part`. If it panics, there are no more stops, and no thread waits for one.
    fn watch<R>(&self, part: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| {
            self.is_over.store(true, SeqCst);
            resume_unwind(panic)
        })
    }

    /// Stops a random thread for a short time; the others soon run out of events or room. Returns whether it was
    /// stopped.
    fn stop_one(&self, random: &mut Random) -> bool {
        let thread = self.threads[random.below(self.threads.len() as u64) as usize].load(SeqCst);
        if thread == 0 {
            return false;
        }
        GO_ON.store(false, SeqCst);
        STOPPED.store(false, SeqCst);
        // SAFETY: the signal goes to a thread of this process; if that has ended, the call fails without effect.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
        thread::sleep(Duration::from_micros(50 + random.below(1500)));
        let stood = STOPPED.load(SeqCst);
        GO_ON.store(true, SeqCst);
        stood
    }

    /// Stops the threads, one after another, until `total` events have passed.
    fn disturb(&self, total: u64, random: &mut Random) {
        while self.passed.load(SeqCst) < total {
            if self.is_over.load(SeqCst) {
                return;
            }
            self.stops.fetch_add(u64::from(self.stop_one(random)), SeqCst);
            thread::sleep(Duration::from_micros(random.below(500)));
        }
        let stops = self.stops.load(SeqCst);
        assert!(stops >= MIN_STOPS, "only {stops} stops");
    }

    /// Called before event `number` of `of`. Delays the event until enough stops have happened, which spreads the stops
    /// over all events.
    fn pace(&self, number: u64, of: u64) {
        while self.stops.load(SeqCst) < number * MIN_STOPS / (of - 1) && !self.is_over.load(SeqCst) {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Checks that each producer's numbers arrive in order.
#[derive(Default)]
struct Ledger([u64; PRODUCERS as usize]);

impl Ledger {
    fn take(&mut self, value: u64) {
        let next = &mut self.0[(value >> 48) as usize];
        assert_eq!(value & ((1 << 48) - 1), *next);
        *next += 1;
    }
}

#[test]
fn a_stopped_thread_loses_and_repeats_nothing() {
    install();
    let mut random = Random::seeded();
    for (strategy, capacity) in [(WaitStrategy::Adaptive, 64), (WaitStrategy::Block, 8), (WaitStrategy::Adaptive, 1)] {
        channel_with_stops(Options::new(capacity).wait_strategy(strategy), &mut random.fork());
        graph_with_stops(Options::new(capacity).wait_strategy(strategy), &mut random.fork());
    }
}

/// The number of events that a producer sends.
const NUMBERS: u64 = 50_000;

/// The minimum number of stops in a run.
const MIN_STOPS: u64 = 10;

fn channel_with_stops(options: Options, random: &mut Random) {
    let (stage, total) = (Stage::default(), PRODUCERS * NUMBERS * stress());
    let (sender, receiver) = channel::mpsc(options);
    thread::scope(|scope| {
        let stage = &stage;
        for producer in 0..PRODUCERS {
            let sender = sender.clone();
            scope.spawn(move || {
                stage.act(producer as usize, || {
                    for number in 0..total / PRODUCERS {
                        stage.pace(number, total / PRODUCERS);
                        sender.send(producer << 48 | number).unwrap();
                    }
                });
            });
        }
        drop(sender);
        scope.spawn(move || {
            let mut ledger = Ledger::default();
            stage.act(PRODUCERS as usize, || {
                while let Ok(value) = receiver.recv() {
                    ledger.take(value);
                    stage.passed.fetch_add(1, SeqCst);
                }
            });
            assert_eq!(ledger.0, [total / PRODUCERS; PRODUCERS as usize]);
        });
        stage.disturb(total, random);
    });
}

fn graph_with_stops(options: Options, random: &mut Random) {
    let total = PRODUCERS * NUMBERS * stress();
    let stage = std::sync::Arc::new(Stage::default());
    let (mut ledger, seen) = (Ledger::default(), std::sync::Arc::clone(&stage));
    let mut ring = Builder::multi(options, || 0u64);
    let first = ring.handle_mut(&[], |event, _| *event = !*event);
    ring.handle(&[first], move |event, _| {
        // SAFETY: `gettid` has no preconditions.
        seen.threads[PRODUCERS as usize].store(unsafe { libc::gettid() }, SeqCst);
        seen.watch(|| ledger.take(!*event));
        if seen.passed.fetch_add(1, SeqCst) + 1 == total {
            seen.threads[PRODUCERS as usize].store(0, SeqCst);
        }
    });
    let (producer, running) = ring.start();
    thread::scope(|scope| {
        let stage = &*stage;
        for number in 0..PRODUCERS {
            let mut producer = producer.clone();
            scope.spawn(move || {
                stage.act(number as usize, || {
                    for n in 0..total / PRODUCERS {
                        stage.pace(n, total / PRODUCERS);
                        producer.publish(|event| *event = number << 48 | n);
                    }
                });
            });
        }
        drop(producer);
        stage.disturb(total, random);
    });
    running.join().unwrap();
}
