//! Sleepers wake up when the other side leaves: races between every kind of sleep and every kind of leaving.
//! `MILLSTREAM_STRESS=n` makes the runs n times longer.
#![cfg(not(loom))]

#[path = "support/block_on.rs"]
mod block_on;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use block_on::block_on;
use millstream_ring::channel::{self, Disconnected, RecvTimeoutError, TryRecvError, TrySendError};
use millstream_ring::graph::{Builder, Polled};
use millstream_ring::{Options, WaitSet, WaitStrategy};
use millstream_verify_random::{Random, stress};
use watchdog::in_time;

/// Waits for a random time, so that the other threads are sometimes asleep already, and sometimes not yet.
fn linger(random: &mut Random) {
    match random.below(4) {
        0 => (),
        1 => std::thread::yield_now(),
        2 => (0..random.below(2000)).for_each(|_| std::hint::spin_loop()),
        _ => std::thread::sleep(Duration::from_micros(random.below(300))),
    }
}

fn options(capacity: usize, random: &mut Random) -> Options {
    let strategy = [WaitStrategy::Block, WaitStrategy::Adaptive][random.below(2) as usize];
    Options::new(capacity).wait_strategy(strategy)
}

#[test]
fn a_closed_channel_loses_nothing_and_wakes_all_waiters() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..300 * stress() {
            let (sender, receiver) = channel::mpmc::<u32>(options(4, &mut random));
            std::thread::scope(|scope| {
                let receivers: Vec<_> = (0..3).map(|_| receiver.clone()).collect();
                let counts: Vec<_> = receivers.into_iter().map(|own| scope.spawn(move || own.iter().count())).collect();
                let senders: Vec<_> = (0..3).map(|_| sender.clone()).collect();
                let sent: Vec<_> = senders
                    .into_iter()
                    .map(|own| scope.spawn(move || (0..1000).take_while(|&n| own.send(n).is_ok()).count()))
                    .collect();
                let task = sender.clone();
                let task = scope.spawn(move || {
                    block_on(async move {
                        let mut sent = 0;
                        while task.send_async(7).await.is_ok() {
                            sent += 1;
                        }
                        sent
                    })
                });
                linger(&mut random);
                receiver.close();
                let sent = sent.into_iter().map(|own| own.join().unwrap()).sum::<usize>() + task.join().unwrap();
                let received: usize = counts.into_iter().map(|own| own.join().unwrap()).sum();
                assert_eq!(sent, received);
            });
            assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
            assert_eq!(sender.try_send_many(&mut vec![1]), Err(Disconnected));
            assert!(sender.is_disconnected());
        }
    });
}

#[test]
fn closing_wakes_waiters_of_either_side_without_another_value() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..200 * stress() {
            let (sender, receiver) = channel::mpsc::<u32>(options(1, &mut random));
            sender.send(1).unwrap();
            let other = sender.clone();
            std::thread::scope(|scope| {
                scope.spawn(|| block_on(async { assert!(sender.send_async(2).await.is_err()) }));
                scope.spawn(|| assert!(other.send(3).is_err()));
                linger(&mut random);
                receiver.close();
            });
            assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Err(Disconnected)));

            let (sender, receiver) = channel::mpmc::<u32>(options(1, &mut random));
            let own = receiver.clone();
            std::thread::scope(|scope| {
                scope.spawn(move || assert_eq!(own.recv(), Err(Disconnected)));
                linger(&mut random);
                receiver.close();
            });
            drop(sender);
        }
    });
}

#[test]
fn the_last_sender_wakes_all_receivers_threads_and_tasks() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..300 * stress() {
            let (sender, receiver) = channel::mpmc::<u32>(options(4, &mut random));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let own = receiver.clone();
                    scope.spawn(move || own.iter().count());
                }
                let own = receiver.clone();
                scope.spawn(move || block_on(async move { while own.recv_async().await.is_ok() {} }));
                let other = sender.clone();
                linger(&mut random);
                sender.send(1).unwrap();
                drop(sender);
                linger(&mut random);
                drop(other);
            });
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}

#[test]
fn the_last_receiver_wakes_all_senders_threads_and_tasks() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..300 * stress() {
            let (sender, receiver) = channel::mpsc(options(2, &mut random));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let own = sender.clone();
                    scope.spawn(move || while own.send(1).is_ok() {});
                }
                let own = sender.clone();
                scope.spawn(move || block_on(async move { while own.send_async(2).await.is_ok() {} }));
                let mut own = sender.clone();
                scope.spawn(move || while own.reserve().map(|permit| permit.send(3)).is_ok() {});
                linger(&mut random);
                let _ = receiver.try_recv();
                linger(&mut random);
                drop(receiver);
            });
        }
    });
}

#[test]
fn a_timeout_beyond_the_clock_s_range_waits_for_the_other_side() {
    in_time(|| {
        let (sender, receiver) = channel::mpsc(Options::new(1).wait_strategy(WaitStrategy::Block));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..3 {
                    sender.send_timeout(n, Duration::MAX).unwrap();
                }
            });
            for n in 0..3 {
                assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(n));
            }
            assert_eq!(receiver.recv_timeout(Duration::MAX), Err(RecvTimeoutError::Disconnected));
        });
    });
}

#[test]
fn a_permit_that_is_dropped_releases_the_values_behind_it() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..500 * stress() {
            let (mut sender, receiver) = channel::mpmc(options(4, &mut random));
            let behind = sender.clone();
            std::thread::scope(|scope| {
                let consumers = [(); 2].map(|()| {
                    let own = receiver.clone();
                    scope.spawn(move || own.recv())
                });
                let permit = sender.reserve().unwrap();
                behind.send(1).unwrap();
                behind.send(2).unwrap();
                linger(&mut random);
                drop(permit);
                let mut received = consumers.map(|consumer| consumer.join().unwrap());
                received.sort_unstable_by_key(|value| *value.as_ref().unwrap());
                assert_eq!(received, [Ok(1), Ok(2)]);
            });
        }
    });
}

#[test]
fn a_waiting_send_that_is_dropped_blocks_no_other_send() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..300 * stress() {
            let (sender, receiver) = channel::mpsc(options(1, &mut random));
            sender.send(0).unwrap();
            let [first, second] = [sender.clone(), sender];
            let mut given_up = Box::pin(first.send_async(1));
            assert!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let receiver = std::thread::scope(|scope| {
                scope.spawn(move || block_on(second.send_async(2)).unwrap());
                let mut own = random.fork();
                let consumer = scope.spawn(move || {
                    linger(&mut own);
                    assert_eq!([receiver.recv(), receiver.recv()], [Ok(0), Ok(2)]);
                    receiver
                });
                linger(&mut random);
                // The dropped task may have been woken; then it must pass its wake-up on.
                drop(given_up);
                consumer.join().unwrap()
            });
            drop(first);
            assert_eq!(receiver.recv(), Err(Disconnected));
        }
    });
}

#[test]
fn a_set_notices_the_end_of_each_of_its_rings() {
    let mut random = Random::seeded();
    in_time(move || {
        for _ in 0..300 * stress() {
            let set = WaitSet::new();
            let rings = [(); 3].map(|()| channel::mpsc::<u64>(options(2, &mut random).wait_set(&set)));
            let (senders, receivers): (Vec<_>, Vec<_>) = rings.into_iter().unzip();
            std::thread::scope(|scope| {
                for sender in senders {
                    let mut random = random.fork();
                    scope.spawn(move || {
                        for n in 0..random.below(5) {
                            linger(&mut random);
                            sender.send(n).unwrap();
                        }
                        linger(&mut random);
                    });
                }
                let mut open = receivers;
                while !open.is_empty() {
                    let ended = set.wait(|| {
                        open.iter().enumerate().find_map(|(index, receiver)| match receiver.try_recv() {
                            Ok(_) => Some(None),
                            Err(TryRecvError::Disconnected) => Some(Some(index)),
                            Err(TryRecvError::Empty) => None,
                        })
                    });
                    if let Some(index) = ended {
                        open.remove(index);
                    }
                }
            });
        }
    });
}

#[test]
fn a_graph_ends_at_whatever_moment_its_last_producer_leaves() {
    let mut random = Random::seeded();
    in_time(move || {
        for round in 0..200 * stress() {
            let mut ring = Builder::multi(options(4, &mut random), || 0u64);
            let first = ring.handle(&[], |_, _| ());
            let pool = ring.pool(&[first], [(); 2].map(|()| |_: &u64, _| ()));
            let (node, mut poller) = ring.poller(&[pool]);
            ring.handle(&[node], |_, _| ());
            let (mut producer, running) = ring.start();
            let other = producer.clone();
            std::thread::scope(|scope| {
                scope.spawn(move || (0..round % 13).for_each(|n| producer.publish(|event| *event = n)));
                let mut own = random.fork();
                scope.spawn(move || {
                    // Half of the pollers leave early; their followers and the producers continue without them.
                    let polls = if own.below(2) == 0 { own.below(4) } else { u64::MAX };
                    for _ in 0..polls {
                        poller.wait();
                        if poller.poll(2, |_, _| ()) == Polled::Ended {
                            break;
                        }
                    }
                });
                linger(&mut random);
                drop(other);
            });
            running.join().unwrap();
        }
    });
}

/// One receiver gets the last value; the other must learn that no more will come, although a sender still exists.
#[test]
fn the_last_value_of_a_closed_channel_ends_every_receivers_wait() {
    let (mut sender, receiver) = channel::mpmc(4);
    let closer = sender.clone();
    let permit = sender.reserve().unwrap();
    let receivers = [receiver.clone(), receiver].map(|receiver| std::thread::spawn(move || receiver.recv().ok()));
    // Both receivers fall asleep, and fall asleep again after the end, because a slot is still unfinished.
    std::thread::sleep(Duration::from_millis(50));
    closer.close();
    std::thread::sleep(Duration::from_millis(50));
    permit.send(7);
    let mut received = receivers.map(|receiver| receiver.join().unwrap());
    received.sort_unstable();
    assert_eq!(received, [None, Some(7)]);
    drop(closer);
}
