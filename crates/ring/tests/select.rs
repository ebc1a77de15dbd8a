//! Waits for one of several channels, one property per test.
#![cfg(not(loom))]

#[path = "support/block_on.rs"]
mod block_on;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use block_on::block_on;
use millstream_ring::channel::{self, Select, TryRecvError};
use millstream_verify_random::{Random, stress};

#[test]
fn ready_operations_are_found() {
    let (first, first_rx) = channel::mpsc::<u32>(1);
    let (second, second_rx) = channel::spsc::<u32>(1);
    let mut select = Select::new();
    let [one, two] = [select.recv(&first_rx), select.recv(&second_rx)];
    assert_eq!(select.try_ready(), None);
    second.send(1).unwrap();
    assert_eq!((select.try_ready(), select.ready()), (Some(two), two));
    second_rx.recv().unwrap();
    drop(first);
    assert_eq!(select.ready(), one, "the end of the channel is not ready");
}

#[test]
fn room_and_the_last_receiver_s_leaving_make_a_send_ready() {
    let (sender, receiver) = channel::mpmc(1);
    let (mut select, waits) = (Select::new(), Duration::from_millis(1));
    let sends = select.send(&sender);
    assert_eq!(select.ready_timeout(waits), Some(sends));
    sender.send(1).unwrap();
    assert_eq!(select.ready_timeout(waits), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            receiver.recv().unwrap();
        });
        assert_eq!(select.ready(), sends);
    });
    sender.send(2).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            drop(receiver);
        });
        assert_eq!(select.ready_timeout(Duration::MAX), Some(sends));
    });
    assert!(sender.is_disconnected());
}

#[test]
fn a_wait_with_a_deadline_does_not_end_before_it() {
    let (sender, receiver) = channel::mpsc::<u8>(1);
    let mut select = Select::new();
    select.recv(&receiver);
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(select.ready_deadline(soon), None);
    assert!(Instant::now() >= soon);
    drop(sender);
    assert_eq!(Select::new().ready_timeout(Duration::from_millis(1)), None);
}

#[test]
fn a_set_changes_between_waits() {
    let channels = [(); 3].map(|()| channel::mpsc::<u8>(1));
    let mut select = Select::new();
    let indices = channels.each_ref().map(|(_, receiver)| select.recv(receiver));
    channels.iter().for_each(|(sender, _)| sender.send(1).unwrap());
    select.remove(indices[0]);
    select.remove(indices[2]);
    assert_eq!((0..20).map(|_| select.ready()).filter(|&ready| ready == indices[1]).count(), 20);
    select.remove(indices[1]);
    assert_eq!(select.try_ready(), None);
    let again = select.recv(&channels[0].1);
    assert!(!indices.contains(&again));
    assert_eq!(select.ready(), again);
}

#[test]
#[should_panic(expected = "never ready")]
fn an_empty_set_does_not_wait_without_a_deadline() {
    let _ = Select::new().ready();
}

#[test]
#[should_panic(expected = "has the index 0")]
fn an_operation_outside_the_set_cannot_be_removed() {
    Select::new().remove(0);
}

#[test]
fn each_ready_operation_is_picked_equally_often_unless_biased() {
    let channels = [(); 8].map(|()| channel::mpsc::<u8>(1));
    // An operation that is not ready must not make its neighbours more likely.
    let are_ready = [0, 1, 2, 6];
    are_ready.iter().for_each(|&index| channels[index].0.send(1).unwrap());
    let turns = |biased| {
        let mut turns = [0; 8];
        let mut select = if biased { Select::new_biased() } else { Select::new() };
        channels.iter().for_each(|(_, receiver)| _ = select.recv(receiver));
        (0..4000).for_each(|_| turns[select.ready()] += 1);
        are_ready.map(|index| turns[index])
    };
    let fair = turns(false);
    assert!(fair.iter().all(|turns| (800..1200).contains(turns)), "{fair:?}");
    assert_eq!(turns(true), [4000, 0, 0, 0]);
}

#[test]
fn threads_that_select_lose_nothing() {
    const VALUES: usize = 3000;
    let mut random = Random::seeded().fork();
    for _ in 0..3 * stress() {
        let (capacity, other) = (1 + random.below(4) as usize, 1 + random.below(4) as usize);
        let (left, left_rx) = channel::mpmc::<usize>(capacity);
        let (right, right_rx) = channel::mpmc::<usize>(other);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let [left, right] = [left.clone(), right.clone()];
                scope.spawn(move || {
                    let mut select = Select::new();
                    let ends = [(select.send(&left), &left), (select.send(&right), &right)];
                    for n in 0..VALUES {
                        let sent = || {
                            let ready = select.ready();
                            ends.iter().any(|(index, sender)| *index == ready && sender.try_send(n).is_ok())
                        };
                        while !sent() {}
                    }
                });
                let (left, right, sum) = (left_rx.clone(), right_rx.clone(), &sum);
                scope.spawn(move || {
                    let mut select = Select::new();
                    let ends = [(select.recv(&left), &left), (select.recv(&right), &right)];
                    let mut open = 2;
                    while open > 0 {
                        let ready = select.ready();
                        let (index, receiver) = ends.iter().find(|(index, _)| *index == ready).unwrap();
                        match receiver.try_recv() {
                            Ok(n) => _ = sum.fetch_add(n, Ordering::Relaxed),
                            Err(TryRecvError::Empty) => {}
                            Err(TryRecvError::Disconnected) => {
                                select.remove(*index);
                                open -= 1;
                            }
                        }
                    }
                });
            }
            drop((left, right));
        });
        assert_eq!(sum.into_inner(), 2 * (0..VALUES).sum::<usize>());
    }
}

/// A thread that selects may leave a slot or a value unused, and no other thread was woken for it.
#[test]
fn values_and_slots_that_a_selecting_thread_leaves_reach_others() {
    let (sender, receiver) = channel::mpmc::<u32>(1);
    for _ in 0..50 * stress() {
        sender.send(0).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut select = Select::new();
                select.send(&sender);
                let _ = select.ready();
            });
            scope.spawn(|| block_on(sender.send_async(1)).unwrap());
            std::thread::sleep(Duration::from_micros(200));
            // The second value arrives only if the selecting thread passes the wake-up for the first value's slot on.
            assert_eq!([receiver.recv(), receiver.recv()], [Ok(0), Ok(1)]);
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut select = Select::new();
                select.recv(&receiver);
                let _ = select.ready();
            });
            scope.spawn(|| assert_eq!(block_on(receiver.recv_async()), Ok(2)));
            std::thread::sleep(Duration::from_micros(200));
            sender.send(2).unwrap();
            // If the value arrived before the thread began to select, the task has received it, and the thread still
            // waits for a value.
            while !receiver.is_empty() {
                std::thread::yield_now();
            }
            sender.send(3).unwrap();
        });
        assert_eq!(receiver.try_recv(), Ok(3));
    }
}
