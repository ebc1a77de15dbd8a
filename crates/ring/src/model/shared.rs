//! Models of rings in shared memory. Two threads stand for the two processes, and a crash is a side that stops.
//!
//! On the machine, a sleeper checks once a second; in a model it does not, so a lost wake-up is a deadlock. One crash
//! cannot be modelled: a process is killed after it has cleared the flag and before the kernel wakes the sleeper. The
//! check once a second covers this case.

use loom::thread;

use super::explore;
use crate::shared::twin::{Killed, Ring};

#[test]
fn every_event_arrives_once_and_both_sides_are_woken() {
    explore(3, || {
        let ring = Ring::<u32>::new(1);
        let (mut producer, mut consumer) = (ring.producer(), ring.consumer());
        let sending = thread::spawn(move || (1..4).for_each(|event| producer.send(event)));
        assert_eq!([(); 3].map(|()| consumer.handle(|&event| event)), [1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn a_batch_is_published_in_portions_that_fit() {
    explore(3, || {
        let ring = Ring::<u32>::new(2);
        let (mut producer, mut consumer) = (ring.producer(), ring.consumer());
        let sending = thread::spawn(move || producer.send_all(&[1, 2, 3]));
        assert_eq!([(); 3].map(|()| consumer.handle(|&event| event)), [1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn the_successor_of_a_crashed_consumer_continues_at_its_position() {
    explore(3, || {
        let ring = Ring::<u32>::new(1);
        let (mut producer, mut first) = (ring.producer(), ring.consumer());
        let sending = thread::spawn(move || (1..4).for_each(|event| producer.send(event)));
        let before = thread::spawn(move || first.handle(|&event| event)).join().unwrap();
        let mut second = ring.consumer();
        assert_eq!((before, second.position()), (1, 1));
        assert_eq!([(); 2].map(|()| second.handle(|&event| event)), [2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn events_that_are_handled_together_arrive_once_and_make_room_together() {
    explore(3, || {
        let ring = Ring::<u32>::new(2);
        let (mut producer, mut consumer) = (ring.producer(), ring.consumer());
        let sending = thread::spawn(move || (1..4).for_each(|event| producer.send(event)));
        let mut handled = Vec::new();
        while handled.len() < 3 {
            assert!(consumer.handle_many(2, |&event| handled.push(event)) > 0);
        }
        assert_eq!(handled, [1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn the_next_producer_wakes_the_consumer_for_a_killed_one() {
    for killed in [Killed::BeforeItWakes, Killed::BetweenTheStepsOfTheWake] {
        explore(3, move || {
            let ring = Ring::<u32>::new(1);
            let (producer, mut consumer) = (ring.producer(), ring.consumer());
            let handling = thread::spawn(move || consumer.handle(|&event| event));
            thread::spawn(move || producer.send_and_be_killed(1, killed)).join().unwrap();
            let successor = ring.producer();
            assert_eq!((handling.join().unwrap(), successor.position()), (1, 1));
        });
    }
}

#[test]
fn the_next_consumer_wakes_the_producer_for_a_killed_one() {
    for killed in [Killed::BeforeItWakes, Killed::BetweenTheStepsOfTheWake] {
        explore(3, move || {
            let ring = Ring::<u32>::new(1);
            let (mut producer, consumer) = (ring.producer(), ring.consumer());
            producer.send(1);
            let sending = thread::spawn(move || producer.send(2));
            let first = thread::spawn(move || consumer.handle_and_be_killed(|&event| event, killed)).join().unwrap();
            let mut successor = ring.consumer();
            assert_eq!((first, successor.handle(|&event| event)), (1, 2));
            sending.join().unwrap();
        });
    }
}
