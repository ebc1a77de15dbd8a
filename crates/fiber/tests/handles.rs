//! Tests of handles that move between threads and runtimes, and of dumps while control blocks are reused.

#[path = "support/modes.rs"]
mod modes;

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use millstream_fiber::sync::channel;
use millstream_fiber::{Builder, JoinError, JoinHandle, Options, Runtime, Threads, current, park, spawn, yield_now};
use millstream_recorder::Preemption;
use millstream_verify_random::{Random, stress};
use modes::MODES;

/// A result that is counted as long as it exists.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Counted(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Calls its function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Returns the body of a fiber that yields or waits at random, and then ends in one of several ways.
fn body(mut random: Random, count: Arc<AtomicUsize>) -> impl FnOnce() -> Counted + Send {
    move || {
        let result = Counted::new(&count);
        for _ in 0..random.below(4) {
            yield_now();
        }
        match random.below(8) {
            0 => std::panic::resume_unwind(Box::new(result)),
            1 => park(),
            _ => {}
        }
        result
    }
}

/// Ends a handle in one of several ways.
fn end(handle: JoinHandle<Counted>, random: &mut Random) {
    match random.below(4) {
        0 => drop(handle),
        _ => {
            if random.below(3) > 0 {
                handle.cancel();
            }
            let fiber = handle.fiber().clone();
            // Do not wait for the end without a limit: the fiber may be parked.
            while !handle.is_finished() && random.below(4) > 0 {
                yield_now();
            }
            fiber.unpark();
            handle.cancel();
            assert!(!matches!(handle.join(), Err(JoinError::Cycle)));
            fiber.unpark();
        }
    }
}

#[test]
fn handles_are_joined_and_dropped_by_threads_and_by_fibers_of_other_runtimes() {
    let mut random = Random::seeded();
    for threads in MODES {
        let count = Arc::new(AtomicUsize::new(0));
        let _preemption = Preemption::start().unwrap();
        for _ in 0..5 * stress() {
            let elsewhere = Runtime::start(Options::new(Threads::Workers(2))).unwrap();
            let runtime = Runtime::start(Options::new(threads)).unwrap();
            let (sender, receiver) = channel(16);
            let (late_sender, late) = mpsc::channel();
            let enders = [(); 3].map(|()| {
                let (receiver, mut random, late) = (receiver.clone(), random.fork(), late_sender.clone());
                move || {
                    for handle in receiver.iter() {
                        match random.below(8) {
                            0 => late.send(handle).unwrap(),
                            _ => end(handle, &mut random),
                        }
                    }
                }
            });
            drop((receiver, late_sender));
            let [first, second, third] = enders;
            let (fibers, outside) = ([elsewhere.spawn(first), elsewhere.spawn(second)], thread::spawn(third));
            let spawners = [(); 3].map(|()| {
                let (sender, mut random, count) = (sender.clone(), random.fork(), Arc::clone(&count));
                runtime.spawn(move || {
                    for _ in 0..30 {
                        sender.send(spawn(body(random.fork(), Arc::clone(&count)))).unwrap();
                    }
                })
            });
            drop(sender);
            spawners.into_iter().for_each(|spawner| spawner.join().unwrap());
            fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
            outside.join().unwrap();
            drop(runtime);
            // These handles outlive their runtime.
            for (index, handle) in late.iter().enumerate() {
                assert!(handle.is_finished());
                match index % 3 {
                    0 => drop(handle),
                    1 => drop(elsewhere.spawn(move || drop(handle.join())).join()),
                    _ => drop(handle.join()),
                }
            }
            drop(elsewhere);
        }
        assert_eq!(count.load(SeqCst), 0, "each result is dropped once");
    }
}

#[test]
fn a_dump_never_mixes_two_fibers_that_use_one_control_block() {
    for threads in [Threads::One, Threads::Workers(2)] {
        let runtime = Runtime::start(Options::new(threads)).unwrap();
        let is_over = AtomicBool::new(false);
        let _preemption = Preemption::start().unwrap();
        thread::scope(|threads| {
            threads.spawn(|| {
                let _end = OnDrop(|| is_over.store(true, Relaxed));
                for round in 0..100 * stress() {
                    let dump = match round % 2 {
                        0 => runtime.dump(),
                        _ => runtime.dump_with_backtraces(Duration::from_millis(20)),
                    };
                    for fiber in &dump.fibers {
                        let (name, unit) = (fiber.name.as_deref(), fiber.unit.map(|unit| unit.to_string()));
                        assert!(unit.is_none() || name == unit.as_deref(), "{name:?} serves {unit:?}");
                    }
                }
            });
            runtime.scope(|scope| {
                for spawner in 0..4 {
                    let is_over = &is_over;
                    scope.spawn(move || {
                        let mut unit = spawner;
                        while !is_over.load(Relaxed) {
                            unit += 4;
                            let body = move || {
                                current().set_unit(Some(unit));
                                yield_now();
                                unit
                            };
                            let child = Builder::new().name(unit.to_string()).spawn(body).unwrap();
                            assert_eq!(child.join().unwrap(), unit);
                        }
                    });
                }
            });
        });
    }
}
