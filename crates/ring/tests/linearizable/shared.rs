//! The ring in shared memory, with its two ends on threads. Roles change hands while values are in the ring. The twin
//! is a successor with a mistake.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_history::{History, Kind, Model, Op};
use millstream_recorder::Recorder;
use millstream_ring::shared::{Consumer, Producer};

use crate::drive::{Conditions, End, Refused, hand_over, holds, holds_once_decided};
use crate::must_be_caught;
use millstream_verify_random::{Random, stress};

/// Both ends. After every `turns` operations, an end releases its role and takes it again.
fn ends(file: &File, slots: usize, turns: u64) -> Vec<End<'_>> {
    let attach_producer = move || Producer::<u64>::attach(file, slots).expect("the role is free");
    let attach_consumer = move || Consumer::<u64>::attach(file, slots).expect("the role is free");
    let (mut producer, mut consumer) = (Some(attach_producer()), Some(attach_consumer()));
    let (mut sent, mut received) = (0, 0);
    let send = move |value| {
        sent += 1;
        if sent % turns == 0 {
            drop(producer.take());
        }
        producer.get_or_insert_with(attach_producer).try_send(value)
    };
    let receive = move || {
        received += 1;
        if received % turns == 0 {
            drop(consumer.take());
        }
        consumer.get_or_insert_with(attach_consumer).try_handle(|&value| value)
    };
    vec![End::Sender(Box::new(send)), End::Receiver(Box::new(receive))]
}

#[test]
fn a_shared_ring_is_a_bounded_queue_while_roles_change_hands() {
    let mut random = Random::seeded();
    for (slots, turns) in [(1, u64::MAX), (4, 7), (64, 50)] {
        // The runs are short, because on a busy machine the clocks of its cores differ so much that the search has many
        // orders to try.
        for _ in 0..12 * stress() {
            holds_once_decided(&Model::new(Kind::Queue).with_capacity(slots as u64), || {
                let file = tempfile::tempfile().unwrap();
                hand_over(ends(&file, slots, turns), 100, Refused::Answers, &mut random)
            });
        }
        let file = tempfile::tempfile().unwrap();
        let history = hand_over(ends(&file, slots, turns), 20_000 * stress(), Refused::FullFails, &mut random);
        holds(&history, &Kind::Queue.into());
    }
}

/// A ring's memory. A producer that takes over continues at the published position; without `RIGHT_PLACE`, it
/// mistakenly continues at the consumed one.
struct Memory<const RIGHT_PLACE: bool> {
    published: AtomicU64,
    consumed: AtomicU64,
    slots: [AtomicU64; 4],
}

impl<const RIGHT_PLACE: bool> Memory<RIGHT_PLACE> {
    fn new() -> Self {
        Memory { published: AtomicU64::new(0), consumed: AtomicU64::new(0), slots: [const { AtomicU64::new(0) }; 4] }
    }

    /// The position of a producer that takes over.
    fn attach(&self) -> u64 {
        if RIGHT_PLACE { self.published.load(Ordering::Acquire) } else { self.consumed.load(Ordering::Acquire) }
    }

    fn send(&self, position: &mut u64, value: u64) {
        self.slots[*position as usize % 4].store(value, Ordering::Relaxed);
        *position += 1;
        self.published.store(*position, Ordering::Release);
    }

    fn receive(&self) -> Option<u64> {
        let position = self.consumed.load(Ordering::Relaxed);
        if position >= self.published.load(Ordering::Acquire) {
            return None;
        }
        let value = self.slots[position as usize % 4].load(Ordering::Relaxed);
        self.consumed.store(position + 1, Ordering::Release);
        Some(value)
    }
}

/// The first producer ends while its value is in the ring.
fn taken_over<const RIGHT_PLACE: bool>() -> History {
    let _quiet = Conditions::quiet();
    let (memory, recorder) = (Memory::<RIGHT_PLACE>::new(), Recorder::new());
    let mut consumer = recorder.log();
    for value in 1..=2 {
        let (mut producer, mut position) = (recorder.log(), memory.attach());
        producer.record(Op::ENQUEUE, value, || memory.send(&mut position, value));
        // The pause exceeds the skew between the clocks of two cores.
        std::thread::sleep(std::time::Duration::from_micros(10));
    }
    for _ in 0..2 {
        consumer.record(Op::DEQUEUE, (), || memory.receive());
    }
    drop(consumer);
    recorder.finish()
}

#[test]
fn a_successor_that_starts_at_the_wrong_position_is_caught() {
    holds(&taken_over::<true>(), &Kind::Queue.into());
    let title = "a producer that takes over at the wrong place";
    must_be_caught("wrong-place", title, Kind::Queue, taken_over::<false>);
}
