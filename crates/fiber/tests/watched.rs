//! Tests of reports to a runtime's owner (stalls, dumps, missing stacks) and of the lifetimes of fiber locals.

#[path = "support/modes.rs"]
mod modes;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fiber::sync::{self, Event, channel};
use millstream_fiber::{
    Builder, FiberReport, Guards, JoinError, Options, Reason, Report, Runtime, State, Threads, fiber_local, park,
    sleep, spawn, yield_now,
};
use modes::under_each;

/// Keeps the worker busy for `time`.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn a_stalled_worker_is_reported_once_with_the_fibers_name() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&reports);
    let options = Options::new(Threads::Workers(2)).on_report(move |report| {
        theirs.lock().unwrap().push(report.clone());
        panic_in_the_hook();
    });
    let runtime = Runtime::start(options).unwrap();
    let hog = Builder::new().name("hog").spawn_on(&runtime, || spin(Duration::from_millis(60))).unwrap();
    hog.join().unwrap();
    runtime.spawn(|| (0..1000).for_each(|_| yield_now())).join().unwrap();
    // If a worker was preempted for long, another fiber may have been reported as well.
    let mut reports = reports.lock().unwrap().clone();
    reports.retain(|report| matches!(report, Report::Stalled { fiber, .. } if fiber == "hog"));
    let [Report::Stalled { since, .. }] = &reports[..] else { panic!("{reports:?}") };
    assert!(*since >= Duration::from_millis(10), "{reports:?}");
    assert!(reports[0].to_string().starts_with("fiber `hog` has kept worker "));
}

/// Panics, as a user's report function may. The runtime catches the panic.
fn panic_in_the_hook() {
    std::panic::resume_unwind(Box::new("hook"));
}

#[test]
fn a_dump_groups_equal_fibers_and_shows_their_waits() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let event = Arc::new(Event::new());
    let mut fibers = Vec::new();
    for _ in 0..20 {
        let event = Arc::clone(&event);
        fibers.push(Builder::new().name("get").spawn_on(&runtime, move || event.wait()).unwrap());
    }
    let target = runtime.spawn(|| {
        park();
    });
    let parked = target.fiber().clone();
    fibers.push(runtime.spawn(move || target.join().unwrap()));
    let (sender, receiver) = channel(1);
    let mutex = Arc::new(sync::Mutex::new(()));
    let theirs = Arc::clone(&mutex);
    let held = mutex.lock();
    fibers.push(runtime.spawn(move || receiver.iter().for_each(|()| ())));
    fibers.push(runtime.spawn(move || drop(theirs.lock())));
    let is_waiting = |fiber: &FiberReport| matches!(fiber.state, State::Waiting { .. });
    while !runtime.dump().fibers.iter().all(is_waiting) {
        thread::yield_now();
    }
    sleep(Duration::from_millis(15));
    let dump = runtime.dump();
    assert_eq!(dump.fibers.len(), 24);
    let gets: Vec<_> = dump.fibers.iter().filter(|fiber| fiber.name.as_deref() == Some("get")).collect();
    for get in &gets {
        let State::Waiting { reason: Reason::Event, at, since } = get.state else { panic!("{get:?}") };
        assert!(at.file().ends_with("watched.rs") && since >= Duration::from_millis(5), "{get:?}");
        assert!(get.stack_used_bytes.is_some_and(|bytes| (1..=64 << 10).contains(&bytes)), "{get:?}");
    }
    let outside = dump.fibers.iter().find_map(|fiber| match fiber.state {
        State::Waiting { at, .. } if !at.file().ends_with("watched.rs") => Some(at),
        _ => None,
    });
    assert_eq!(outside, None, "each wait is shown where the user's code waits");
    let text = dump.to_string();
    assert!(text.starts_with("24 fibers\n    20 × `get` waiting for an event at "), "{text}");
    assert!(text.contains("1 × (unnamed) joining a fiber at ") && text.contains("1 × (unnamed) parked at "), "{text}");
    drop((held, sender));
    event.set();
    parked.unpark();
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    assert_eq!(runtime.dump().to_string(), "0 fibers");
}

#[test]
fn a_dump_distinguishes_running_unstarted_and_ready_fibers() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let (begun, release) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let [theirs, gate] = [Arc::clone(&begun), Arc::clone(&release)];
    let ready = runtime.spawn(move || gate.wait());
    while !matches!(runtime.dump().fibers[0].state, State::Waiting { .. }) {
        thread::yield_now();
    }
    let gate = Arc::clone(&release);
    let is_seen = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_seen);
    let runner = runtime.spawn(move || {
        gate.set();
        theirs.set();
        while !seen.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    begun.wait();
    let unstarted = runtime.spawn(|| ());
    let states: Vec<_> = runtime.dump().fibers.iter().map(|fiber| fiber.state).collect();
    assert_eq!(states, [State::Ready, State::Running, State::Unstarted]);
    is_seen.store(true, SeqCst);
    [ready, runner, unstarted].into_iter().for_each(|fiber| fiber.join().unwrap());
}

#[test]
fn dumps_may_be_taken_while_fibers_come_and_go() {
    under_each(|runtime| {
        runtime.scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|n| assert_eq!(spawn(move || n).join().unwrap(), n)));
            }
            for _ in 0..50 {
                let _ = runtime.dump().to_string();
                let _ = runtime.stacks();
            }
        });
    });
}

static ENDED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Its destructor records the drop, and uses other locals.
struct Noted(&'static str);

impl Drop for Noted {
    fn drop(&mut self) {
        yield_now();
        assert!(LAST.try_with(|_| ()).is_err() || self.0 == "last", "locals created later are gone");
        if self.0 == "last" {
            assert!(FIRST.try_with(|first| first.0 == "first").unwrap(), "locals created earlier are still there");
            assert!(LAST.try_with(|_| ()).is_err(), "its own key is gone");
        }
        ENDED.lock().unwrap().push(self.0);
    }
}

fiber_local! {
    static FIRST: Noted = Noted("first");
    static LAST: Noted = {
        FIRST.with(|_| ());
        Noted("last")
    };
    static STEPS: Cell<u32> = Cell::new(0);
    static OWN: RefCell<Vec<u32>> = RefCell::default()
}

#[test]
fn fiber_locals_are_dropped_at_the_end_in_reverse_order_of_creation() {
    under_each(|runtime| {
        ENDED.lock().unwrap().clear();
        runtime.spawn(|| LAST.with(|last| assert_eq!(last.0, "last"))).join().unwrap();
        assert_eq!(*ENDED.lock().unwrap(), ["last", "first"]);
    });
}

#[test]
fn a_fiber_local_is_each_fibers_own_across_waits() {
    under_each(|runtime| {
        runtime.scope(|scope| {
            for n in 0..20 {
                scope.spawn(move || {
                    OWN.with(|own| {
                        // The value stays borrowed while the fiber waits and creates other values.
                        let mut own = own.borrow_mut();
                        for step in 0..n {
                            own.push(step);
                            STEPS.with(|steps| steps.set(steps.get() + 1));
                            yield_now();
                        }
                    });
                    assert_eq!((OWN.with(|own| own.borrow().len()), STEPS.with(Cell::get)), (n as usize, n));
                });
            }
        });
    });
    STEPS.with(|steps| steps.set(7));
    assert_eq!(thread::spawn(|| STEPS.with(Cell::get)).join().unwrap(), 0);
}

thread_local! {
    static SHARED: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_thread_local_is_shared_by_the_fibers_of_a_worker_and_stays_where_it_is() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let other = runtime.spawn(|| {
        let address = SHARED.with(|shared| std::ptr::from_ref(shared).addr());
        let neighbour = spawn(|| SHARED.with(|shared| shared.set(shared.get() + 1)));
        // The reference exists across the wait, during which another fiber changes the value.
        let seen = SHARED.with(|shared| {
            neighbour.join().unwrap();
            shared.get()
        });
        assert_eq!(SHARED.with(|shared| std::ptr::from_ref(shared).addr()), address);
        seen
    });
    assert_eq!(other.join().unwrap(), 1);
    assert_eq!(SHARED.with(Cell::get), 0);
}

#[test]
fn extreme_options_are_clamped_to_their_limits() {
    for workers in [0, 1] {
        let runtime = Runtime::start(Options::new(Threads::Workers(workers)).stack_bytes(0).guard_bytes(0)).unwrap();
        assert_eq!(runtime.spawn(|| 2).join().unwrap(), 2);
        assert_eq!(runtime.stacks().stack_bytes, 16 << 10);
    }
    let options = Options::new(Threads::One).stack_bytes(usize::MAX).guard_bytes(usize::MAX).idle_stacks(usize::MAX);
    let runtime = Runtime::start(options.max_blocking_threads(0).max_fibers(usize::MAX).stall(Duration::MAX)).unwrap();
    match runtime.spawn(|| millstream_fiber::blocking(|| 3)).join() {
        Ok(three) => assert_eq!((three, runtime.stacks().guard_bytes), (3, 1 << 20)),
        // A machine may refuse to reserve so much address space.
        Err(error) => assert!(error.to_string().contains("address space"), "{error}"),
    }
}

#[test]
fn fibers_without_a_stack_end_with_the_reason() {
    if Guards::best() == Guards::Marks {
        // With marks, the only limit is address space, and a test should not use so much of it.
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse::<usize>().unwrap();
        let room = limit.saturating_sub(8192) / 2;
        if room > 100_000 {
            return;
        }
        let reports = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&reports);
        let options =
            Options::new(Threads::One).guards(Guards::Mappings).stack_bytes(16 << 10).on_report(move |report| {
                if matches!(report, Report::NotStarted { .. }) {
                    theirs.fetch_add(1, SeqCst);
                }
            });
        let runtime = Runtime::start(options).unwrap();
        let gate = Arc::new(Event::new());
        let fibers: Vec<_> = (0..room + 100)
            .map(|_| {
                let gate = Arc::clone(&gate);
                runtime.spawn(move || gate.wait())
            })
            .collect();
        while reports.load(SeqCst) < 100 {
            thread::yield_now();
        }
        gate.set();
        let ended: Vec<_> = fibers.into_iter().map(|fiber| fiber.join()).collect();
        let failed: Vec<_> = ended.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(failed.len(), reports.load(SeqCst));
        for error in failed {
            assert!(
                matches!(error, JoinError::NotStarted(_)) && error.to_string().contains("vm.max_map_count"),
                "{error}"
            );
        }
        // A stack is free again, so another fiber can start.
        assert_eq!(runtime.spawn(|| 4).join().unwrap(), 4);
    }
}
