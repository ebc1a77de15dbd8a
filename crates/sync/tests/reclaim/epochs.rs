//! Epochs: what a guard holds back, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use millstream_sync::reclaim::epoch::{Collector, Stalled};
use millstream_sync::reclaim::{Fence, Settings};

use crate::{Counted, FENCES, alive, small_batches};

#[test]
fn an_object_waits_for_the_guards_that_were_there_and_no_others() {
    let (collector, alive) = (Collector::with(small_batches(Fence::FAST)), alive());
    let (early, writer, late) = (collector.local(), collector.local(), collector.local());
    let guard = early.pin();
    // SAFETY: each object of this test comes from a box, no other thread can reach it, and it is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    writer.flush();
    let _late = late.pin();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1, "freed although an older guard is alive");
    drop(guard);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0, "not freed although only a later guard is alive");
}

#[test]
fn guards_nest_in_any_order() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    let (outer, inner, third) = (reader.pin(), reader.pin(), reader.pin());
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    for guard in [outer, third] {
        drop(guard);
        writer.flush();
        assert_eq!(alive.load(Relaxed), 1, "freed although the inner guard is alive");
    }
    drop(inner);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn a_refreshed_guard_holds_nothing_back_unless_there_is_another() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    let mut guard = reader.pin();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    let other = reader.pin();
    guard.refresh();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1, "freed although another guard is as old");
    drop(other);
    guard.refresh();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
    assert_eq!(collector.stats().pinned, 1, "refreshing ended the pin");
}

#[test]
fn a_leaked_guard_ends_with_its_local() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    std::mem::forget(reader.pin());
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1);
    drop(reader);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn the_last_handle_of_a_collector_frees_what_is_left() {
    for fence in FENCES {
        let alive = alive();
        let collector = Collector::with(small_batches(fence));
        let (local, other) = (collector.local(), collector.local());
        for _ in 0..20 {
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.pin().retire(Counted::boxed(&alive)) };
        }
        drop((collector, local));
        drop(other);
        assert_eq!(alive.load(Relaxed), 0);
    }
}

#[test]
fn deferred_actions_run_once_after_the_guards() {
    let collector = Collector::new();
    let (reader, writer) = (collector.local(), collector.local());
    let ran = Arc::new(AtomicUsize::new(0));
    let guard = reader.pin();
    for _ in 0..3 {
        let ran = Arc::clone(&ran);
        writer.pin().defer(move || {
            ran.fetch_add(1, Relaxed);
        });
    }
    writer.flush();
    assert_eq!(ran.load(Relaxed), 0);
    drop(guard);
    writer.flush();
    writer.flush();
    assert_eq!(ran.load(Relaxed), 3);
}

#[test]
fn a_stalled_reader_shows_and_make_room_declares_it() {
    const LIMIT: usize = 100;
    for fence in FENCES {
        let (collector, alive) = (Collector::with(small_batches(fence)), alive());
        let (reader, writer) = (collector.local(), collector.local());
        let guard = reader.pin();
        let mut retired = 0;
        let stalled = loop {
            match writer.make_room(1, LIMIT) {
                // SAFETY: the object comes from a box, is unreachable, and is retired once.
                Ok(()) => unsafe { writer.pin().retire(Counted::boxed(&alive)) },
                Err(stalled) => break stalled,
            }
            retired += 1;
            assert!(alive.load(Relaxed) <= LIMIT);
        };
        assert_eq!(retired, LIMIT);
        assert!(matches!(stalled, Stalled { garbage: LIMIT, limit: LIMIT, behind: 12.., .. }), "{stalled:?}");
        let stats = collector.stats();
        assert!(stats.behind >= 12 && stats.pinned == 1 && stats.members == 2 && stats.garbage == LIMIT, "{stats:?}");
        drop(guard);
        assert_eq!(writer.make_room(LIMIT, LIMIT), Ok(()));
        assert_eq!((alive.load(Relaxed), collector.stats().garbage), (0, 0));
    }
}

#[test]
fn a_batch_without_end_is_closed_by_a_flush() {
    let (collector, alive) = (Collector::with(Settings { batch: usize::MAX, fence: Fence::FAST }), alive());
    let local = collector.local();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    let retire = || unsafe { local.pin().retire(Counted::boxed(&alive)) };
    retire();
    local.flush();
    assert_eq!(alive.load(Relaxed), 0);
    let _guard = local.pin();
    retire();
    assert!(local.make_room(usize::MAX, usize::MAX - 1).is_err(), "room was found for more objects than the limit");
    assert_eq!(local.make_room(usize::MAX - 1, usize::MAX), Ok(()));
}

#[test]
fn with_readers_that_come_and_go_garbage_is_bounded_by_batches() {
    let (collector, alive) = (Collector::with(small_batches(Fence::FAST)), alive());
    let local = collector.local();
    let mut most = 0;
    for _ in 0..10_000 {
        let guard = local.pin();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { guard.retire(Counted::boxed(&alive)) };
        most = most.max(alive.load(Relaxed));
        assert_eq!(collector.stats().garbage, alive.load(Relaxed));
    }
    assert!(most <= 3 * 8, "{most} objects waited");
}
