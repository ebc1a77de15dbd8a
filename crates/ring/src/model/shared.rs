//! Rings in shared memory: two processes are two threads here, and a crash is an end that stops where it is.

use loom::thread;

use super::explore;
use crate::shared::twin::ring;

#[test]
fn every_event_arrives_once_and_both_sides_are_woken() {
    explore(3, || {
        let (mut producer, [mut consumer, _]) = ring::<u32>(1);
        let sending = thread::spawn(move || (1..4).for_each(|event| producer.send(event)));
        assert_eq!([(); 3].map(|()| consumer.handle(|&event| event)), [1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn a_batch_is_published_in_portions_that_fit() {
    explore(3, || {
        let (mut producer, [mut consumer, _]) = ring::<u32>(2);
        let sending = thread::spawn(move || producer.send_all(&[1, 2, 3]));
        assert_eq!([(); 3].map(|()| consumer.handle(|&event| event)), [1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn who_follows_a_consumer_that_crashed_asleep_or_awake_goes_on_where_it_was() {
    explore(3, || {
        let (mut producer, [mut first, mut second]) = ring::<u32>(1);
        let sending = thread::spawn(move || (1..4).for_each(|event| producer.send(event)));
        let before = thread::spawn(move || first.handle(|&event| event)).join().unwrap();
        assert_eq!((before, second.position()), (1, 1));
        assert_eq!([(); 2].map(|()| second.handle(|&event| event)), [2, 3]);
        sending.join().unwrap();
    });
}
