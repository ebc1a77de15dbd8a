//! Pools of consumers, one property per test.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_ring::graph::{Builder, Place};
use millstream_ring::{Options, WaitStrategy};

const EVENTS: u64 = 20_000;

/// A handler that panics at its first event.
fn panics(_: &u64, _: Place) {
    std::panic::resume_unwind(Box::new("at once"));
}

#[test]
fn a_pool_handles_each_event_once_and_followers_see_it_afterwards() {
    let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..EVENTS).map(|_| AtomicUsize::new(0)).collect());
    let mut ring = Builder::single(64, || 0u64);
    let workers = (0..3).map(|_| {
        let seen = Arc::clone(&seen);
        move |event: &u64, _| _ = seen[*event as usize].fetch_add(1, Ordering::Relaxed)
    });
    let pool = ring.pool(&[], workers);
    let check = Arc::clone(&seen);
    ring.handle(&[pool], move |event, _| assert_eq!(check[*event as usize].load(Ordering::Relaxed), 1));
    let (mut producer, running) = ring.start();
    producer.publish_many(EVENTS, |n, event| *event = n);
    drop(producer);
    running.join().unwrap();
    assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
}

#[test]
fn a_member_that_panics_leaves_and_the_others_handle_the_remaining_events() {
    let (handled, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let mut ring = Builder::single(64, || 0u64);
    let workers = [true, true, false].map(|is_doomed| {
        let (handled, left) = (Arc::clone(&handled), Arc::clone(&left));
        move |event: &u64, place| {
            handled.lock().unwrap().push(*event);
            if is_doomed {
                left.fetch_add(1, Ordering::Relaxed);
                panics(event, place);
            }
            while left.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
        }
    });
    let pool = ring.pool(&[], workers);
    let (mut producer, running) = ring.start();
    producer.publish_many(EVENTS, |n, event| *event = n);
    drop(producer);
    let panics = running.join().unwrap_err();
    assert_eq!(panics.iter().map(|panic| panic.node).collect::<Vec<_>>(), [pool; 2]);
    let mut handled = Arc::into_inner(handled).unwrap().into_inner().unwrap();
    handled.sort_unstable();
    assert!(handled.into_iter().eq(0..EVENTS));
}

#[test]
fn a_pool_whose_last_handler_panics_holds_no_producer_up() {
    let followed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&followed);
    let mut ring = Builder::multi(8, || 0u64);
    let pool = ring.pool(&[], [panics; 2]);
    ring.handle(&[pool], move |_, _| _ = count.fetch_add(1, Ordering::Relaxed));
    let (mut producer, running) = ring.start();
    producer.publish_many(1000, |n, event| *event = n);
    drop(producer);
    assert_eq!(running.join().unwrap_err().len(), 2);
    assert_eq!(followed.load(Ordering::Relaxed), 1000);
}

/// Counts how often threads went to sleep. Each thread adds its own count when it drops this value.
#[cfg(target_os = "linux")]
struct Sleeps(Arc<AtomicU64>);

#[cfg(target_os = "linux")]
impl Drop for Sleeps {
    fn drop(&mut self) {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        self.0.fetch_add(sleeps.map_or(0, |sleeps| sleeps.trim().parse().expect("a number")), Ordering::Relaxed);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_event_wakes_one_member_of_a_sleeping_pool() {
    const TIMES: u64 = 200;
    let sleeps = Arc::new(AtomicU64::new(0));
    let mut ring = Builder::single(Options::new(8).wait_strategy(WaitStrategy::Block), || ());
    let members = (0..8).map(|_| {
        let own = Sleeps(Arc::clone(&sleeps));
        move |(): &(), _| assert!(Arc::strong_count(&own.0) > 1)
    });
    ring.pool(&[], members);
    let (mut producer, running) = ring.start();
    for _ in 0..TIMES {
        std::thread::sleep(Duration::from_millis(1));
        producer.publish(|()| ());
    }
    drop(producer);
    running.join().unwrap();
    let sleeps = sleeps.load(Ordering::Relaxed);
    // If each event woke all members, there would be 1600 sleeps.
    let is_known = std::fs::exists("/proc/thread-self/status").unwrap_or(false);
    assert!(!is_known || (1..4 * TIMES).contains(&sleeps), "{sleeps} sleeps for {TIMES} events");
}
