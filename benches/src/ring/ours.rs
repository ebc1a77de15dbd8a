//! The competitors of Millstream: channels and graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_ring::graph::Builder;
use millstream_ring::sequencer::{Multi, Sequencer};
use millstream_ring::{Options, WaitStrategy, channel};

use super::event::Event;
use super::{CAPACITY, Load};

const BATCH: u64 = 64;

pub(super) fn mpsc<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    let (sender, receiver) = channel::mpsc::<E>(CAPACITY);
    passed(sender, vec![receiver], load)
}

pub(super) fn mpmc<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    let (sender, receiver) = channel::mpmc::<E>(CAPACITY);
    passed(sender, vec![receiver; load.consumers as usize], load)
}

fn passed<E: Event, C: Sequencer>(
    sender: channel::Sender<E, Multi, C>,
    receivers: Vec<channel::Receiver<E, Multi, C>>,
    load: Load,
) -> u64
where
    channel::Receiver<E, Multi, C>: Send,
{
    std::thread::scope(|scope| {
        for _ in 0..load.producers {
            let sender = sender.clone();
            scope.spawn(move || {
                (0..load.per_producer).for_each(|n| sender.send(E::of(n)).expect("the receiver outlives the sends"));
            });
        }
        drop(sender);
        let consumers: Vec<_> = receivers.into_iter().map(|receiver| scope.spawn(|| sum(receiver))).collect();
        consumers.into_iter().map(|consumer| consumer.join().expect("the consumer does not panic")).sum()
    })
}

pub(super) fn spsc<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    one_to_one::<E>(Options::new(CAPACITY), load.per_producer)
}

pub(super) fn spsc_spinning<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    one_to_one::<E>(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), load.per_producer)
}

fn one_to_one<E: Event>(options: Options, events: u64) -> u64 {
    let (sender, receiver) = channel::spsc::<E>(options);
    std::thread::scope(|scope| {
        scope.spawn(move || (0..events).for_each(|n| sender.send(E::of(n)).expect("the receiver outlives the sends")));
        scope.spawn(|| sum(receiver)).join().expect("the consumer does not panic")
    })
}

fn sum<E: Event, P: Sequencer, C: Sequencer>(receiver: channel::Receiver<E, P, C>) -> u64 {
    receiver.into_iter().fold(0, |sum, event| sum.wrapping_add(event.number()))
}

pub(super) fn spsc_batches(load: Load) -> u64 {
    vectors(Options::new(CAPACITY), load.per_producer)
}

pub(super) fn spsc_batches_spinning(load: Load) -> u64 {
    vectors(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), load.per_producer)
}

fn vectors(options: Options, events: u64) -> u64 {
    let (sender, receiver) = channel::spsc(options);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch = Vec::new();
            for first in (0..events).step_by(BATCH as usize) {
                batch.extend(first..events.min(first + BATCH));
                sender.send_many(&mut batch).expect("the receiver outlives the sends");
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

pub(super) fn graph_batches(load: Load) -> u64 {
    in_place(Options::new(CAPACITY), load.per_producer)
}

pub(super) fn graph_batches_spinning(load: Load) -> u64 {
    in_place(Options::new(CAPACITY).wait_strategy(WaitStrategy::Spin), load.per_producer)
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
