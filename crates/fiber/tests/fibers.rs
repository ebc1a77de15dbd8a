//! Tests of spawn, join, yield, park and sleep under each threading model.

#[path = "support/modes.rs"]
mod modes;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fiber::sync::Event;
use millstream_fiber::{
    Builder, JoinError, Options, Runtime, SpawnError, Threads, current, park, park_timeout, sleep, spawn, yield_now,
};
use modes::{MODES, under_each};

#[test]
fn a_joining_thread_or_fiber_gets_the_value() {
    under_each(|runtime| {
        assert_eq!(runtime.spawn(|| 7).join().unwrap(), 7);
        let outer = runtime.spawn(|| spawn(|| String::from("inner")).join().unwrap());
        assert_eq!(outer.join().unwrap(), "inner");
        let late = runtime.spawn(|| 8);
        while !late.is_finished() {
            thread::yield_now();
        }
        assert_eq!(late.join().unwrap(), 8);
    });
}

#[test]
fn many_generations_reuse_few_stacks() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    runtime.spawn(|| (0..10_000).for_each(|n| assert_eq!(spawn(move || n).join().unwrap(), n))).join().unwrap();
    assert_eq!(runtime.stacks().reserved, 64);
}

#[test]
fn a_panic_reaches_the_joiner_and_no_other_fiber() {
    under_each(|runtime| {
        let bad = runtime.spawn(|| -> u32 { resume_unwind(Box::new("ground")) });
        let Err(JoinError::Panicked(payload)) = bad.join() else { panic!("expected the panic") };
        assert_eq!(payload.downcast_ref(), Some(&"ground"));
        assert_eq!(runtime.spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn a_panic_with_a_backtrace_fits_on_the_default_stack() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let bad = runtime.spawn(|| {
        println!("{}", std::backtrace::Backtrace::force_capture());
        panic!("with a message of {}", 1);
    });
    let error = bad.join().unwrap_err();
    assert_eq!(error.to_string(), "the fiber panicked: with a message of 1");
    println!("used {} bytes", runtime.stacks().high_water_bytes);
}

#[test]
fn fibers_of_one_worker_take_turns() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (start, started) = (Arc::new(Event::new()), Arc::new(AtomicUsize::new(0)));
    let turns = [0, 1].map(|fiber| {
        let (order, start, started) = (Arc::clone(&order), Arc::clone(&start), Arc::clone(&started));
        move || {
            started.fetch_add(1, SeqCst);
            start.wait();
            for _ in 0..3 {
                order.lock().unwrap().push(fiber);
                yield_now();
            }
        }
    });
    let starter = move || {
        let fibers = turns.map(spawn);
        while started.load(SeqCst) < 2 {
            yield_now();
        }
        start.set();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    };
    runtime.spawn(starter).join().unwrap();
    let order = order.lock().unwrap();
    assert!([[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]].contains(&order[..].try_into().unwrap()), "{order:?}");
}

#[test]
fn an_unpark_before_the_park_is_kept() {
    under_each(|runtime| {
        let fiber = runtime.spawn(|| {
            current().unpark();
            park();
            assert!(!park_timeout(Duration::from_millis(1)), "it is consumed by one park");
        });
        fiber.join().unwrap();
    });
    current().unpark();
    park();
}

#[test]
fn unparks_between_threads_and_fibers_are_never_lost() {
    under_each(|runtime| {
        let thread = current();
        let fiber = runtime.spawn(move || {
            for _ in 0..1000 {
                park();
                thread.unpark();
            }
        });
        for _ in 0..1000 {
            fiber.fiber().unpark();
            park();
        }
        fiber.join().unwrap();
    });
}

#[test]
fn a_park_sees_what_was_written_before_the_unpark() {
    under_each(|runtime| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        let fiber = runtime.spawn(move || {
            park();
            assert!(seen.load(SeqCst));
        });
        sleep(Duration::from_millis(1));
        flag.store(true, SeqCst);
        fiber.fiber().unpark();
        fiber.join().unwrap();
    });
}

#[test]
fn sleeps_last_long_enough_and_end_in_order() {
    under_each(|runtime| {
        let (sender, receiver) = mpsc::channel();
        for ms in [30, 10, 20] {
            let sender = sender.clone();
            runtime.spawn(move || {
                let start = Instant::now();
                sleep(Duration::from_millis(ms));
                assert!(start.elapsed() >= Duration::from_millis(ms));
                sender.send(ms).unwrap();
            });
        }
        drop(sender);
        let ended: Vec<u64> = receiver.iter().collect();
        assert_eq!(ended.len(), 3);
    });
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let sleepers = [60, 20, 40].map(|ms| {
        let order = Arc::clone(&order);
        runtime.spawn(move || {
            sleep((start + Duration::from_millis(ms)).saturating_duration_since(Instant::now()));
            order.lock().unwrap().push(ms);
        })
    });
    sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [20, 40, 60]);
}

#[test]
fn a_sleeper_wakes_even_if_its_worker_is_never_idle() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_done);
    let busy = runtime.spawn(move || {
        while !seen.load(SeqCst) {
            yield_now();
        }
    });
    let sleeper = runtime.spawn(move || {
        sleep(Duration::from_millis(5));
        is_done.store(true, SeqCst);
    });
    sleeper.join().unwrap();
    busy.join().unwrap();
}

#[test]
fn extreme_times_are_no_error() {
    under_each(|runtime| {
        assert!(runtime.spawn(|| park_timeout(Duration::ZERO)).join().is_ok_and(|unparked| !unparked));
        runtime.spawn(|| sleep(Duration::ZERO)).join().unwrap();
        let forever = runtime.spawn(|| park_timeout(Duration::MAX));
        forever.fiber().unpark();
        assert!(forever.join().unwrap());
        let asleep = runtime.spawn(|| sleep(Duration::MAX));
        asleep.cancel();
        assert!(matches!(asleep.join(), Err(JoinError::Cancelled)));
    });
}

#[test]
fn a_started_fiber_never_changes_its_thread() {
    under_each(|runtime| {
        let fibers: Vec<_> = (0..60)
            .map(|n| {
                runtime.spawn(move || {
                    // A value that is not `Send`, and that exists across waits.
                    let home = Rc::new(Cell::new(thread::current().id()));
                    for turn in 0..50 {
                        if (turn + n) % 7 == 0 {
                            sleep(Duration::from_micros(50));
                        } else {
                            yield_now();
                        }
                        assert_eq!(home.get(), thread::current().id());
                    }
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    });
}

#[test]
fn unstarted_fibers_go_to_other_workers() {
    let runtime = Runtime::start(Options::new(Threads::Workers(2)).on_report(|_| {})).unwrap();
    // The spawner keeps its worker busy until its child, which was spawned on the same worker, has run on another worker.
    let spawner = runtime.spawn(|| {
        let child = spawn(|| thread::current().id());
        while !child.is_finished() {
            std::hint::spin_loop();
        }
        assert_ne!(child.join().unwrap(), thread::current().id());
    });
    spawner.join().unwrap();
}

#[test]
fn two_runtimes_wake_each_others_fibers() {
    let [left, right] =
        [Threads::One, Threads::Workers(2)].map(|threads| Runtime::start(Options::new(threads)).unwrap());
    let waiting = left.spawn(park);
    let other = waiting.fiber().clone();
    right.spawn(move || other.unpark()).join().unwrap();
    waiting.join().unwrap();
    let inner = right.spawn(|| 5);
    assert_eq!(left.spawn(move || inner.join().unwrap()).join().unwrap(), 5);
}

#[test]
fn more_fibers_than_allowed_are_an_error_that_leaves_nothing_behind() {
    for threads in MODES {
        let runtime = Runtime::start(Options::new(threads).max_fibers(2)).unwrap();
        let parked = [(); 2].map(|()| runtime.spawn(park));
        let body = Arc::new(());
        let held = Arc::clone(&body);
        let error = Builder::new().spawn_on(&runtime, move || drop(held)).unwrap_err();
        assert!(matches!(error, SpawnError::TooMany { limit: 2 }));
        assert!(error.to_string().contains("Options::max_fibers"), "{error}");
        assert_eq!(Arc::strong_count(&body), 1, "the body is dropped");
        for fiber in parked {
            fiber.fiber().unpark();
            fiber.join().unwrap();
        }
        while runtime.live_fibers() > 0 {
            thread::yield_now();
        }
        runtime.spawn(|| {}).join().unwrap();
    }
}

#[test]
fn a_dropped_handle_detaches_and_the_result_is_dropped_once() {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    under_each(|runtime| {
        let drops = Arc::new(AtomicUsize::new(0));
        for early in [true, false] {
            let count = Count(Arc::clone(&drops));
            let handle = runtime.spawn(move || count);
            if !early {
                while !handle.is_finished() {
                    thread::yield_now();
                }
            }
            drop(handle);
        }
        std::mem::forget(runtime.spawn(|| ()));
        while runtime.live_fibers() > 0 {
            thread::yield_now();
        }
        assert_eq!(drops.load(SeqCst), 2);
    });
}

#[test]
fn destructors_that_panic_end_with_their_fiber() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new(Bomb2));
            }
        }
    }
    struct Bomb2;
    impl Drop for Bomb2 {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new("second"));
            }
        }
    }
    under_each(|runtime| {
        // A destructor panics in three cases: in a result that no joiner takes, in a fiber local, and in the payload of a panic.
        let ended = runtime.spawn(|| Bomb);
        while !ended.is_finished() {
            thread::yield_now();
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(ended)));
        std::mem::forget(dropped.expect_err("the owner of the result gets the panic"));
        let gate = Arc::new(Event::new());
        let theirs = Arc::clone(&gate);
        drop(runtime.spawn(move || {
            theirs.wait();
            Bomb
        }));
        gate.set();
        let Err(JoinError::Panicked(payload)) = runtime.spawn(|| drop(Bomb)).join() else { panic!("expected a panic") };
        std::mem::forget(payload);
        // This fiber is cancelled before it starts, so its body is dropped.
        let bomb = Bomb;
        let unrun = runtime.spawn(move || {
            park();
            drop(bomb);
        });
        unrun.cancel();
        let _ = unrun.join().map_err(std::mem::forget);
        assert_eq!(runtime.spawn(|| 3).join().unwrap(), 3);
    });
}

#[test]
fn cycles_of_joins_are_an_error() {
    under_each(|runtime| {
        let own = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&own);
        let selfish = runtime.spawn(move || {
            let handle: millstream_fiber::JoinHandle<()> = loop {
                match slot.lock().unwrap().take() {
                    Some(handle) => break handle,
                    None => yield_now(),
                }
            };
            assert!(matches!(handle.join(), Err(JoinError::Cycle)));
        });
        let fiber = selfish.fiber().id();
        *own.lock().unwrap() = Some(selfish);
        while runtime.dump().fibers.iter().any(|report| Some(report.id) == fiber) {
            thread::yield_now();
        }

        // Each of three fibers joins the next.
        let slots: Arc<[Mutex<Option<millstream_fiber::JoinHandle<bool>>>; 3]> = Arc::default();
        let (sender, receiver) = mpsc::channel();
        for index in 0..3 {
            let (all, sender) = (Arc::clone(&slots), sender.clone());
            let fiber = runtime.spawn(move || {
                let handle = loop {
                    let next = all[(index + 1) % 3].lock().unwrap().take();
                    match next {
                        Some(handle) => break handle,
                        None => yield_now(),
                    }
                };
                let is_cycle = matches!(handle.join(), Err(JoinError::Cycle));
                sender.send(is_cycle).unwrap();
                is_cycle
            });
            *slots[index].lock().unwrap() = Some(fiber);
        }
        drop(sender);
        let cycles = receiver.iter().filter(|&is_cycle| is_cycle).count();
        assert!(cycles >= 1, "all three ended, because one got the error");
    });
}

#[test]
fn finish_waits_for_detached_fibers() {
    for threads in MODES {
        let runtime = Runtime::start(Options::new(threads)).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            let count = Arc::clone(&count);
            runtime.spawn(move || {
                sleep(Duration::from_millis(2));
                spawn(move || count.fetch_add(1, SeqCst));
            });
        }
        runtime.finish();
        assert_eq!(count.load(SeqCst), 20);
    }
}

#[test]
fn a_runtime_dropped_by_its_own_fiber_cancels_the_others() {
    for threads in MODES {
        let runtime = Arc::new(Mutex::new(Some(Runtime::start(Options::new(threads)).unwrap())));
        let guard = runtime.lock().unwrap();
        let parked = guard.as_ref().unwrap().spawn(park);
        let theirs = Arc::clone(&runtime);
        let dropper = guard.as_ref().unwrap().spawn(move || drop(theirs.lock().unwrap().take()));
        drop(guard);
        dropper.join().unwrap();
        assert!(matches!(parked.join(), Err(JoinError::Cancelled)));
    }
}
