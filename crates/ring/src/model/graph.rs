//! Models of graphs: the order between consumers, when each may write, and which threads wait for which.
//!
//! A consumer that runs too early, or a producer that laps a consumer, touches a slot that another thread uses. Loom
//! reports it as a data race.

use std::sync::Mutex;

use loom::sync::Arc;
use loom::thread;
use millstream_verify_random::depth;

use super::{explore, options};
use crate::graph::{Builder, Place, Polled, Poller, Producer};
use crate::sequencer::Sequencer;

/// The events that a consumer saw, with their positions.
type Seen = Arc<Mutex<Vec<(u64, u32)>>>;

fn seen() -> Seen {
    Arc::new(Mutex::new(Vec::new()))
}

fn see(seen: &Seen) -> impl FnMut(&u32, Place) + Send + 'static + use<> {
    let seen = Arc::clone(seen);
    move |event, place| seen.lock().unwrap().push((place.position, *event))
}

fn taken(seen: &Seen) -> Vec<(u64, u32)> {
    std::mem::take(&mut seen.lock().unwrap())
}

fn publish<P: Sequencer>(mut producer: Producer<u32, P>, values: std::ops::Range<u32>) {
    values.for_each(|value| producer.publish(|event| *event = value));
}

/// Polls until the ring ends.
fn drain<P: Sequencer>(poller: &mut Poller<u32, P>) -> Vec<(u64, u32)> {
    let mut seen = Vec::new();
    while poller.poll(9, |event, place| seen.push((place.position, *event))) != Polled::Ended {
        poller.wait();
    }
    seen
}

#[test]
fn a_follower_sees_the_changes_of_the_consumer_it_follows() {
    explore(1, || {
        let mut ring = Builder::single(options(2), || 0);
        let first = ring.handle_mut(&[], |event, _| *event += 10);
        let second = seen();
        ring.handle(&[first], see(&second));
        let (producer, running) = ring.start();
        publish(producer, 1..3);
        running.join().unwrap();
        assert_eq!(taken(&second), [(0, 11), (1, 12)]);
    });
}

#[test]
fn each_consumer_sees_every_event_and_the_producer_waits_for_the_slowest() {
    explore(depth(0, 1), || {
        let (one, other) = (seen(), seen());
        let mut ring = Builder::single(options(1), || 0);
        ring.handle(&[], see(&one));
        ring.handle(&[], see(&other));
        let (producer, running) = ring.start();
        publish(producer, 1..3);
        running.join().unwrap();
        assert_eq!([&one, &other].map(taken), [[(0, 1), (1, 2)], [(0, 1), (1, 2)]]);
    });
}

#[test]
fn one_member_of_a_pool_handles_each_event() {
    explore(1, || {
        let both = seen();
        let mut ring = Builder::single(options(2), || 0);
        ring.pool(&[], [see(&both), see(&both)]);
        let (producer, running) = ring.start();
        publish(producer, 1..3);
        running.join().unwrap();
        let mut handled = taken(&both);
        handled.sort_unstable();
        assert_eq!(handled, [(0, 1), (1, 2)]);
    });
}

/// The second of two events is published first. It wakes a member of the pool, which cannot see it before the first event
/// is published. The member that later sees both events must wake the other member, because each handler waits until
/// both events are being handled.
#[test]
fn a_member_of_a_pool_that_sees_two_events_wakes_another() {
    explore(0, || {
        let handled = Arc::new((loom::sync::Mutex::new(0), loom::sync::Condvar::new()));
        let member = || {
            let handled = Arc::clone(&handled);
            move |_: &u32, _| {
                let mut number = handled.0.lock().unwrap();
                *number += 1;
                handled.1.notify_all();
                while *number < 2 {
                    number = handled.1.wait(number).unwrap();
                }
            }
        };
        let mut ring = Builder::multi(options(2), || 0);
        ring.pool(&[], [member(), member()]);
        let (mut first, running) = ring.start();
        let mut second = first.clone();
        let (one, other) = (first.claim(1), second.claim(1));
        // The yield lets both members fall asleep before each publication.
        thread::yield_now();
        other.publish();
        thread::yield_now();
        one.publish();
        // The producers stay until both events are handled, because the end of the ring would wake all members.
        let mut number = handled.0.lock().unwrap();
        while *number < 2 {
            number = handled.1.wait(number).unwrap();
        }
        drop(number);
        drop((first, second));
        running.join().unwrap();
    });
}

/// An event must wake a member of the pool, not the newcomer that follows the pool.
#[test]
fn a_newcomer_takes_no_wake_up_from_the_pool() {
    explore(1, || {
        let handled = Arc::new(loom::sync::Notify::new());
        let handles = Arc::clone(&handled);
        let mut ring = Builder::single(options(1), || 0);
        let node = ring.pool(&[], [move |_: &u32, _| handles.notify()]);
        let (mut producer, mut running) = ring.start();
        let publisher = thread::spawn(move || {
            producer.publish(|event| *event = 1);
            // The producer stays until the event is handled, because the end of the ring would wake all consumers.
            handled.wait();
        });
        let (_, late) = running.add_poller(&[node]);
        late.wait();
        publisher.join().unwrap();
        drop(late);
        running.join().unwrap();
    });
}

#[test]
fn many_producers_write_in_place_and_a_dropped_claim_is_skipped() {
    explore(1, || {
        let mut ring = Builder::multi(options(2), || 0);
        let (_, mut poller) = ring.poller(&[]);
        let (mut producer, running) = ring.start();
        let other = producer.clone();
        let producers = [thread::spawn(move || publish(other, 10..12)), thread::spawn(move || drop(producer.claim(1)))];
        let values: Vec<u32> = drain(&mut poller).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [10, 11]);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        running.join().unwrap();
    });
}

#[test]
fn producers_stop_waiting_for_a_consumer_that_leaves() {
    explore(depth(1, 2), || {
        let mut ring = Builder::single(options(1), || 0);
        let (_, poller) = ring.poller(&[]);
        let stays = seen();
        ring.handle(&[], see(&stays));
        let (producer, running) = ring.start();
        let leaver = thread::spawn(move || drop(poller));
        publish(producer, 1..3);
        leaver.join().unwrap();
        running.join().unwrap();
        assert_eq!(taken(&stays), [(0, 1), (1, 2)]);
    });
}

#[test]
fn an_event_is_overwritten_only_after_the_consumer_that_panics_at_it_has_left() {
    explore(2, || {
        let mut ring = Builder::single(options(1), || 0);
        let (_, mut poller) = ring.poller(&[]);
        let (producer, running) = ring.start();
        let leaver = thread::spawn(move || {
            poller.wait();
            // The event at which the handler panics is not completed, so the consumer still has it.
            let sees = |event: &u32, _| std::panic::resume_unwind(Box::new(*event));
            let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poller.poll(1, sees))).unwrap_err();
            assert_eq!(seen.downcast_ref(), Some(&1u32));
        });
        publish(producer, 1..4);
        leaver.join().unwrap();
        running.join().unwrap();
    });
}

#[test]
fn a_consumer_that_joins_later_misses_no_event_after_its_start() {
    explore(2, || {
        let mut ring = Builder::single(options(1), || 0);
        let (_, mut first) = ring.poller(&[]);
        let (producer, mut running) = ring.start();
        let publisher = thread::spawn(move || publish(producer, 1..3));
        let handled = if first.poll(1, |event, _| assert_eq!(*event, 1)) == Polled::Idle { 0 } else { 1 };
        let (_, mut late) = running.add_poller(&[]);
        drop(first);
        assert_eq!(
            drain(&mut late),
            [(0, 1), (1, 2)][handled..],
            "it did not start at the position of the first consumer"
        );
        publisher.join().unwrap();
        running.join().unwrap();
    });
}

#[test]
fn producers_stop_waiting_for_a_pool_whose_last_member_panics() {
    explore(1, || {
        let mut ring = Builder::single(options(1), || 0);
        ring.pool(&[], [|_: &u32, _| std::panic::resume_unwind(Box::new(())); 2]);
        let (producer, running) = ring.start();
        publish(producer, 1..5);
        assert_eq!(running.join().unwrap_err().len(), 2);
    });
}
