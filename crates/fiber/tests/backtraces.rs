//! Tests of dumps with backtraces: each waiting fiber shows its callers, and then goes back to its wait.

#[path = "support/modes.rs"]
mod modes;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fiber::sync::{Event, channel};
use millstream_fiber::{
    Backtrace, Builder, Dump, FiberReport, IoModel, Options, Runtime, State, Threads, blocking, park, park_timeout,
    sleep, spawn, yield_now,
};
use millstream_verify_random::{Random, seed};
use modes::under_each;

const LIMIT: Duration = Duration::from_secs(120);

fn waits(fiber: &FiberReport) -> bool {
    matches!(fiber.state, State::Waiting { .. })
}

/// Returns when at least this number of fibers wait.
fn until_waiting(runtime: &Runtime, fibers: usize) {
    let began = Instant::now();
    while runtime.dump().fibers.iter().filter(|fiber| waits(fiber)).count() < fibers {
        assert!(began.elapsed() < LIMIT, "{}", runtime.dump());
        thread::yield_now();
    }
}

fn functions(backtrace: &Backtrace) -> Vec<String> {
    let name = |function: String| function.rsplit("::").next().unwrap_or_default().to_owned();
    backtrace.frames().into_iter().map(|frame| name(frame.function)).collect()
}

#[inline(never)]
fn ask_the_peer(event: &Event) {
    event.wait();
    black_box(event);
}

#[inline(never)]
fn fetch(event: &Event) {
    ask_the_peer(event);
    black_box(event);
}

#[inline(never)]
fn store(event: &Event) {
    ask_the_peer(event);
    black_box(event);
}

#[test]
fn equal_stacks_are_one_group_with_the_callers_of_the_wait() {
    under_each(|runtime| {
        let event = Arc::new(Event::new());
        let fibers: Vec<_> = (0..12)
            .map(|n| {
                let event = Arc::clone(&event);
                let body = move || if n % 3 == 0 { store(&event) } else { fetch(&event) };
                Builder::new().name("get").spawn_on(runtime, body).unwrap()
            })
            .collect();
        until_waiting(runtime, 12);
        let dump = runtime.dump_with_backtraces(LIMIT);
        let text = dump.to_string();
        let groups = ["     8 × `get` waiting for an event at ", "     4 × `get` waiting for an event at "];
        assert!(groups.iter().all(|group| text.contains(group)), "{text}");
        let frames = dump.fibers[1].backtrace.as_ref().unwrap().frames();
        let functions = functions(dump.fibers[1].backtrace.as_ref().unwrap());
        assert_eq!(functions[..2], ["ask_the_peer", "fetch"], "{text}");
        // The body is the last frame. Without debug information, the last frame shows the function that calls the body.
        let places: Vec<_> = frames.into_iter().filter_map(|frame| frame.place).collect();
        let has_body = functions.len() == 3 && functions[2].contains("closure");
        assert!(has_body || functions.len() == 2 && places.is_empty(), "{functions:?} {places:?}");
        assert!(text.contains("backtraces.rs:"), "{text}");
        let shared = |n: usize, m: usize| {
            let [one, other] = [n, m].map(|fiber| dump.fibers[fiber].backtrace.as_ref().unwrap());
            Arc::ptr_eq(one, other)
        };
        assert!(shared(1, 2) && shared(0, 3) && !shared(0, 1));
        event.set();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    });
}

#[test]
fn the_length_of_a_wait_counts_on_and_a_dump_without_backtraces_has_none() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let fiber = runtime.spawn(park);
    until_waiting(&runtime, 1);
    thread::sleep(Duration::from_millis(60));
    let since = |dump: &Dump| match dump.fibers[0].state {
        State::Waiting { since, .. } => since,
        other => panic!("{other:?}"),
    };
    for _ in 0..3 {
        // The fiber has answered the dump, but may not have gone back to its wait yet.
        until_waiting(&runtime, 1);
        let dump = runtime.dump_with_backtraces(LIMIT);
        assert!(dump.fibers[0].backtrace.is_some(), "{dump}");
        assert!(since(&dump) >= Duration::from_millis(40), "{dump}");
    }
    until_waiting(&runtime, 1);
    let dump = runtime.dump();
    assert!(dump.fibers[0].backtrace.is_none() && since(&dump) >= Duration::from_millis(40), "{dump}");
    fiber.fiber().unpark();
    fiber.join().unwrap();
}

#[test]
fn a_worker_that_computes_is_not_waited_for_beyond_the_limit() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let parked = runtime.spawn(park);
    until_waiting(&runtime, 1);
    let (begun, is_over) = (Arc::new(Event::new()), Arc::new(AtomicBool::new(false)));
    let (theirs, over) = (Arc::clone(&begun), Arc::clone(&is_over));
    let hog = runtime.spawn(move || {
        theirs.set();
        while !over.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    begun.wait();
    let dump = runtime.dump_with_backtraces(Duration::from_millis(20));
    assert!(dump.fibers.iter().all(|fiber| fiber.backtrace.is_none()), "{dump}");
    is_over.store(true, SeqCst);
    hog.join().unwrap();
    // The next dump gets the fibers' backtraces.
    until_waiting(&runtime, 1);
    assert!(runtime.dump_with_backtraces(LIMIT).fibers[0].backtrace.is_some());
    parked.fiber().unpark();
    parked.join().unwrap();
}

/// Waits in a frame that is `bytes` bytes below an address of the stack.
#[inline(never)]
fn wait_below(top: usize, bytes: usize) {
    let frame = black_box([0_u8; 256]);
    if top.saturating_sub(frame.as_ptr().addr()) < bytes {
        wait_below(top, bytes);
    } else {
        park_timeout(LIMIT);
    }
    black_box(&frame);
}

#[test]
fn a_stack_without_room_has_no_backtrace_and_does_not_overflow() {
    let runtime = Runtime::start(Options::new(Threads::One).stack_bytes(64 << 10)).unwrap();
    let mut fibers = Vec::new();
    for kib in [0, 16, 32, 40, 44, 48, 52] {
        fibers.push(runtime.spawn(move || wait_below(std::ptr::from_ref(black_box(&kib)).addr(), kib << 10)));
    }
    until_waiting(&runtime, fibers.len());
    let dump = runtime.dump_with_backtraces(LIMIT);
    let taken: Vec<bool> = dump.fibers.iter().map(|fiber| fiber.backtrace.is_some()).collect();
    // Only the first and the last fiber are checked. The room on the other stacks depends on the size of the compiler's frames.
    assert!(taken[0] && !taken[taken.len() - 1], "{taken:?}");
    fibers.iter().for_each(|fiber| fiber.fiber().unpark());
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
}

#[test]
fn a_fiber_may_ask_and_be_cancelled_meanwhile() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let runtime = Arc::new(runtime);
    let parked = runtime.spawn(park);
    until_waiting(&runtime, 1);
    let theirs = Arc::clone(&runtime);
    let asked = runtime.spawn(move || theirs.dump_with_backtraces(LIMIT).fibers[0].backtrace.is_some());
    assert!(asked.join().unwrap());
    for _ in 0..50 {
        let theirs = Arc::clone(&runtime);
        let asks = runtime.spawn(move || drop(theirs.dump_with_backtraces(LIMIT)));
        asks.cancel();
        let _ = asks.join();
    }
    until_waiting(&runtime, 1);
    assert!(runtime.dump_with_backtraces(LIMIT).fibers[0].backtrace.is_some());
    parked.fiber().unpark();
    parked.join().unwrap();
}

/// Waits of every kind survive dumps, and no dump loses a wake-up.
#[test]
fn waits_end_as_they_should_while_dumps_are_taken() {
    let seed = seed();
    println!("seed {seed}");
    for (threads, io) in [
        (Threads::OneEach, IoModel::Readiness),
        (Threads::One, IoModel::Readiness),
        (Threads::Workers(2), IoModel::Completion),
        (Threads::Workers(2), IoModel::Blocking),
    ] {
        let runtime = Runtime::start(Options::new(threads).io(io).on_report(|_| {})).unwrap();
        let (is_over, dumps) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut random = Random::new(seed);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    drop(runtime.dump_with_backtraces(Duration::from_millis(50)));
                    dumps.fetch_add(1, SeqCst);
                }
            });
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(400) || dumps.load(SeqCst) < 5 {
                let pause = Duration::from_micros(random.below(3000));
                let fiber = runtime.spawn(move || {
                    let (sender, receiver) = channel(1);
                    let joined = spawn(move || {
                        for n in 0..20 {
                            sender.send(n).unwrap();
                        }
                        blocking(|| thread::sleep(pause));
                        let began = Instant::now();
                        sleep(pause);
                        assert!(began.elapsed() >= pause);
                        let mut child =
                            millstream_fiber::process::spawn(&mut std::process::Command::new("true")).unwrap();
                        assert!(child.wait().unwrap().success());
                    });
                    assert_eq!(receiver.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
                    yield_now();
                    joined.join().unwrap();
                });
                fiber.join().unwrap();
            }
            is_over.store(true, SeqCst);
        });
    }
}
