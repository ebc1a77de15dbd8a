//! Graphs of consumers, one property per test.
#![cfg(not(loom))]

#[path = "support/block_on.rs"]
mod block_on;
#[path = "support/strategies.rs"]
mod strategies;
#[path = "support/thread_time.rs"]
mod thread_time;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use block_on::block_on;
use millstream_ring::graph::{Builder, Full, Node, Place, Polled, Poller, Producer, Running};
use millstream_ring::sequencer::Multi;
use millstream_ring::{Options, WaitStrategy};
use strategies::STRATEGIES;
use thread_time::thread_time;
use watchdog::{LONG, in_time};

const EVENTS: u64 = 20_000;

#[test]
fn every_consumer_of_a_multicast_sees_every_event_in_order() {
    for strategy in STRATEGIES {
        // When spinning threads outnumber the cores, they keep each other from running.
        let events = if strategy == WaitStrategy::Spin { 200 } else { EVENTS };
        let mut ring = Builder::single(Options::new(16).wait_strategy(strategy), || 0u64);
        let sums: Vec<_> = (0..3).map(|_| Arc::new(AtomicU64::new(0))).collect();
        for sum in &sums {
            let (sum, mut next) = (Arc::clone(sum), 0);
            ring.handle(&[], move |event, place| {
                assert_eq!((*event, place.position), (next, next));
                next += 1;
                sum.fetch_add(*event, Ordering::Relaxed);
            });
        }
        let (mut producer, running) = ring.start();
        (0..events).for_each(|n| producer.publish(|event| *event = n));
        drop(producer);
        running.join().unwrap();
        for sum in sums {
            assert_eq!(sum.load(Ordering::Relaxed), (0..events).sum(), "{strategy:?}");
        }
    }
}

#[test]
fn a_diamond_joins_after_both_sides() {
    #[derive(Default)]
    struct Event {
        number: u64,
        sides: [AtomicU64; 2],
        done: u64,
    }
    let mut ring = Builder::multi(32, Event::default);
    let [left, right] = [0, 1]
        .map(|side| ring.handle(&[], move |event: &Event, _| event.sides[side].store(event.number, Ordering::Relaxed)));
    let join = ring.handle_mut(&[left, right], |event, _| {
        assert_eq!(event.sides.each_ref().map(|side| side.load(Ordering::Relaxed)), [event.number; 2]);
        event.done = event.number;
    });
    let last = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&last);
    ring.handle(&[join], move |event, _| {
        assert_eq!(event.done, event.number);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let (producer, running) = ring.start();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let mut producer = producer.clone();
            scope.spawn(move || (1..=EVENTS / 4).for_each(|n| producer.publish(|e| e.number = thread * EVENTS + n)));
        }
        drop(producer);
    });
    running.join().unwrap();
    assert_eq!(last.load(Ordering::Relaxed), EVENTS / 4 * 3);
}

#[test]
fn producers_wait_for_the_slowest_consumer() {
    let mut ring = Builder::single(4, || 0);
    let (_, mut slow) = ring.poller(&[]);
    let (_, mut fast) = ring.poller(&[]);
    let (mut producer, _running) = ring.start();
    (0..4).for_each(|n| producer.try_publish(|event| *event = n).unwrap());
    while fast.poll(64, |_, _| ()) != Polled::Idle {}
    assert_eq!(producer.try_publish(|_| unreachable!("there is no room")), Err(Full));
    assert_eq!(slow.poll(1, |event, _| assert_eq!(*event, 0)), Polled::Events(1));
    producer.try_publish(|event| *event = 4).unwrap();
    assert!(producer.try_claim(1).is_err());
}

#[test]
fn a_dropped_poller_holds_no_producer_up() {
    let mut ring = Builder::single(4, || 0);
    let (first, before) = ring.poller(&[]);
    let (_, mut after) = ring.poller(&[first]);
    let (mut producer, _running) = ring.start();
    producer.publish_many(4, |n, event| *event = n);
    assert_eq!(after.poll(64, |_, _| ()), Polled::Idle, "the follower passed the consumer that it follows");
    std::thread::scope(|scope| {
        scope.spawn(|| producer.publish(|event| *event = 4));
        std::thread::sleep(Duration::from_millis(5));
        drop(before);
        let mut seen = Vec::new();
        while seen.len() < 5 {
            after.wait();
            let _ = after.poll(64, |event, _| seen.push(*event));
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    });
    drop(after);
    producer.publish_many(100, |n, event| *event = n);
}

#[test]
fn a_poller_that_leaves_wakes_the_tasks_that_waited_for_it() {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut ring = Builder::single(2, || 0u32);
    let (node, leaver) = ring.poller(&[]);
    let (_, mut follower) = ring.poller(&[node]);
    let (mut producer, running) = ring.start();
    producer.publish_many(2, |_, event| *event = 1);

    {
        let mut follows = pin!(follower.wait_async());
        assert!(follows.as_mut().poll(&mut context).is_pending());
        drop(leaver);
        assert!(woken.0.swap(false, Ordering::Relaxed), "the follower was not woken");
        assert!(follows.as_mut().poll(&mut context).is_ready());
    }
    {
        let mut claims = pin!(producer.claim_async(1));
        assert!(claims.as_mut().poll(&mut context).is_pending(), "the claim did not wait for the follower");
        drop(follower);
        assert!(woken.0.load(Ordering::Relaxed), "the claim was not woken although there is room");
        assert!(claims.as_mut().poll(&mut context).is_ready(), "the claim waits although all consumers have left");
    }
    drop(producer);
    running.join().unwrap();
}

/// Whether a task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_handler_that_panics_holds_no_thread_up() {
    let survived = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&survived);
    let mut ring = Builder::single(8, || 0u64);
    let doomed = ring.handle(&[], |event, _| {
        if *event == 5 {
            std::panic::resume_unwind(Box::new("five".to_owned()));
        }
    });
    ring.handle(&[doomed], move |_, _| _ = count.fetch_add(1, Ordering::Relaxed));
    let (mut producer, running) = ring.start();
    producer.publish_many(4, |n, event| *event = n);
    assert!(!producer.has_panicked() && !running.has_panicked());
    producer.publish_many(996, |n, event| *event = n + 4);
    assert!(
        producer.has_panicked() && running.has_panicked(),
        "the panic is not reported although the consumer has left"
    );
    drop(producer);
    let panics = running.join().unwrap_err();
    assert_eq!(panics.len(), 1);
    assert_eq!((panics[0].node, panics[0].position, panics[0].message.as_str()), (doomed, 5, "five"));
    assert_eq!(survived.load(Ordering::Relaxed), 1000);
}

/// Calls its function when dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A full ring of 4 slots, and the poller for which its producer waits.
fn full_ring() -> (Producer<u64, Multi>, Running<u64, Multi>, Poller<u64, Multi>) {
    let mut ring = Builder::multi(4, || 0u64);
    let (_, poller) = ring.poller(&[]);
    let (mut producer, running) = ring.start();
    producer.publish_many(4, |n, event| *event = n);
    (producer, running, poller)
}

#[test]
fn a_handler_s_captured_values_may_publish_when_dropped() {
    let (producer, mut running, poller) = full_ring();
    let mut last_words = producer.clone();
    let publishes = OnDrop(move || last_words.publish_many(10, |n, event| *event = n));
    let doomed = running.add(&[], move |event, place| {
        let _ = &publishes;
        panics(event, place);
    });
    drop((poller, producer));
    let panics = in_time(move || running.join()).unwrap_err();
    assert_eq!((panics.len(), panics[0].node, panics[0].position), (1, doomed, 0));
}

#[test]
fn a_handler_s_captured_values_may_panic_when_dropped() {
    for (fails_at, position, message) in [(2, 2, "handled"), (9, 3, "dropped")] {
        let (producer, mut running, poller) = full_ring();
        let fails = OnDrop(|| std::panic::resume_unwind(Box::new("dropped")));
        let doomed = running.add(&[], move |event, _| {
            let _ = &fails;
            if *event == fails_at {
                std::panic::resume_unwind(Box::new("handled"));
            }
        });
        drop((poller, producer));
        let running = in_time(move || {
            while !running.has_panicked() {
                std::thread::yield_now();
            }
            drop(running.add_poller(&[doomed]));
            running
        });
        let panics = in_time(move || running.join()).unwrap_err();
        assert_eq!(panics.len(), 1);
        assert_eq!((panics[0].node, panics[0].position, panics[0].message.as_str()), (doomed, position, message));
    }
}

#[test]
fn a_newcomer_does_not_wait_for_the_values_that_a_leaver_drops() {
    let (mut producer, mut running, poller) = full_ring();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let waits = OnDrop(move || released.recv().unwrap());
    running.add(&[], move |event, place| {
        let _ = &waits;
        panics(event, place);
    });
    drop(poller);
    // There is room only once the consumer has left.
    producer.publish(|event| *event = 4);
    let running = in_time(move || {
        running.add(&[], |_, _| ());
        running
    });
    release.send(()).unwrap();
    drop(producer);
    assert_eq!(in_time(move || running.join()).unwrap_err().len(), 1);
}

#[test]
fn consumers_that_replace_each_other_leave_no_trail() {
    let mut ring = Builder::multi(4, || 0u64);
    let (first, stays) = ring.poller(&[]);
    let (mut producer, mut running) = ring.start();
    let began = thread_time();
    let (mut nodes, mut pollers) = ([first; 2], Vec::new());
    for _ in 0..40 {
        let newcomers = [(); 2].map(|()| running.add_poller(&nodes));
        nodes = newcomers.each_ref().map(|&(node, _)| node);
        // The consumers of the previous round leave here.
        pollers = Vec::from(newcomers.map(|(_, poller)| poller));
    }
    drop(stays);
    producer.publish_many(4, |n, event| *event = n);
    for poller in &mut pollers {
        let mut seen = Vec::new();
        while poller.poll(4, |event, _| seen.push(*event)) != Polled::Idle {}
        assert_eq!(seen, [0, 1, 2, 3]);
    }
    producer.try_publish(|_| ()).expect("the producer waits for a consumer that has left");
    // Each poller follows the one before. A recursion along all of them would overflow every stack.
    let (mut last, mut poller) = (nodes[0], pollers.remove(0));
    for _ in 0..20_000 {
        (last, poller) = running.add_poller(&[last]);
    }
    assert_eq!(poller.poll(1, |_, _| ()), Polled::Events(1), "the last poller does not follow the producers");
    let took = thread_time() - began;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn layers_of_pairs_may_leave_in_any_order_in_little_time() {
    for is_reversed in [false, true] {
        let mut ring = Builder::multi(4, || 0u64);
        let mut layers = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for _ in 0..40 {
            let pair = [(); 2].map(|()| ring.poller(&nodes));
            nodes = pair.iter().map(|&(node, _)| node).collect();
            layers.extend(pair.map(|(_, poller)| poller));
        }
        let (_, mut last) = ring.poller(&nodes);
        let (mut producer, _running) = ring.start();
        producer.publish_many(4, |n, event| *event = n);
        let began = thread_time();
        if is_reversed {
            layers.reverse();
        }
        layers.into_iter().for_each(drop);
        let mut seen = Vec::new();
        while last.poll(4, |event, _| seen.push(*event)) != Polled::Idle {}
        assert_eq!(seen, [0, 1, 2, 3]);
        let took = thread_time() - began;
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

/// A handler that panics at its first event.
fn panics(_: &u64, _: Place) {
    std::panic::resume_unwind(Box::new("at once"));
}

#[test]
fn pollers_of_a_ring_that_was_never_started_end() {
    fn check<P: millstream_ring::sequencer::Sequencer>(mut ring: Builder<u64, P>) {
        let handler = ring.handle(&[], |_, _| ());
        let (_, mut poller) = ring.poller(&[handler]);
        assert_eq!(poller.poll(1, |_, _| ()), Polled::Idle);
        drop(ring);
        assert!(poller.wait_deadline(Instant::now() + LONG));
        assert_eq!(poller.poll(1, |_, _| ()), Polled::Ended);
    }
    check(Builder::single(4, || 0));
    check(Builder::multi(4, || 0));
}

#[test]
fn a_consumer_that_joins_and_leaves_leaves_no_trace_in_the_ring() {
    let mut ring = Builder::multi(4, || 0u64);
    let (first, mut stays) = ring.poller(&[]);
    let (mut producer, mut running) = ring.start();
    let mut last = first;
    for _ in 0..20 {
        // From the second round on, the visitor follows a consumer that has left.
        let (node, mut visitor) = running.add_poller(&[last]);
        running.add(&[], panics);
        let mut published = 0;
        while published < 8 {
            assert_eq!(visitor.poll(4, |_, _| ()), Polled::Idle, "the visitor passed the consumer that it follows");
            published += u64::from(producer.try_publish(|event| *event = published).is_ok());
            while stays.poll(4, |_, _| ()) != Polled::Idle || visitor.poll(4, |_, _| ()) != Polled::Idle {}
        }
        last = node;
    }
    // A newcomer makes the ring forget the threads that have ended by then.
    let deadline = Instant::now() + LONG;
    loop {
        drop(running.add_poller(&[last]));
        let shape = format!("{running:?}");
        if shape.contains("consumers: 2") && !shape.contains("JoinHandle") {
            break;
        }
        assert!(Instant::now() < deadline, "{shape}");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop((producer, stays));
    assert_eq!(running.join().unwrap_err().len(), 20);
}

#[test]
fn the_claim_of_a_panicking_producer_is_skipped() {
    fn check<P: millstream_ring::sequencer::Sequencer>(mut ring: Builder<u64, P>) {
        let (_, mut poller) = ring.poller(&[]);
        let (mut producer, _running) = ring.start();
        for lap in 0..20 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                producer.publish(|event| {
                    *event = 99;
                    std::panic::resume_unwind(Box::new(()));
                });
            }));
            assert!(outcome.is_err());
            drop(producer.claim(2));
            producer.publish(|event| *event = lap);
            let mut seen = Vec::new();
            while poller.poll(8, |event, _| seen.push(*event)) != Polled::Idle {}
            assert_eq!(seen, [lap]);
        }
    }
    check(Builder::single(4, || 0));
    check(Builder::multi(4, || 0));
}

#[test]
fn claims_are_consecutive_and_batches_end_where_consumers_may_wait() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&ends);
    let mut ring = Builder::multi(16, || 0u64);
    ring.handle(&[], move |event, place| {
        sink.lock().unwrap().push((place.position, *event, place.ends_batch));
    });
    let (mut producer, running) = ring.start();
    let mut claim = producer.claim(5);
    assert_eq!(claim.positions(), 0..5);
    claim.into_iter().zip(10..).for_each(|(event, value)| *event = value);
    claim.publish();
    drop(producer);
    running.join().unwrap();
    let ends = ends.lock().unwrap();
    assert_eq!(
        ends.iter().map(|&(position, value, _)| (position, value)).collect::<Vec<_>>(),
        (0..5).map(|n| (n, n + 10)).collect::<Vec<_>>()
    );
    assert!(ends[4].2, "the last event did not end a batch");
}

#[test]
fn a_batch_ends_with_its_last_event_even_if_given_up_positions_follow() {
    let mut ring = Builder::multi(16, || 0u64);
    let (_, mut poller) = ring.poller(&[]);
    let (mut producer, _running) = ring.start();
    let (mut gathered, mut flushed) = (Vec::new(), Vec::new());
    for (given_up, published) in [(0, 2), (1, 1), (2, 0), (1, 2)] {
        producer.publish_many(published, |n, event| *event = n);
        (0..given_up).for_each(|_| drop(producer.claim(1)));
        while poller.poll(16, |event, place| {
            gathered.push(*event);
            if place.ends_batch {
                flushed.append(&mut gathered);
            }
        }) != Polled::Idle
        {}
        assert_eq!(gathered, [], "events without the end of a batch would never be flushed");
    }
    assert_eq!(flushed, [0, 1, 0, 0, 1]);
}

#[test]
fn a_consumer_that_joins_later_misses_no_event_after_its_start() {
    for strategy in [WaitStrategy::Adaptive, WaitStrategy::Block] {
        let mut ring = Builder::multi(Options::new(16).wait_strategy(strategy), || 0u64);
        let first = ring.handle(&[], |_, _| ());
        let (producer, mut running) = ring.start();
        let late = Arc::new(Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut producer = producer.clone();
                scope.spawn(move || (0..EVENTS).for_each(|_| producer.publish(|event| *event += 1)));
            }
            drop(producer);
            std::thread::sleep(Duration::from_millis(1));
            for _ in 0..5 {
                let late = Arc::clone(&late);
                let mut seen: Option<(u64, u64)> = None;
                running.add(&[first], move |_, place| {
                    let (start, next) = seen.unwrap_or((place.position, place.position));
                    assert_eq!(place.position, next, "a position was missed");
                    seen = Some((start, next + 1));
                    if next + 1 == 2 * EVENTS {
                        late.lock().unwrap().push(start);
                    }
                });
            }
        });
        running.join().unwrap();
        // A consumer that joined after the last event saw none.
        assert!(late.lock().unwrap().iter().all(|&start| start < 2 * EVENTS));
    }
}

#[test]
fn a_late_poller_holds_producers_up_like_any_other() {
    let mut ring = Builder::single(4, || 0);
    ring.handle(&[], |_, _| ());
    let (mut producer, mut running) = ring.start();
    producer.publish_many(100, |n, event| *event = n);
    let (_, mut late) = running.add_poller(&[]);
    let room = (0..10)
        .take_while(|&n| {
            std::thread::sleep(Duration::from_millis(1));
            producer.try_publish(|event| *event = 100 + n).is_ok()
        })
        .count();
    assert!(room <= 4, "{room} events passed a consumer that consumed none");
    let mut seen = Vec::new();
    drop(producer);
    while late.poll(64, |event, _| seen.push(*event)) != Polled::Ended {}
    assert_eq!(seen.last(), Some(&(100 + room as u64 - 1)));
}

/// Repeats the test in a process in which no thread can start, because each requests a stack of 2^60 bytes.
#[test]
fn a_newcomer_whose_thread_does_not_start_holds_no_producer_up() {
    const NAME: &str = "a_newcomer_whose_thread_does_not_start_holds_no_producer_up";
    if std::env::var_os("RUST_MIN_STACK").is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([NAME, "--exact", "--test-threads=1"]).env("RUST_MIN_STACK", (1u64 << 60).to_string());
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let mut ring = Builder::single(4, || 0u64);
    let (_, mut poller) = ring.poller(&[]);
    let (mut producer, mut running) = ring.start();
    catch_unwind(AssertUnwindSafe(|| running.add(&[], |_, _| ()))).expect_err("the thread must not start");
    for n in 0..20 {
        producer.try_publish(|event| *event = n).unwrap();
        assert_eq!(poller.poll(4, |event, _| assert_eq!(*event, n)), Polled::Events(1));
    }
    drop(producer);
    running.join().unwrap();
}

#[test]
fn tasks_claim_and_poll() {
    let mut ring = Builder::multi(4, || 0u64);
    let (_, mut poller) = ring.poller(&[]);
    let (mut producer, _running) = ring.start();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            block_on(async {
                for n in 0..1000 {
                    let mut claim = producer.claim_async(1).await;
                    claim.into_iter().for_each(|event| *event = n);
                    claim.publish();
                }
            });
        });
        let mut next = 0;
        block_on(async {
            loop {
                poller.wait_async().await;
                let polled = poller.poll(64, |event, _| {
                    assert_eq!(*event, next);
                    next += 1;
                });
                if polled == Polled::Ended {
                    break;
                }
            }
        });
        assert_eq!(next, 1000);
    });
}

#[test]
fn waiting_for_room_ends_at_the_deadline() {
    let mut ring = Builder::multi(2, || ());
    let (_, poller) = ring.poller(&[]);
    let (mut producer, _running) = ring.start();
    producer.publish_many(2, |_, ()| ());
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(producer.claim_deadline(1, soon).err(), Some(Full));
    assert!(Instant::now() >= soon);
    drop(poller);
}

#[test]
#[should_panic(expected = "has to be followed")]
fn an_exclusive_consumer_parallel_to_another_is_refused() {
    let mut ring = Builder::single(2, || 0);
    ring.handle(&[], |_, _| ());
    ring.handle_mut(&[], |event, _| *event += 1);
}

#[test]
#[should_panic(expected = "has to be followed")]
fn a_consumer_parallel_to_an_exclusive_one_is_refused() {
    let mut ring = Builder::single(2, || 0);
    ring.handle_mut(&[], |event, _| *event += 1);
    let (producer, mut running) = ring.start();
    drop(producer);
    running.add(&[], |_, _| ());
}

#[test]
#[should_panic(expected = "own ring")]
fn a_node_of_another_ring_is_refused() {
    let mut one = Builder::single(2, || 0);
    let node = one.handle(&[], |_, _| ());
    Builder::single(2, || 0).handle(&[node], |_, _| ());
}

#[test]
#[should_panic(expected = "1 to 4 positions, not 5")]
fn a_claim_larger_than_the_ring_is_refused() {
    let mut ring = Builder::single(4, || ());
    ring.handle(&[], |(), _| ());
    let (mut producer, _running) = ring.start();
    drop(producer.claim(5));
}

#[test]
#[should_panic(expected = "at least one consumer")]
fn a_ring_without_consumers_is_refused() {
    drop(Builder::single(4, || ()).start());
}

#[test]
fn tasks_may_move_between_threads() {
    fn send<T: Send>(_: &T) {}
    let mut ring = Builder::single(4, || 0u8);
    let (_, mut poller) = ring.poller(&[]);
    let (mut producer, _running) = ring.start();
    send(&producer.claim_async(1));
    send(&poller.wait_async());
}

#[test]
fn a_poll_for_no_events_leaves_them_in_the_ring() {
    let mut ring = Builder::single(8, || 0u64);
    let (_, mut poller) = ring.poller(&[]);
    let (mut producer, running) = ring.start();
    producer.publish(|event| *event = 7);
    assert_eq!(poller.poll(0, |event, _| panic!("{event} was not asked for")), Polled::Idle);
    let mut seen = Vec::new();
    assert_eq!(poller.poll(5, |event, place| seen.push((*event, place.ends_batch))), Polled::Events(1));
    assert_eq!(seen, [(7, true)]);
    drop((producer, poller));
    running.join().unwrap();
}
