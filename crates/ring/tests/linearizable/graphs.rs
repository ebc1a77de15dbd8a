//! Consumers on the ring's own threads: handlers, followers and pools, with one producer and with several. The twins
//! are a follower and a pool, each with a mistake.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use millstream_history::{History, Kind, Model, Op};
use millstream_recorder::{Log, Recorder};
use millstream_ring::graph::{Builder, Place, Producer};
use millstream_ring::sequencer::Sequencer;

use crate::drive::{Conditions, disturb, holds, holds_once_decided};
use crate::{Cell64, must_be_caught};
use millstream_verify_random::{Random, stress};

/// A handler that is disturbed, and calls `step` to record its work on an event.
fn recorded(
    mut log: Log,
    mut random: Random,
    mut step: impl FnMut(&mut Log, u64) + Send + 'static,
) -> impl FnMut(&Cell64, Place) + Send + 'static {
    move |event, _| {
        disturb(&mut random);
        step(&mut log, event.get());
    }
}

fn consume(log: &mut Log, value: u64) {
    log.record(Op::CONSUME, (), || value);
}

/// Each producer publishes `events` events on its own thread.
fn publish<P: Sequencer + 'static>(
    producers: Vec<Producer<Cell64, P>>,
    recorder: &Recorder,
    op: Op,
    events: u64,
    random: &mut Random,
) where
    Producer<Cell64, P>: Send,
{
    thread::scope(|scope| {
        for mut producer in producers {
            let (mut log, mut random) = (recorder.log(), random.fork());
            scope.spawn(move || {
                let first = u64::from(log.process()) * events;
                for value in first..first + events {
                    disturb(&mut random);
                    log.begin(op, value);
                    producer.publish(|event| event.set(value));
                    log.end(true);
                }
            });
        }
    });
}

#[test]
fn handlers_see_every_event_in_the_order_of_all_producers() {
    let mut random = Random::seeded();
    for (producers, handlers, capacity) in [(1, 2, 1), (1, 3, 8), (2, 1, 4), (2, 2, 1), (3, 2, 4)] {
        for _ in 0..3 * stress() {
            holds_once_decided(&Model::new(Kind::Ring).with_capacity(capacity as u64), || {
                let recorder = Recorder::new().room(1 << 10);
                let mut ring = Builder::multi(capacity, Cell64::default);
                for _ in 0..handlers {
                    ring.handle(&[], recorded(recorder.log(), random.fork(), consume));
                }
                let conditions = Conditions::quiet();
                let (producer, running) = ring.start();
                publish(vec![producer; producers], &recorder, Op::PUBLISH, 120 / producers as u64, &mut random);
                running.join().unwrap();
                conditions.afterwards(|| recorder.finish())
            });
        }
    }
}

/// The events that a consumer has handled form a queue in front of its follower. Each of the two consumers that are
/// followed has such a queue.
#[test]
fn a_follower_handles_events_after_all_the_consumers_it_follows() {
    let mut random = Random::seeded();
    for producers in [1, 4] {
        let recorder = Recorder::new().room(1 << 10);
        let mut ring = Builder::multi(16, Cell64::default);
        let followed = [0, 1].map(|object| {
            ring.handle(
                &[],
                recorded(recorder.log(), random.fork(), move |log, value| {
                    log.on(object).record(Op::ENQUEUE, value, || ());
                }),
            )
        });
        ring.handle(
            &followed,
            recorded(recorder.log(), random.fork(), |log, value| {
                for object in [0, 1] {
                    log.on(object).record(Op::DEQUEUE, (), || value);
                }
            }),
        );
        let conditions = Conditions::stopping();
        let (producer, running) = ring.start();
        let publishing = Recorder::new().room(1 << 10);
        publish(vec![producer; producers], &publishing, Op::PUBLISH, 10_000 / producers as u64 * stress(), &mut random);
        running.join().unwrap();
        holds(&conditions.afterwards(|| recorder.finish()), &Kind::Queue.into());
    }
}

#[test]
fn a_pool_handles_every_event_once() {
    let mut random = Random::seeded();
    for (producers, handlers) in [(1, 1), (1, 4), (3, 2), (4, 4)] {
        let recorder = Recorder::new().room(1 << 10);
        let mut ring = Builder::multi(8, Cell64::default);
        let pool: Vec<_> = (0..handlers)
            .map(|_| {
                recorded(recorder.log(), random.fork(), |log, value| {
                    log.record(Op::REMOVE, value, || true);
                })
            })
            .collect();
        ring.pool(&[], pool);
        let conditions = Conditions::stopping();
        let (producer, running) = ring.start();
        let events = 10_000 / producers as u64 * stress();
        publish(vec![producer; producers], &recorder, Op::ADD, events, &mut random);
        running.join().unwrap();
        let history = conditions.afterwards(|| recorder.finish());
        assert_eq!(
            history.len() as u64,
            2 * events * producers as u64,
            "an event was not published and handled exactly once"
        );
        holds(&history, &Kind::Set.into());
    }
}

/// Two consumers; the second follows the first. Without `WAITS`, the second mistakenly follows the producer.
#[derive(Default)]
struct Followed<const WAITS: bool> {
    published: AtomicU64,
    led: AtomicU64,
}

impl<const WAITS: bool> Followed<WAITS> {
    fn publish(&self) -> u64 {
        self.published.fetch_add(1, Ordering::Release)
    }

    fn lead(&self) {
        self.led.fetch_add(1, Ordering::Release);
    }

    fn follow(&self, next: &mut u64) -> Option<u64> {
        let gate = if WAITS { &self.led } else { &self.published };
        let event = (*next < gate.load(Ordering::Acquire)).then_some(*next)?;
        *next += 1;
        Some(event)
    }
}

/// The first consumer sleeps while the second tries to consume.
fn followed<const WAITS: bool>() -> History {
    let _quiet = Conditions::quiet();
    let (ring, recorder) = (Followed::<WAITS>::default(), Recorder::new());
    let (mut leader, mut follower) = (recorder.log(), recorder.log());
    // The pause exceeds the skew between the clocks of two cores.
    let pause = || thread::sleep(std::time::Duration::from_micros(10));
    let mut next = 0;
    for _ in 0..2 {
        let event = ring.publish();
        follower.record(Op::DEQUEUE, (), || ring.follow(&mut next));
        pause();
        leader.record(Op::ENQUEUE, event, || ring.lead());
        pause();
        follower.record(Op::DEQUEUE, (), || ring.follow(&mut next));
        pause();
    }
    drop((leader, follower));
    recorder.finish()
}

#[test]
fn a_follower_that_follows_the_producer_instead_is_caught() {
    holds(&followed::<true>(), &Kind::Queue.into());
    let title = "a consumer that does not wait for the one it follows";
    must_be_caught("ran-ahead", title, Kind::Queue, followed::<false>);
}

/// A pool's workers claim the next event by a load and a store, as if each were alone.
#[test]
fn a_pool_that_claims_in_two_steps_is_caught() {
    const EVENTS: u64 = 100;
    let mut random = Random::seeded();
    must_be_caught("claimed-twice", "a pool whose workers claim in two steps", Kind::Set, || {
        let (claimed, recorder) = (AtomicU64::new(0), Recorder::new().room(1 << 8));
        let mut producer = recorder.log();
        for event in 0..EVENTS {
            producer.record(Op::ADD, event, || true);
        }
        drop(producer);
        thread::scope(|scope| {
            for _ in 0..2 {
                let (claimed, mut log, mut random) = (&claimed, recorder.log(), random.fork());
                scope.spawn(move || {
                    loop {
                        let event = claimed.load(Ordering::Acquire);
                        if event >= EVENTS {
                            return;
                        }
                        disturb(&mut random);
                        claimed.store(event + 1, Ordering::Release);
                        log.record(Op::REMOVE, event, || true);
                    }
                });
            }
        });
        recorder.finish()
    });
}
