//! Tests of cancellation: unwinding at waits, masks, races, and destructors that wait.

#[path = "support/modes.rs"]
mod modes;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use millstream_fiber::sync::{Event, Mutex, channel};
use millstream_fiber::{
    JoinError, JoinHandle, Options, Runtime, Threads, blocking, is_cancelled, park, sleep, yield_now,
};
use millstream_verify_random::{Random, stress};
use modes::{MODES, under_each};

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn is_cancelled_result<T>(result: &Result<T, JoinError>) -> bool {
    matches!(result, Err(JoinError::Cancelled))
}

#[test]
fn every_kind_of_wait_unwinds_and_drops_the_stack() {
    under_each(|runtime| {
        let drops = Arc::new(AtomicUsize::new(0));
        let mutex = Arc::new(Mutex::new(()));
        let event = Arc::new(Event::new());
        let (full, receiver) = channel(1);
        full.send(1).unwrap();
        let (sender, empty) = channel::<u8>(1);
        let guard = mutex.lock();
        let (their_mutex, their_event) = (Arc::clone(&mutex), Arc::clone(&event));
        let target = runtime.spawn(park);
        let unpark_target = target.fiber().clone();
        let waits: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(park),
            Box::new(|| sleep(Duration::from_secs(3600))),
            Box::new(|| {
                loop {
                    yield_now();
                }
            }),
            Box::new(move || drop(their_mutex.lock())),
            Box::new(move || their_event.wait()),
            Box::new(move || full.send(2).unwrap()),
            Box::new(move || assert!(empty.recv().is_ok())),
            Box::new(move || drop(target.join())),
        ];
        let count = waits.len();
        let fibers: Vec<JoinHandle<()>> = waits
            .into_iter()
            .map(|wait| {
                let dropped = Dropped(Arc::clone(&drops));
                runtime.spawn(move || {
                    let _dropped = dropped;
                    wait();
                })
            })
            .collect();
        sleep(Duration::from_millis(5));
        fibers.iter().for_each(JoinHandle::cancel);
        for fiber in fibers {
            assert!(is_cancelled_result(&fiber.join()));
        }
        assert_eq!(drops.load(SeqCst), count);
        drop((guard, receiver, sender));
        // The joiner has unwound, which detached its target. The target keeps running.
        unpark_target.unpark();
        assert!(mutex.try_lock().is_some(), "no waiter left anything behind");
    });
}

#[test]
fn a_fiber_cancelled_before_it_starts_never_runs() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let is_started = Arc::new(AtomicBool::new(false));
    let gate = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&gate);
    let keeper = runtime.spawn(move || {
        while !theirs.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    let (dropped, started) = (Dropped(Arc::clone(&drops)), Arc::clone(&is_started));
    let unstarted = runtime.spawn(move || {
        started.store(true, SeqCst);
        drop(dropped);
    });
    unstarted.cancel();
    gate.store(true, SeqCst);
    assert!(is_cancelled_result(&unstarted.join()));
    assert_eq!((drops.load(SeqCst), is_started.load(SeqCst)), (1, false));
    keeper.join().unwrap();
}

#[test]
fn a_swallowed_cancellation_repeats_at_the_next_wait() {
    under_each(|runtime| {
        let swallowed = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&swallowed);
        let fiber = runtime.spawn(move || {
            for _ in 0..3 {
                assert!(catch_unwind(park).is_err());
                theirs.fetch_add(1, SeqCst);
            }
            assert!(is_cancelled());
            yield_now();
        });
        sleep(Duration::from_millis(1));
        fiber.cancel();
        assert!(is_cancelled_result(&fiber.join()));
        assert!([0, 3].contains(&swallowed.load(SeqCst)));
    });
}

#[test]
fn a_cancelled_fiber_that_does_not_wait_returns_its_value() {
    under_each(|runtime| {
        let is_seen = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_seen);
        let fiber = runtime.spawn(move || {
            theirs.store(true, SeqCst);
            while !is_cancelled() {
                std::hint::spin_loop();
            }
            9
        });
        while !is_seen.load(SeqCst) {
            thread::yield_now();
        }
        fiber.cancel();
        assert_eq!(fiber.join().unwrap(), 9);
    });
}

#[test]
fn a_rethrown_cancellation_payload_is_an_ordinary_panic() {
    under_each(|runtime| {
        let thief = runtime.spawn(|| {
            let payload = catch_unwind(park).unwrap_err();
            drop(catch_unwind(AssertUnwindSafe(yield_now)));
            payload
        });
        sleep(Duration::from_millis(1));
        thief.cancel();
        if let Ok(payload) = thief.join() {
            let thrower = runtime.spawn(move || resume_unwind(payload));
            assert!(matches!(thrower.join(), Err(JoinError::Panicked(_))));
        }
    });
}

/// Its destructor makes each kind of wait.
struct Waits {
    mutex: Arc<Mutex<u32>>,
    ends: Arc<AtomicUsize>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        *self.mutex.lock() += 1;
        yield_now();
        sleep(Duration::from_micros(100));
        let (sender, receiver) = channel(1);
        let child = millstream_fiber::spawn(move || sender.send(5).unwrap());
        assert_eq!(receiver.recv(), Ok(5));
        child.join().unwrap();
        assert_eq!(blocking(|| 6), 6);
        self.ends.fetch_add(1, SeqCst);
    }
}

#[test]
fn destructors_may_wait_while_their_fiber_unwinds() {
    under_each(|runtime| {
        let (mutex, ends) = (Arc::new(Mutex::new(0)), Arc::new(AtomicUsize::new(0)));
        let fibers: Vec<_> = (0..20)
            .map(|n| {
                let waits = Waits { mutex: Arc::clone(&mutex), ends: Arc::clone(&ends) };
                runtime.spawn(move || {
                    let _waits = waits;
                    if n % 2 == 0 {
                        resume_unwind(Box::new(n));
                    }
                    park();
                })
            })
            .collect();
        sleep(Duration::from_millis(5));
        fibers.iter().for_each(JoinHandle::cancel);
        for fiber in fibers {
            assert!(fiber.join().is_err());
        }
        assert_eq!((*mutex.lock(), ends.load(SeqCst)), (20, 20));
    });
}

#[test]
fn a_mutex_passes_on_when_its_next_holder_is_cancelled() {
    under_each(|runtime| {
        for _ in 0..50 {
            let mutex = Arc::new(Mutex::new(0));
            let guard = mutex.lock();
            let waiters = [(); 3].map(|()| {
                let mutex = Arc::clone(&mutex);
                runtime.spawn(move || *mutex.lock() += 1)
            });
            yield_now();
            // The first waiter in line may have been woken before it is cancelled.
            drop(guard);
            waiters[0].cancel();
            let ended = waiters.map(JoinHandle::join);
            let locked = ended.iter().filter(|result| result.is_ok()).count();
            assert!(locked >= 2);
            assert_eq!(*mutex.lock(), locked);
        }
    });
}

#[test]
fn races_of_cancels_with_wake_ups_and_ends_lose_nothing() {
    for threads in MODES {
        let rounds = 300 * stress();
        let mut random = Random::seeded();
        let runtime = Runtime::start(Options::new(threads)).unwrap();
        let (started, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..rounds {
            started.fetch_add(1, SeqCst);
            let counted = Dropped(Arc::clone(&dropped));
            let (sender, receiver) = channel(1);
            let fiber = runtime.spawn(move || {
                let _counted = counted;
                park();
                receiver.recv().unwrap()
            });
            for _ in 0..random.below(4) {
                yield_now();
            }
            let canceller = runtime.spawn({
                let other = fiber.fiber().clone();
                move || other.unpark()
            });
            if random.below(2) == 0 {
                fiber.cancel();
            }
            let sent = sender.send(3);
            if sent.is_ok() && random.below(3) == 0 {
                fiber.cancel();
            }
            match fiber.join() {
                Ok(value) => assert_eq!(value, 3),
                Err(error) => assert!(matches!(error, JoinError::Cancelled), "{error}"),
            }
            canceller.join().unwrap();
        }
        runtime.finish();
        assert_eq!(dropped.load(SeqCst), started.load(SeqCst));
    }
}

/// The values of a channel, grouped by their fate. Each list contains the numbers of values.
#[derive(Default)]
struct Fates {
    made: AtomicUsize,
    sent: std::sync::Mutex<Vec<usize>>,
    /// The first list: values that were dropped without being received. The second: values that were received and then dropped.
    dropped: [std::sync::Mutex<Vec<usize>>; 2],
}

struct Numbered {
    number: usize,
    is_received: bool,
    fates: Arc<Fates>,
}

impl Numbered {
    fn new(fates: &Arc<Fates>) -> Self {
        Numbered { number: fates.made.fetch_add(1, SeqCst), is_received: false, fates: Arc::clone(fates) }
    }

    fn receive(mut self) {
        self.is_received = true;
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.fates.dropped[usize::from(self.is_received)].lock().unwrap().push(self.number);
    }
}

/// Calls `step` a few times, with and without a time limit, and waits from time to time.
fn some_steps(random: &mut Random, mut step: impl FnMut(Option<Duration>)) {
    for _ in 0..random.below(12) {
        match random.below(4) {
            0 => step(Some(Duration::from_micros(random.below(200)))),
            1 => yield_now(),
            _ => step(None),
        }
    }
}

#[test]
fn a_channel_whose_waiters_are_cancelled_loses_and_doubles_no_value() {
    let mut random = Random::seeded();
    for (threads, capacity) in MODES.into_iter().flat_map(|threads| [1, 2, 7].map(|capacity| (threads, capacity))) {
        let runtime = Runtime::start(Options::new(threads).on_report(|_| {})).unwrap();
        for _ in 0..10 * stress() {
            let fates = Arc::new(Fates::default());
            let (sender, receiver) = channel(capacity);
            let mut fibers = Vec::new();
            for _ in 0..4 {
                let (sender, fates, mut steps) = (sender.clone(), Arc::clone(&fates), random.fork());
                fibers.push(runtime.spawn(move || {
                    some_steps(&mut steps, |limit| {
                        let value = Numbered::new(&fates);
                        let number = value.number;
                        let is_sent = match limit {
                            Some(limit) => sender.send_timeout(value, limit).is_ok(),
                            None => sender.send(value).is_ok(),
                        };
                        if is_sent {
                            fates.sent.lock().unwrap().push(number);
                        }
                    });
                }));
                let (receiver, mut steps) = (receiver.clone(), random.fork());
                fibers.push(runtime.spawn(move || {
                    some_steps(&mut steps, |limit| {
                        let received = match limit {
                            Some(limit) => receiver.recv_timeout(limit).ok(),
                            None => receiver.recv().ok(),
                        };
                        received.into_iter().for_each(Numbered::receive);
                    });
                }));
            }
            for fiber in &fibers {
                (0..random.below(3)).for_each(|_| thread::yield_now());
                if random.below(2) == 0 {
                    fiber.cancel();
                }
            }
            drop(sender);
            // On average, every third channel loses its receivers early.
            let most = if random.below(3) == 0 { 3 } else { usize::MAX };
            receiver.iter().take(most).for_each(Numbered::receive);
            drop(receiver);
            for fiber in fibers {
                assert!(matches!(fiber.join(), Ok(()) | Err(JoinError::Cancelled)));
            }
            let [unreceived, received] = fates.dropped.each_ref().map(|list| list.lock().unwrap().clone());
            let mut all = [&received[..], &unreceived].concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..fates.made.load(SeqCst)), "each value is dropped once");
            if most == usize::MAX {
                let sent = fates.sent.lock().unwrap();
                assert!(sent.iter().all(|number| received.contains(number)), "a value that was sent is received");
            }
        }
    }
}

#[test]
fn dropping_the_runtime_cancels_everything() {
    for threads in MODES {
        let drops = Arc::new(AtomicUsize::new(0));
        let runtime = Runtime::start(Options::new(threads)).unwrap();
        for n in 0..30 {
            let dropped = Dropped(Arc::clone(&drops));
            runtime.spawn(move || {
                let _dropped = dropped;
                if n % 3 == 0 {
                    sleep(Duration::from_secs(3600));
                } else {
                    // A fiber spawned while the runtime closes is cancelled as well.
                    drop(catch_unwind(park));
                    millstream_fiber::spawn(|| park());
                }
            });
        }
        drop(runtime);
        assert_eq!(drops.load(SeqCst), 30);
    }
}

#[test]
fn cancellation_does_not_interrupt_a_blocking_call() {
    under_each(|runtime| {
        let (is_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (begun, over) = (Arc::clone(&is_begun), Arc::clone(&is_over));
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_asked);
        let fiber = runtime.spawn(move || {
            blocking(|| {
                begun.store(true, SeqCst);
                while !asked.load(SeqCst) {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(5));
                over.store(true, SeqCst);
            });
            yield_now();
        });
        while !is_begun.load(SeqCst) {
            thread::yield_now();
        }
        fiber.cancel();
        is_asked.store(true, SeqCst);
        assert!(is_cancelled_result(&fiber.join()));
        assert!(is_over.load(SeqCst));
    });
}

#[test]
fn a_cancelled_blocking_call_leaves_the_line_unless_it_has_begun() {
    let options = Options::new(Threads::One).max_blocking_threads(1);
    let runtime = Runtime::start(options).unwrap();
    let (begun, gate) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let first = {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        runtime.spawn(move || {
            blocking(|| {
                begun.set();
                gate.wait();
            });
        })
    };
    begun.wait();
    let ran = Arc::new(AtomicBool::new(false));
    let (second, dropped) = {
        let (ran, drops) = (Arc::clone(&ran), Arc::new(AtomicUsize::new(0)));
        let kept = Dropped(Arc::clone(&drops));
        let fiber = runtime.spawn(move || {
            blocking(move || {
                let _kept = kept;
                ran.store(true, SeqCst);
            });
        });
        (fiber, drops)
    };
    thread::sleep(Duration::from_millis(5));
    second.cancel();
    assert!(is_cancelled_result(&second.join()));
    assert_eq!((ran.load(SeqCst), dropped.load(SeqCst)), (false, 1));
    // The first call has begun, so its fiber waits for the call to end.
    first.cancel();
    gate.set();
    first.join().unwrap();
}
