//! Channels, one property per test.
#![cfg(not(loom))]

#[path = "support/block_on.rs"]
mod block_on;
#[path = "support/strategies.rs"]
mod strategies;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use block_on::block_on;
use millstream_ring::channel::{
    self, Disconnected, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, TrySendError,
};
use millstream_ring::sequencer::{Multi, Sequencer};
use millstream_ring::{Options, WaitSet, WaitStrategy};
use strategies::STRATEGIES;

/// Longer than any event here takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn values_arrive_in_the_order_they_were_sent() {
    let (sender, receiver) = channel::mpsc(4);
    (0..4).for_each(|n| sender.send(n).unwrap());
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_full_channel_gives_the_value_back() {
    let (sender, receiver) = channel::mpsc(2);
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(sender.send_deadline(3, soon), Err(SendTimeoutError::Timeout(3)));
    assert!(Instant::now() >= soon);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(sender.try_send(3), Ok(()));
}

#[test]
fn an_empty_channel_times_out() {
    for strategy in STRATEGIES {
        let (sender, receiver) = channel::mpsc::<u8>(Options::new(2).wait_strategy(strategy));
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(receiver.recv_deadline(soon), Err(RecvTimeoutError::Timeout), "{strategy:?}");
        assert!(Instant::now() >= soon, "{strategy:?}");
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
    }
}

#[test]
fn values_sent_before_the_last_sender_left_are_received() {
    let (sender, receiver) = channel::mpsc(8);
    let other = sender.clone();
    sender.send(1).unwrap();
    drop(sender);
    other.send(2).unwrap();
    drop(other);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(receiver.recv(), Err(Disconnected));
}

#[test]
fn senders_learn_that_no_receiver_is_left() {
    let (sender, receiver) = channel::mpmc(1);
    let other = receiver.clone();
    sender.send(1).unwrap();
    drop(receiver);
    assert!(!sender.is_disconnected());
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| sender.send(2));
        std::thread::sleep(Duration::from_millis(5));
        drop(other);
        assert_eq!(blocked.join().unwrap().unwrap_err().0, 2);
    });
    assert!(sender.is_disconnected());
    assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    let mut batch = vec![4, 5];
    assert_eq!(sender.send_many(&mut batch), Err(Disconnected));
    assert_eq!(batch, [4, 5]);
}

#[test]
fn a_blocked_receiver_learns_that_no_sender_is_left() {
    for strategy in STRATEGIES {
        let (sender, receiver) = channel::mpsc::<u8>(Options::new(2).wait_strategy(strategy));
        std::thread::scope(|scope| {
            let blocked = scope.spawn(move || receiver.recv());
            std::thread::sleep(Duration::from_millis(5));
            drop(sender);
            assert_eq!(blocked.join().unwrap(), Err(Disconnected), "{strategy:?}");
        });
    }
}

#[test]
fn values_that_were_not_received_are_dropped_once() {
    let value = Arc::new(());
    let (mut sender, receiver) = channel::mpsc(8);
    for _ in 0..11 {
        sender.send(Arc::clone(&value)).unwrap();
        if sender.len() > 4 {
            receiver.recv().unwrap();
        }
    }
    drop(sender.reserve().unwrap());
    sender.send(Arc::clone(&value)).unwrap();
    assert_eq!(Arc::strong_count(&value), 6);
    drop(receiver);
    drop(sender);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_dropped_permit_blocks_no_receiver_and_leaves_no_value() {
    let (mut sender, receiver) = channel::mpsc(4);
    let mut other = sender.clone();
    for lap in 0..10 {
        let first = sender.reserve().unwrap();
        other.send(lap).unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "a receiver passed a slot that is still claimed");
        drop(first);
        assert_eq!(receiver.recv(), Ok(lap));
        other.reserve().unwrap().send(lap + 100);
        assert_eq!(receiver.recv(), Ok(lap + 100));
    }
}

#[test]
fn a_single_sender_s_dropped_permit_is_taken_back() {
    let (mut sender, receiver) = channel::spsc(1);
    drop(sender.reserve().unwrap());
    sender.reserve().unwrap().send("value");
    assert_eq!(receiver.recv(), Ok("value"));
}

#[test]
fn a_sender_that_panics_while_it_has_a_permit_does_not_block_the_channel() {
    let (sender, receiver) = channel::mpsc(2);
    for _ in 0..5 {
        let mut doomed = sender.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _permit = doomed.reserve().unwrap();
            std::panic::resume_unwind(Box::new("between claim and publication"));
        }));
        assert!(outcome.is_err());
        sender.send(7).unwrap();
        assert_eq!(receiver.recv(), Ok(7));
    }
}

#[test]
fn batches_keep_their_order_and_skip_slots_that_were_given_up() {
    let (mut sender, receiver) = channel::mpsc(8);
    let mut received = Vec::new();
    for lap in 0..20 {
        let mut batch: Vec<u32> = (lap * 5..lap * 5 + 5).collect();
        assert_eq!(sender.try_send_many(&mut batch), Ok(5));
        if lap % 3 == 0 {
            drop(sender.reserve().unwrap());
        }
        assert_eq!(receiver.recv_many(&mut received, 2), Ok(2));
        while receiver.try_recv_many(&mut received, 64).unwrap() > 0 {}
    }
    assert_eq!(received, (0..100).collect::<Vec<_>>());
    drop(sender);
    assert_eq!(receiver.try_recv_many(&mut received, 1), Err(Disconnected));
}

#[test]
fn a_request_for_no_values_returns_at_once() {
    let (sender, receiver) = channel::mpsc(4);
    sender.send(1).unwrap();
    let mut received = Vec::new();
    assert_eq!((receiver.try_recv_many(&mut received, 0), receiver.recv_many(&mut received, 0)), (Ok(0), Ok(0)));
    assert_eq!((sender.try_send_many(&mut Vec::new()), sender.send_many(&mut Vec::new())), (Ok(0), Ok(())));
    assert_eq!(receiver.recv(), Ok(1));
}

#[test]
fn a_batch_larger_than_the_channel_is_sent_in_portions() {
    let (sender, receiver) = channel::spsc(4);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
            sender.send_many(&mut batch).unwrap();
            assert!(batch.is_empty());
        });
        let received: Vec<String> = receiver.into_iter().collect();
        assert_eq!(received, (0..1000).map(|n| n.to_string()).collect::<Vec<_>>());
    });
}

#[test]
fn a_batch_that_does_not_fit_keeps_the_values_not_sent() {
    let (sender, receiver) = channel::mpsc(4);
    let mut batch: Vec<u8> = (0..6).collect();
    assert_eq!(sender.try_send_many(&mut batch), Ok(4));
    assert_eq!(batch, [4, 5]);
    assert_eq!(sender.try_send_many(&mut batch), Ok(0));
    assert_eq!(receiver.recv(), Ok(0));
    assert_eq!(sender.try_send_many(&mut batch), Ok(1));
    assert_eq!(batch, [5]);
}

#[test]
fn a_receive_of_a_batch_ends_at_its_deadline_and_takes_available_values() {
    for strategy in STRATEGIES {
        let (sender, receiver) = channel::mpsc(Options::new(8).wait_strategy(strategy));
        let mut received = Vec::new();
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(receiver.recv_many_deadline(&mut received, 4, soon), Err(RecvTimeoutError::Timeout), "{strategy:?}");
        assert!(Instant::now() >= soon, "{strategy:?}");
        assert_eq!(receiver.recv_many_deadline(&mut received, 0, soon), Ok(0));
        (0..6).for_each(|n| sender.send(n).unwrap());
        assert_eq!(
            receiver.recv_many_deadline(&mut received, 4, soon),
            Ok(4),
            "available values were not returned after the deadline"
        );
        assert_eq!(receiver.recv_many(&mut received, 4), Ok(2));
        assert_eq!(received, [0, 1, 2, 3, 4, 5]);
        drop(sender);
        assert_eq!(receiver.recv_many_deadline(&mut received, 4, soon), Err(RecvTimeoutError::Disconnected));
    }
}

#[test]
fn a_batch_is_full_or_has_the_values_that_arrived_in_time() {
    let (sender, receiver) = channel::mpsc(128);
    let all_sent = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100 {
                sender.send(n).unwrap();
                if n % 10 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            all_sent.wait();
        });
        let batch_of_64 = |timeout| {
            let (mut batch, deadline) = (Vec::new(), Instant::now() + timeout);
            while let missing @ 1.. = 64 - batch.len()
                && receiver.recv_many_deadline(&mut batch, missing, deadline).is_ok()
            {}
            batch
        };
        let first = batch_of_64(Duration::from_secs(60));
        all_sent.wait();
        // The sender still exists when this times out.
        let second = batch_of_64(Duration::from_millis(200));
        assert_eq!((first, second), ((0..64).collect(), (64..100).collect()));
    });
    drop(sender);
}

#[test]
fn a_batch_that_finds_no_room_in_time_keeps_the_values_not_sent() {
    let (sender, receiver) = channel::mpsc(4);
    let mut batch: Vec<u8> = (0..6).collect();
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(sender.send_many_deadline(&mut batch, soon), Err(SendTimeoutError::Timeout(())));
    assert!(Instant::now() >= soon);
    assert_eq!(batch, [4, 5]);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| sender.send_many_deadline(&mut batch, Instant::now() + LONG));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(0), Ok(1)));
        assert_eq!(sending.join().unwrap(), Ok(()));
    });
    assert!(batch.is_empty());
    batch.push(6);
    receiver.close();
    assert_eq!(sender.send_many_deadline(&mut batch, Instant::now() + LONG), Err(SendTimeoutError::Disconnected(())));
    assert_eq!((batch, receiver.iter().collect::<Vec<_>>()), (vec![6], vec![2, 3, 4, 5]));
}

#[test]
fn each_value_goes_to_one_of_many_receivers() {
    const VALUES: usize = 20_000;
    for strategy in STRATEGIES {
        let (sender, receiver) = channel::mpmc(Options::new(16).wait_strategy(strategy));
        let seen: Vec<AtomicUsize> = (0..VALUES).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (receiver, seen) = (receiver.clone(), &seen);
                scope.spawn(move || receiver.iter().for_each(|n: usize| _ = seen[n].fetch_add(1, Ordering::Relaxed)));
            }
            drop(receiver);
            for half in 0..2 {
                let sender = sender.clone();
                scope.spawn(move || (half..VALUES).step_by(2).for_each(|n| sender.send(n).unwrap()));
            }
            drop(sender);
        });
        assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1), "{strategy:?}");
    }
}

#[test]
fn blocked_senders_notice_free_slots_although_the_consumer_stops() {
    // Fewer than a quarter of the slots become free, and no completion follows: only the sleepers' own timers, or a
    // wake-up for a single slot, can help.
    let (sender, receiver) = channel::mpsc(Options::new(64).wait_strategy(WaitStrategy::Block));
    (0..64).for_each(|n| sender.send(n).unwrap());
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (0..3)
            .map(|n| {
                let sender = &sender;
                scope.spawn(move || sender.send(100 + n))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        (0..3).for_each(|n| assert_eq!(receiver.recv(), Ok(n)));
        let began = Instant::now();
        for sender in blocked {
            sender.join().unwrap().unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    });
}

#[test]
fn tasks_send_and_receive() {
    let (sender, mut receiver) = channel::mpsc(2);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            block_on(async {
                for n in 0..1000 {
                    sender.send_async(n).await.unwrap();
                }
            });
        });
        block_on(async {
            for n in 0..1000 {
                assert_eq!(receiver.recv_async().await, Ok(n));
            }
            assert_eq!(receiver.recv_async().await, Err(Disconnected));
        });
    });
}

#[test]
fn tasks_send_and_receive_batches() {
    let (sender, mut receiver) = channel::mpsc(4);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch: Vec<u32> = (0..1000).collect();
            block_on(sender.send_many_async(&mut batch)).unwrap();
            assert!(batch.is_empty());
        });
        let mut received = Vec::new();
        assert_eq!(block_on(receiver.recv_many_async(&mut received, 0)), Ok(0));
        while let Ok(some) = block_on(receiver.recv_many_async(&mut received, 3)) {
            assert!((1..=3).contains(&some));
        }
        assert_eq!(received, (0..1000).collect::<Vec<_>>());
    });
}

#[test]
fn a_dropped_send_of_a_batch_keeps_the_values_not_sent() {
    let (sender, receiver) = channel::mpsc(2);
    let mut batch: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    {
        let mut waiting = Box::pin(sender.send_many_async(&mut batch));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(batch, ["2", "3", "4"]);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["0", "1"]);
    drop(receiver);
    assert_eq!(block_on(sender.send_many_async(&mut batch)), Err(Disconnected));
    assert_eq!(batch, ["2", "3", "4"]);
}

#[test]
fn a_dropped_receive_loses_nothing() {
    let (sender, mut receiver) = channel::mpsc(2);
    for n in 0..100 {
        {
            let mut waiting = Box::pin(receiver.recv_async());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        sender.send(n).unwrap();
        assert_eq!(block_on(receiver.recv_async()), Ok(n));
    }
}

#[test]
fn one_wait_covers_several_channels() {
    let set = WaitSet::new();
    let (first, first_receiver) = channel::mpsc::<u32>(Options::new(4).wait_set(&set));
    let (second, second_receiver) = channel::mpsc::<u32>(Options::new(4).wait_set(&set));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..2000 {
                if n % 2 == 0 { first.send(n).unwrap() } else { second.send(n).unwrap() }
            }
        });
        let mut sum = 0;
        for _ in 0..2000 {
            sum += set.wait(|| first_receiver.try_recv().or_else(|_| second_receiver.try_recv()).ok());
        }
        assert_eq!(sum, (0..2000).sum());
    });
    let soon = Instant::now() + Duration::from_millis(2);
    assert_eq!(set.wait_deadline(soon, || None::<()>), None);
}

#[test]
fn handles_are_send_and_sync_where_they_should_be() {
    fn send<T: Send>(_: &T) {}
    fn sync<T: Sync>(_: &T) {}
    let (sender, receiver) = channel::mpmc::<u8>(2);
    sync(&sender);
    sync(&receiver);
    // Several tasks may share an end that can be cloned.
    send(&sender.send_async(1));
    send(&receiver.recv_async());
    let (mut sender, mut receiver) = channel::spsc::<u8>(2);
    send(&sender);
    send(&receiver);
    // Executors move tasks between threads.
    send(&sender.send_async(1));
    send(&receiver.recv_async());
    send(&sender.send_many_async(&mut Vec::new()));
    send(&receiver.recv_many_async(&mut Vec::new(), 1));
    let (sender, mut receiver) = channel::mpsc::<u8>(2);
    send(&sender.send_async(1));
    send(&receiver.recv_async());
    send(&sender.send_many_async(&mut Vec::new()));
    send(&receiver.recv_many_async(&mut Vec::new(), 1));
}

/// Counts a task's wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tasks that the test polls itself.
struct Tasks<'a> {
    futures: Vec<Option<Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    woken: Vec<Arc<Woken>>,
}

impl<'a> Tasks<'a> {
    /// Tasks, one for each sender: task `n` sends the value `n` when there is room.
    fn that_send<C: Sequencer>(senders: &'a mut [Sender<usize, Multi, C>]) -> Self {
        let woken = senders.iter().map(|_| Arc::default()).collect();
        let sends = |(n, sender): (usize, &'a mut Sender<usize, Multi, C>)| {
            let future: Pin<Box<dyn Future<Output = ()>>> =
                Box::pin(async move { sender.send_async(n).await.unwrap() });
            Some(future)
        };
        let mut tasks = Tasks { futures: senders.iter_mut().enumerate().map(sends).collect(), woken };
        assert!((0..tasks.futures.len()).all(|task| !tasks.poll(task)), "a task sent although there is no room");
        tasks
    }

    /// Polls a task that has not ended; returns whether it ends.
    fn poll(&mut self, task: usize) -> bool {
        let future = &mut self.futures[task];
        let waker = Waker::from(Arc::clone(&self.woken[task]));
        let ready =
            future.as_mut().expect("the task has not ended").as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        if ready {
            *future = None;
        }
        ready
    }

    /// The number of wake-ups of each task.
    fn times(&self) -> Vec<usize> {
        self.woken.iter().map(|woken| woken.0.load(Ordering::Relaxed)).collect()
    }
}

#[test]
fn as_many_tasks_that_wait_for_room_are_woken_as_there_are_free_slots() {
    const TASKS: usize = 64;
    let (sender, receiver) = channel::mpsc(4);
    (0..4).for_each(|_| sender.send(TASKS).unwrap());
    let mut senders = vec![sender; TASKS];
    let mut tasks = Tasks::that_send(&mut senders);
    let mut received = Vec::new();
    while received.len() < TASKS + 4 {
        let before = tasks.times();
        let places = receiver.recv_many(&mut received, 3).unwrap();
        let woken: Vec<usize> = (0..TASKS).filter(|&task| tasks.times()[task] > before[task]).collect();
        let first = received.len() - places;
        assert_eq!(
            woken,
            Vec::from_iter(first..TASKS.min(first + places)),
            "the woken tasks are not those that have waited longest"
        );
        assert!(woken.into_iter().all(|task| tasks.poll(task)));
    }
    assert_eq!(received[4..], Vec::from_iter(0..TASKS));
    assert_eq!(tasks.times(), [1; TASKS]);
}

#[test]
fn a_woken_task_that_is_dropped_leaves_its_slot_to_the_next() {
    let (sender, receiver) = channel::mpsc(1);
    sender.send(9).unwrap();
    let mut senders = vec![sender; 3];
    let mut tasks = Tasks::that_send(&mut senders);
    assert_eq!(receiver.recv(), Ok(9));
    assert_eq!(tasks.times(), [1, 0, 0]);
    tasks.futures[0] = None;
    assert_eq!(tasks.times(), [1, 1, 0]);
    assert!(tasks.poll(1));
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(tasks.times(), [1, 1, 1]);
}
