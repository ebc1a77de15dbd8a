//! The same work through the rings and channels of other libraries.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disruptor::wait_strategies::WaitStrategy;
use disruptor::{BusySpin, Producer, Sequence, build_multi_producer, build_single_producer};

use super::event::Event;
use super::{CAPACITY, Load};

const CLOSED: &str = "the other side lives until the end";

/// Runs the producer threads and the consumer threads, and adds up the values that the consumers return.
fn pass<'a>(
    load: Load,
    produce: impl Fn() -> Box<dyn FnOnce() + Send + 'a>,
    consume: impl Fn() -> Box<dyn FnOnce() -> u64 + Send + 'a>,
) -> u64 {
    std::thread::scope(|scope| {
        for _ in 0..load.producers {
            scope.spawn(produce());
        }
        drop(produce);
        let consumers: Vec<_> = (0..load.consumers).map(|_| scope.spawn(consume())).collect();
        drop(consume);
        consumers.into_iter().map(|consumer| consumer.join().expect("the consumer does not panic")).sum()
    })
}

/// The wait strategy for a peer that has none, if each thread has a core: spins between two polls. With fewer cores,
/// [`give_way`] is used.
fn spin() {
    std::hint::spin_loop();
}

fn give_way() {
    std::thread::yield_now();
}

pub(super) fn rtrb_spinning<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    rtrb::<E>(CAPACITY, load.per_producer, spin)
}

pub(super) fn rtrb_yielding<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    rtrb::<E>(CAPACITY, load.per_producer, give_way)
}

fn rtrb<E: Event>(capacity: usize, events: u64, pause: fn()) -> u64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(capacity);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..events {
                while producer.push(E::of(n)).is_err() {
                    pause();
                }
            }
        });
        let consumer = scope.spawn(move || summed(events, || consumer.pop().ok(), pause));
        consumer.join().expect("the consumer does not panic")
    })
}

/// Receives `events` events and adds them up.
fn summed<E: Event>(events: u64, mut pop: impl FnMut() -> Option<E>, pause: fn()) -> u64 {
    let mut sum = 0u64;
    for _ in 0..events {
        let event = loop {
            match pop() {
                Some(event) => break event,
                None => pause(),
            }
        };
        sum = sum.wrapping_add(event.number());
    }
    sum
}

pub(super) fn array_queue<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    let queue = crossbeam_queue::ArrayQueue::new(CAPACITY);
    let left = AtomicU64::new(load.producers);
    let produce = || -> Box<dyn FnOnce() + Send> {
        Box::new(|| {
            for n in 0..load.per_producer {
                while queue.push(E::of(n)).is_err() {
                    give_way();
                }
            }
            left.fetch_sub(1, Ordering::Release);
        })
    };
    let consume = || -> Box<dyn FnOnce() -> u64 + Send> {
        Box::new(|| {
            let mut sum = 0u64;
            loop {
                if let Some(event) = queue.pop() {
                    sum = sum.wrapping_add(E::number(&event));
                } else if left.load(Ordering::Acquire) == 0 && queue.is_empty() {
                    return sum;
                } else {
                    give_way();
                }
            }
        })
    };
    pass(load, produce, consume)
}

/// Defines the channels that have their own wait strategy. They differ only in their names.
macro_rules! channel {
    ($name:ident, $make:path) => {
        pub(super) fn $name<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
            let (sender, receiver) = $make(CAPACITY);
            let produce = move || -> Box<dyn FnOnce() + Send> {
                let sender = sender.clone();
                Box::new(move || (0..load.per_producer).for_each(|n| sender.send(E::of(n)).expect(CLOSED)))
            };
            pass(load, produce, move || {
                let receiver = receiver.clone();
                Box::new(move || receiver.into_iter().fold(0, |sum, event| sum.wrapping_add(E::number(&event))))
            })
        }
    };
}

channel!(crossbeam, crossbeam_channel::bounded);
channel!(kanal, kanal::bounded);
channel!(flume, flume::bounded);

/// The standard library's channel has one receiver.
pub(super) fn std_channel<E: Event, const CAPACITY: usize>(load: Load) -> u64 {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<E>(CAPACITY);
    let receiver = Cell::new(Some(receiver));
    let produce = move || -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || (0..load.per_producer).for_each(|n| sender.send(E::of(n)).expect(CLOSED)))
    };
    pass(load, produce, move || {
        let receiver = receiver.take().expect("one consumer");
        Box::new(move || receiver.into_iter().fold(0, |sum, event| sum.wrapping_add(event.number())))
    })
}

/// The wait strategy of the threads of a disruptor.
pub(super) trait Waits: WaitStrategy + 'static {
    const HOW: Self;

    /// Publishes one event after waiting for a free slot.
    fn publish<E>(producer: &mut impl Producer<E>, write: impl Fn(&mut E));
}

impl Waits for BusySpin {
    const HOW: Self = BusySpin;

    fn publish<E>(producer: &mut impl Producer<E>, write: impl Fn(&mut E)) {
        producer.publish(write);
    }
}

/// Yields on both sides, as is usual if there are more threads than cores.
#[derive(Clone, Copy)]
pub(super) struct Yielding;

impl WaitStrategy for Yielding {
    fn wait_for(&self, _: Sequence) {
        give_way();
    }
}

impl Waits for Yielding {
    const HOW: Self = Yielding;

    fn publish<E>(producer: &mut impl Producer<E>, write: impl Fn(&mut E)) {
        while producer.try_publish(&write).is_err() {
            give_way();
        }
    }
}

/// A handler that adds up its events, and the variable that contains the sum after the ring has ended.
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

pub(super) fn disruptor_single<W: Waits>(load: Load) -> u64 {
    let events = load.per_producer;
    let (add, total) = adder();
    let mut producer = build_single_producer(CAPACITY, || 0, W::HOW).handle_events_with(add).build();
    (0..events).for_each(|n| W::publish(&mut producer, |event| *event = n));
    drop(producer);
    total.load(Ordering::Relaxed)
}

pub(super) fn disruptor_batches<W: Waits>(load: Load) -> u64 {
    let events = load.per_producer;
    let (add, total) = adder();
    let mut producer = build_single_producer(CAPACITY, || 0, W::HOW).handle_events_with(add).build();
    for first in (0..events).step_by(64) {
        producer.batch_publish(64.min((events - first) as usize), |slots| {
            slots.zip(first..).for_each(|(event, n)| *event = n);
        });
    }
    drop(producer);
    total.load(Ordering::Relaxed)
}

pub(super) fn disruptor_multi<W: Waits>(load: Load) -> u64 {
    let (add, total) = adder();
    let producer = build_multi_producer(CAPACITY, || 0, W::HOW).handle_events_with(add).build();
    std::thread::scope(|scope| {
        for _ in 0..load.producers {
            let mut producer = producer.clone();
            scope.spawn(move || (0..load.per_producer).for_each(|n| W::publish(&mut producer, |event| *event = n)));
        }
        drop(producer);
    });
    total.load(Ordering::Relaxed)
}
