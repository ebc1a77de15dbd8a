//! The same through other people's rings and channels.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disruptor::{BusySpin, Producer, Sequence, build_multi_producer, build_single_producer};

use super::CAPACITY;

const CLOSED: &str = "the other side stays until the end";

/// A consumer's thread beside the producers'.
fn pass(producers: u64, produce: impl Fn() -> Box<dyn FnOnce() + Send>, consume: impl FnOnce() -> u64 + Send) -> u64 {
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(produce());
        }
        drop(produce);
        scope.spawn(consume).join().expect("the consumer does not panic")
    })
}

pub(super) fn rtrb(_: u64, events: u64) -> u64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..events {
                while producer.push(n).is_err() {
                    std::hint::spin_loop();
                }
            }
        });
        let consumer = scope.spawn(move || {
            let mut sum = 0u64;
            for _ in 0..events {
                let value = loop {
                    match consumer.pop() {
                        Ok(value) => break value,
                        Err(_) => std::hint::spin_loop(),
                    }
                };
                sum = sum.wrapping_add(value);
            }
            sum
        });
        consumer.join().expect("the consumer does not panic")
    })
}

pub(super) fn array_queue(producers: u64, per_producer: u64) -> u64 {
    let queue = Arc::new(crossbeam_queue::ArrayQueue::new(CAPACITY));
    let consumer = Arc::clone(&queue);
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let queue = Arc::clone(&queue);
        Box::new(move || {
            for n in 0..per_producer {
                while queue.push(n).is_err() {
                    std::thread::yield_now();
                }
            }
        })
    };
    pass(producers, produce, move || {
        let mut sum = 0u64;
        for _ in 0..producers * per_producer {
            let value = loop {
                match consumer.pop() {
                    Some(value) => break value,
                    None => std::thread::yield_now(),
                }
            };
            sum = sum.wrapping_add(value);
        }
        sum
    })
}

pub(super) fn crossbeam(producers: u64, per_producer: u64) -> u64 {
    let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || (0..per_producer).for_each(|n| sender.send(n).expect(CLOSED)))
    };
    pass(producers, produce, move || receiver.into_iter().fold(0, u64::wrapping_add))
}

pub(super) fn kanal(producers: u64, per_producer: u64) -> u64 {
    let (sender, receiver) = kanal::bounded(CAPACITY);
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || (0..per_producer).for_each(|n| sender.send(n).expect(CLOSED)))
    };
    pass(producers, produce, move || receiver.fold(0, u64::wrapping_add))
}

pub(super) fn std_channel(producers: u64, per_producer: u64) -> u64 {
    let (sender, receiver) = std::sync::mpsc::sync_channel(CAPACITY);
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || (0..per_producer).for_each(|n| sender.send(n).expect(CLOSED)))
    };
    pass(producers, produce, move || receiver.into_iter().fold(0, u64::wrapping_add))
}

pub(super) fn flume(producers: u64, per_producer: u64) -> u64 {
    let (sender, receiver) = flume::bounded(CAPACITY);
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || (0..per_producer).for_each(|n| sender.send(n).expect(CLOSED)))
    };
    pass(producers, produce, move || receiver.into_iter().fold(0, u64::wrapping_add))
}

/// A handler that adds up, and where the sum is after the ring has ended.
pub(super) fn adder() -> (impl FnMut(&u64, Sequence, bool) + Send + 'static, Arc<AtomicU64>) {
    let total = Arc::new(AtomicU64::new(0));
    let (result, sum) = (Arc::clone(&total), Cell::new(0u64));
    let add = move |event: &u64, _: Sequence, ends_batch: bool| {
        sum.set(sum.get().wrapping_add(*event));
        if ends_batch {
            result.store(sum.get(), Ordering::Relaxed);
        }
    };
    (add, total)
}

pub(super) fn disruptor_single(_: u64, events: u64) -> u64 {
    let (add, total) = adder();
    let mut producer = build_single_producer(CAPACITY, || 0, BusySpin).handle_events_with(add).build();
    (0..events).for_each(|n| producer.publish(|event| *event = n));
    drop(producer);
    total.load(Ordering::Relaxed)
}

pub(super) fn disruptor_batches(_: u64, events: u64) -> u64 {
    let (add, total) = adder();
    let mut producer = build_single_producer(CAPACITY, || 0, BusySpin).handle_events_with(add).build();
    for first in (0..events).step_by(64) {
        producer.batch_publish(64.min((events - first) as usize), |slots| {
            slots.zip(first..).for_each(|(event, n)| *event = n);
        });
    }
    drop(producer);
    total.load(Ordering::Relaxed)
}

pub(super) fn disruptor_multi(producers: u64, per_producer: u64) -> u64 {
    let (add, total) = adder();
    let producer = build_multi_producer(CAPACITY, || 0, BusySpin).handle_events_with(add).build();
    std::thread::scope(|scope| {
        for _ in 0..producers {
            let mut producer = producer.clone();
            scope.spawn(move || (0..per_producer).for_each(|n| producer.publish(|event| *event = n)));
        }
        drop(producer);
    });
    total.load(Ordering::Relaxed)
}
