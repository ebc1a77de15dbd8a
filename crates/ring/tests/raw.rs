//! Rings of events as bytes. They have the layout of the typed rings, and refuse wrong sizes.
#![cfg(all(target_os = "linux", not(loom)))]

use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::shared::{AttachError, Consumer, Producer, RawConsumer, RawProducer};

const SLOTS: usize = 8;

type Event = [u64; 3];

fn event() -> Layout {
    Layout::new::<Event>()
}

fn bytes(events: &[Event]) -> Vec<u8> {
    events.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect()
}

fn numbered(numbers: std::ops::Range<u64>) -> Vec<Event> {
    numbers.map(|number| [number, !number, 7]).collect()
}

#[test]
fn either_end_may_be_raw() {
    let file = tempfile::tempfile().unwrap();
    let mut producer = RawProducer::attach(&file, SLOTS, event()).unwrap();
    let mut consumer = Consumer::<Event>::attach(&file, SLOTS).unwrap();
    for round in 0..10 {
        // The rounds of five events begin at all eight slots in turn, so most of them wrap around.
        let sent = numbered(5 * round..5 * round + 5);
        assert_eq!(producer.try_send(&bytes(&sent)), 5);
        let mut seen = Vec::new();
        assert_eq!(consumer.try_handle_many(SLOTS, |event| seen.push(*event)), 5);
        assert_eq!(seen, sent);
    }
    drop((producer, consumer));

    let mut producer = Producer::<Event>::attach(&file, SLOTS).unwrap();
    let mut consumer = RawConsumer::attach(&file, SLOTS, event()).unwrap();
    assert_eq!(consumer.position(), 50);
    for round in 0..10 {
        let sent = numbered(5 * round..5 * round + 5);
        producer.send_all(&sent);
        let mut seen = Vec::new();
        while seen.len() < bytes(&sent).len() {
            let run = consumer.events().to_vec();
            assert!(!run.is_empty());
            seen.extend_from_slice(&run);
            consumer.consume(run.len() / event().size());
        }
        assert_eq!(seen, bytes(&sent));
    }
}

#[test]
fn events_that_are_not_consumed_are_seen_again() {
    let file = tempfile::tempfile().unwrap();
    let mut producer = RawProducer::attach(&file, SLOTS, event()).unwrap();
    producer.try_send(&bytes(&numbered(0..3)));
    let mut consumer = RawConsumer::attach(&file, SLOTS, event()).unwrap();
    assert_eq!(consumer.events(), bytes(&numbered(0..3)));
    consumer.consume(1);
    drop(consumer);
    let mut consumer = RawConsumer::attach(&file, SLOTS, event()).unwrap();
    assert_eq!(consumer.events(), bytes(&numbered(1..3)));
    assert!(catch_unwind(AssertUnwindSafe(|| consumer.consume(3))).is_err(), "two events are there");
    consumer.consume(2);
    consumer.consume(0);
    assert!(consumer.events().is_empty());
}

#[test]
fn each_end_waits_for_the_other_but_not_beyond_its_deadline() {
    const EVENTS: u64 = 10_000;
    let file = tempfile::tempfile().unwrap();
    let soon = || Some(Instant::now() + Duration::from_millis(20));
    let mut producer = RawProducer::attach(&file, SLOTS, event()).unwrap();
    let mut consumer = RawConsumer::attach(&file, SLOTS, event()).unwrap();
    assert!(!consumer.wait(soon()));
    assert_eq!(producer.send(&bytes(&numbered(0..20)), soon()), SLOTS);
    assert_eq!(producer.try_send(&bytes(&numbered(0..1))), 0);
    assert!(consumer.wait(None));
    consumer.consume(SLOTS);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in (0..EVENTS).step_by(20) {
                assert_eq!(producer.send(&bytes(&numbered(number..number + 20)), None), 20);
            }
        });
        let mut next = 0;
        while next < EVENTS {
            assert!(consumer.wait(None));
            let events = consumer.events();
            let count = events.len() / event().size();
            assert_eq!(events, bytes(&numbered(next..next + count as u64)));
            consumer.consume(count);
            next += count as u64;
        }
    });
}

#[test]
fn a_pipe_is_refused_and_a_ring_that_cannot_be_mapped_leaves_an_empty_file() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = std::fs::File::from(std::os::fd::OwnedFd::from(reader));
    let refused = RawProducer::attach(&pipe, SLOTS, event());
    assert!(matches!(&refused, Err(AttachError::System { source, .. }) if source.to_string().contains("regular file")));
    let file = tempfile::tempfile().unwrap();
    let vast = Layout::from_size_align(1 << 31, 8).unwrap();
    assert!(matches!(RawProducer::attach(&file, 1 << 30, vast), Err(AttachError::System { .. })));
    assert_eq!(file.metadata().unwrap().len(), 0);
    assert!(RawProducer::attach(&file, SLOTS, event()).is_ok());
}

#[test]
fn a_ring_of_another_layout_and_an_impossible_layout_are_refused() {
    let file = tempfile::tempfile().unwrap();
    let _producer = Producer::<Event>::attach(&file, SLOTS).unwrap();
    for other in [Layout::new::<[u32; 6]>(), Layout::new::<[u64; 4]>()] {
        let refused = RawConsumer::attach(&file, SLOTS, other);
        assert!(matches!(refused, Err(AttachError::Mismatch { .. })), "{refused:?}");
    }
    let refused = RawProducer::attach(&file, SLOTS, event());
    assert!(matches!(refused, Err(AttachError::Taken("producer"))), "{refused:?}");
    for (bytes, align) in [(0, 1), (256, 256), (12, 8), (1 << 32, 8)] {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let fresh = tempfile::tempfile().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| RawConsumer::attach(&fresh, SLOTS, layout))).is_err(), "{layout:?}");
        assert_eq!(fresh.metadata().unwrap().len(), 0, "{layout:?}");
    }
    let mut producer = RawProducer::attach(&tempfile::tempfile().unwrap(), SLOTS, event()).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| producer.try_send(&[0; 25]))).is_err());
}
