//! Millstream's channels and graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_ring::graph::Builder;
use millstream_ring::sequencer::Sequencer;
use millstream_ring::{Options, WaitStrategy, channel};

use super::CAPACITY;

const BATCH: u64 = 64;

pub(super) fn mpsc(producers: u64, per_producer: u64) -> u64 {
    let (sender, receiver) = channel::mpsc(CAPACITY);
    std::thread::scope(|scope| {
        for _ in 0..producers {
            let sender = sender.clone();
            scope.spawn(move || (0..per_producer).for_each(|n| sender.send(n).expect("the receiver stays")));
        }
        drop(sender);
        scope.spawn(|| sum(receiver)).join().expect("the consumer does not panic")
    })
}

pub(super) fn spsc(_: u64, events: u64) -> u64 {
    one_to_one(Options::new(CAPACITY), events)
}

pub(super) fn spsc_spinning(_: u64, events: u64) -> u64 {
    one_to_one(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), events)
}

fn one_to_one(options: Options, events: u64) -> u64 {
    let (sender, receiver) = channel::spsc(options);
    std::thread::scope(|scope| {
        scope.spawn(move || (0..events).for_each(|n| sender.send(n).expect("the receiver stays")));
        scope.spawn(|| sum(receiver)).join().expect("the consumer does not panic")
    })
}

fn sum<P: Sequencer, C: Sequencer>(receiver: channel::Receiver<u64, P, C>) -> u64 {
    receiver.into_iter().fold(0, u64::wrapping_add)
}

pub(super) fn spsc_batches(_: u64, events: u64) -> u64 {
    vectors(Options::new(CAPACITY), events)
}

pub(super) fn spsc_batches_spinning(_: u64, events: u64) -> u64 {
    vectors(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), events)
}

fn vectors(options: Options, events: u64) -> u64 {
    let (sender, receiver) = channel::spsc(options);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch = Vec::new();
            for first in (0..events).step_by(BATCH as usize) {
                batch.extend(first..events.min(first + BATCH));
                sender.send_many(&mut batch).expect("the receiver stays");
            }
        });
        let consumer = scope.spawn(move || {
            let (mut batch, mut sum) = (Vec::new(), 0u64);
            while receiver.recv_many(&mut batch, 4 * BATCH as usize).is_ok() {
                sum = batch.drain(..).fold(sum, u64::wrapping_add);
            }
            sum
        });
        consumer.join().expect("the consumer does not panic")
    })
}

pub(super) fn graph_batches(_: u64, events: u64) -> u64 {
    in_place(Options::new(CAPACITY), events)
}

pub(super) fn graph_batches_spinning(_: u64, events: u64) -> u64 {
    in_place(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), events)
}

fn in_place(options: Options, events: u64) -> u64 {
    let total = Arc::new(AtomicU64::new(0));
    let (result, mut sum) = (Arc::clone(&total), 0u64);
    let mut ring = Builder::single(options, || 0u64);
    ring.handle(&[], move |event, place| {
        sum = sum.wrapping_add(*event);
        if place.ends_batch {
            result.store(sum, Ordering::Relaxed);
        }
    });
    let (mut producer, running) = ring.start();
    for first in (0..events).step_by(BATCH as usize) {
        producer.publish_many(BATCH.min(events - first), |n, event| *event = first + n);
    }
    drop(producer);
    running.join().expect("the handler does not panic");
    total.load(Ordering::Relaxed)
}
