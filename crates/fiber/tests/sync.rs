//! Tests of mutexes, events, channels and blocking calls: between fibers, between threads, and between a fiber and a thread.

#[path = "support/modes.rs"]
mod modes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use millstream_fiber::sync::{
    Event, Mutex, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, TrySendError, channel,
};
use millstream_fiber::{JoinError, Options, Runtime, Threads, blocking, spawn, yield_now};
use modes::under_each;

#[test]
fn a_mutex_excludes_fibers_and_threads_even_across_waits() {
    under_each(|runtime| {
        let sum = Mutex::new(0u64);
        let add = |times: u64| {
            for n in 0..times {
                let mut sum = sum.lock();
                let before = *sum;
                if n % 5 == 0 {
                    yield_now();
                }
                *sum = before + 1;
            }
        };
        thread::scope(|threads| {
            threads.spawn(|| add(100));
            runtime.scope(|scope| {
                for _ in 0..20 {
                    scope.spawn(|| add(50));
                }
            });
        });
        assert_eq!(sum.into_inner(), 1100);
    });
}

#[test]
fn ten_thousand_waiters_of_a_mutex_take_their_turns_in_order() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let (order, started) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    runtime.scope(|scope| {
        let first = order.lock();
        let (order, started) = (&order, &started);
        let waiters: Vec<_> = (0..10_000)
            .map(|n| {
                scope.spawn(move || {
                    started.fetch_add(1, SeqCst);
                    order.lock().push(n);
                })
            })
            .collect();
        while started.load(SeqCst) < waiters.len() {
            thread::yield_now();
        }
        drop(first);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert!(order.into_inner().into_iter().eq(0..10_000));
}

#[test]
fn a_mutex_that_is_held_is_not_locked() {
    let mut mutex = Mutex::new(1);
    let guard = mutex.lock();
    assert!(mutex.try_lock().is_none());
    assert_eq!(format!("{mutex:?}"), "Mutex { .. }");
    drop(guard);
    *mutex.get_mut() = 2;
    assert_eq!(format!("{:?}", mutex.try_lock()), "Some(2)");
}

#[test]
fn a_panic_of_the_holder_unlocks() {
    under_each(|runtime| {
        let mutex = Arc::new(Mutex::new(1));
        let theirs = Arc::clone(&mutex);
        let bad = runtime.spawn(move || {
            let _guard = theirs.lock();
            yield_now();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(matches!(bad.join(), Err(JoinError::Panicked(_))));
        assert_eq!(*mutex.lock(), 1);
    });
}

#[test]
fn an_event_ends_every_wait_once_it_is_set_and_not_before() {
    under_each(|runtime| {
        let (event, passed) = (Event::new(), AtomicUsize::new(0));
        runtime.scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    event.wait();
                    passed.fetch_add(1, SeqCst);
                });
            }
            assert!(!event.wait_timeout(Duration::from_millis(5)));
            assert_eq!(passed.load(SeqCst), 0);
            event.set();
        });
        assert!(passed.load(SeqCst) == 10 && event.is_set());
        event.reset();
        assert!(!event.wait_timeout(Duration::ZERO));
    });
}

#[test]
fn values_pass_a_small_channel_in_order_between_all_kinds_of_ends() {
    under_each(|runtime| {
        for capacity in [1, 3] {
            let (sender, receiver) = channel(capacity);
            let fiber = runtime.spawn(move || (0..500).for_each(|n| sender.send(n).unwrap()));
            assert!(receiver.iter().eq(0..500), "fiber to thread");
            fiber.join().unwrap();

            let (sender, receiver) = channel(capacity);
            let fiber = runtime.spawn(move || receiver.iter().eq(0..500));
            (0..500).for_each(|n| sender.send(n).unwrap());
            drop(sender);
            assert!(fiber.join().unwrap(), "thread to fiber");

            let (sender, receiver) = channel(capacity);
            let senders: Vec<_> = (0..5)
                .map(|n| {
                    let sender = sender.clone();
                    runtime.spawn(move || (0..100).for_each(|m| sender.send(n * 100 + m).unwrap()))
                })
                .collect();
            drop(sender);
            let receivers = [(); 3].map(|()| {
                let receiver = receiver.clone();
                runtime.spawn(move || receiver.iter().sum::<u32>())
            });
            drop(receiver);
            senders.into_iter().for_each(|fiber| fiber.join().unwrap());
            assert_eq!(receivers.map(|fiber| fiber.join().unwrap()).iter().sum::<u32>(), (0..500).sum());
        }
    });
}

#[test]
fn a_channel_reports_its_ends_and_its_limits_in_time() {
    under_each(|runtime| {
        let fiber = runtime.spawn(|| {
            let (sender, receiver) = channel(1);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            assert_eq!(receiver.recv_timeout(Duration::from_millis(2)), Err(RecvTimeoutError::Timeout));
            sender.send(1).unwrap();
            assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
            assert_eq!(sender.send_timeout(3, Duration::from_millis(2)), Err(SendTimeoutError::Timeout(3)));
            assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(1));
            sender.send_timeout(4, Duration::from_millis(2)).unwrap();
            drop(receiver);
            assert_eq!(sender.send_timeout(5, Duration::ZERO), Err(SendTimeoutError::Disconnected(5)));
            assert!(sender.send(6).is_err());
        });
        fiber.join().unwrap();
    });
}

#[test]
fn receivers_and_senders_of_a_channel_have_their_turns_in_order() {
    let runtime = Runtime::start(Options::new(Threads::One).on_report(|_| {})).unwrap();
    let fiber = runtime.spawn(|| {
        let ((sender, receiver), started) = (channel(1), Arc::new(AtomicUsize::new(0)));
        // There is one worker, so a fiber that has started runs until it waits.
        let wait_for = |fibers| {
            while started.load(SeqCst) < fibers {
                yield_now();
            }
        };
        let receivers = [(); 4].map(|()| {
            let (receiver, started) = (receiver.clone(), Arc::clone(&started));
            spawn(move || {
                started.fetch_add(1, SeqCst);
                receiver.recv().unwrap()
            })
        });
        wait_for(4);
        sender.send(0).unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "the value is the first receiver's");
        (1..4).for_each(|n| sender.send(n).unwrap());
        assert_eq!(receivers.map(|fiber| fiber.join().unwrap()), [0, 1, 2, 3]);

        sender.send(0).unwrap();
        let senders = [1, 2, 3].map(|n| {
            let (sender, started) = (sender.clone(), Arc::clone(&started));
            spawn(move || {
                started.fetch_add(1, SeqCst);
                sender.send(n).unwrap();
            })
        });
        wait_for(7);
        for n in 0..4 {
            assert_eq!(receiver.recv(), Ok(n));
            assert_eq!(sender.try_send(9).is_ok(), n == 3, "the room is the first sender's");
        }
        senders.into_iter().for_each(|fiber| fiber.join().unwrap());
    });
    fiber.join().unwrap();
}

/// A value whose destructor uses its channel, and may panic.
struct Hostile {
    channel: Sender<Hostile>,
    drops: Arc<AtomicUsize>,
    panics: bool,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        // Cloning the sender locks the channel.
        drop(self.channel.clone());
        let drops = self.drops.fetch_add(1, SeqCst);
        if self.panics {
            std::panic::resume_unwind(Box::new(drops));
        }
    }
}

#[test]
fn the_last_receiver_drops_the_values_though_destructors_use_the_channel_and_panic() {
    under_each(|runtime| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(8);
        let value = |panics| Hostile { channel: sender.clone(), drops: Arc::clone(&drops), panics };
        for panics in [false, true, false, true, false] {
            assert!(sender.send(value(panics)).is_ok());
        }
        let fiber = runtime.spawn(move || drop((receiver.clone(), receiver)));
        let Err(JoinError::Panicked(payload)) = fiber.join() else { panic!("expected the destructor's panic") };
        assert_eq!((payload.downcast_ref(), drops.load(SeqCst)), (Some(&1_usize), 5));
        assert!(sender.try_send(value(false)).is_err());
        assert_eq!(drops.load(SeqCst), 6, "a value that comes back is dropped by its owner");
    });
}

#[test]
fn a_channel_of_an_impossible_size_is_refused() {
    for (capacity, text) in [(0, "between 1 and"), (usize::MAX, "between 1 and"), (1 << 30, "no memory for a channel")]
    {
        let refused = std::panic::catch_unwind(|| channel::<[u64; 1 << 26]>(capacity)).unwrap_err();
        let refused = refused.downcast_ref::<String>().unwrap();
        assert!(refused.contains(text), "{refused}");
    }
}

#[test]
fn a_blocking_call_leaves_the_worker_to_other_fibers_and_may_borrow() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let is_run = AtomicBool::new(false);
    runtime.scope(|scope| {
        scope.spawn(|| {
            let text = String::from("borrowed");
            let length = blocking(|| {
                while !is_run.load(SeqCst) {
                    thread::yield_now();
                }
                text.len()
            });
            assert_eq!(length, 8);
        });
        scope.spawn(|| is_run.store(true, SeqCst));
    });
}

#[test]
fn blocking_calls_beyond_the_limit_wait_in_line_and_panics_come_back() {
    let runtime = Runtime::start(Options::new(Threads::One).max_blocking_threads(2)).unwrap();
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    runtime.scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                blocking(|| {
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    now.fetch_sub(1, SeqCst);
                });
            });
        }
    });
    assert_eq!(most.load(SeqCst), 2);
    let bad = runtime.spawn(|| blocking(|| std::panic::resume_unwind(Box::new("call"))));
    let Err(JoinError::Panicked(payload)) = bad.join() else { panic!("expected the call's panic") };
    assert_eq!(payload.downcast_ref(), Some(&"call"));
    assert_eq!(blocking(|| 5), 5, "outside a fiber it is a plain call");
}
