//! Tests that recordings are complete, and that they contain no order that did not exist.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use millstream_history::format::{Format, read, write_json};
use millstream_recorder::Recorder;
use millstream_recorder::millstream_history::{History, Op, Status, Value};

/// The factor by which the stress tests are made longer.
fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Records threads that increment one counter. The output of each operation is its position in the true order.
fn count(threads: usize, operations: u64) -> History {
    let counter = AtomicU64::new(0);
    let recorder = Recorder::new();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (counter, mut log) = (&counter, recorder.log());
            scope.spawn(move || {
                for round in 0..operations {
                    log.record(Op::FETCH_ADD, 1_u32, || counter.fetch_add(1, Ordering::Relaxed));
                    if round % 1000 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    recorder.finish()
}

/// Asserts that the history contains only the true order: no operation returned before an operation with a smaller output was
/// called.
fn assert_true_order(history: &History) {
    let place = |row: usize| history.output(row).as_int().unwrap();
    let mut returns: Vec<usize> = (0..history.len()).collect();
    returns.sort_by_key(|&row| history.ret(row));
    let (mut returned, mut highest) = (0, -1);
    for row in 0..history.len() {
        while history.ret(returns[returned]) < history.call(row) {
            highest = highest.max(place(returns[returned]));
            returned += 1;
        }
        assert!(
            highest < place(row),
            "{} after number {highest} had returned: {:?}",
            history.show(row),
            history.get(row)
        );
    }
    // A history without any order would satisfy this as well.
    assert!(returned > history.len() / 2, "only {returned} of {} returned before another call", history.len());
}

#[test]
fn no_recorded_order_contradicts_the_true_one() {
    for _ in 0..stress() {
        for threads in [1, 2, 4, 16] {
            let history = count(threads, 400_000 / threads as u64);
            assert_eq!(history.len(), 400_000);
            assert_true_order(&history);
        }
    }
}

#[test]
fn a_log_belongs_to_one_process_and_its_operations_follow_one_another() {
    let history = count(3, 40_000);
    assert_eq!(history.processes(), [0, 1, 2]);
    let mut last = [0; 3];
    for row in 0..history.len() {
        let last = &mut last[history.process(row) as usize];
        assert!(history.call(row) >= *last);
        *last = history.returned_at(row).unwrap();
    }
}

#[test]
fn an_operation_that_panics_is_pending() {
    let recorder = Recorder::new();
    let mut log = recorder.log();
    let panicked = catch_unwind(AssertUnwindSafe(|| log.record(Op::WRITE, 7, || -> () { panic!("on purpose") })));
    assert!(panicked.is_err());
    let refused = catch_unwind(AssertUnwindSafe(|| log.begin(Op::READ, ())));
    assert!(refused.is_err(), "the first operation is still open");
    log.abandon();
    log.record(Op::READ, (), || 7);
    drop(log);
    let history = recorder.finish();
    assert_eq!(history.show(0).to_string(), "write(7) -> ?");
    assert_eq!((history.status(0), history.returned_at(0)), (Status::Info, None));
    assert_eq!((history.process(1), history.output(1)), (1, Value::int(7)));
}

#[test]
fn a_thread_that_abandons_an_operation_continues_as_a_new_process() {
    let recorder = Recorder::new();
    let mut logs = [recorder.log(), recorder.log()];
    for n in 0..3 {
        for log in &mut logs {
            log.begin(Op::WRITE, n);
            log.abandon();
        }
    }
    drop(logs);
    let history = recorder.finish();
    let mut processes: Vec<u32> = (0..history.len()).map(|row| history.process(row)).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 6, "none of them calls again, as its operation never returns");
}

#[test]
fn a_failed_operation_is_marked() {
    let recorder = Recorder::new();
    let mut log = recorder.log();
    log.begin(Op::ENQUEUE, 1);
    log.fail();
    log.record(Op::ENQUEUE, 2, || ());
    drop(log);
    let history = recorder.finish();
    assert_eq!((history.status(0), history.status(1)), (Status::Fail, Status::Ok));
}

#[test]
fn a_full_log_ends_the_recording_for_all_threads() {
    let recorder = Recorder::new().room(3).limit(8);
    let (mut short, mut long) = (recorder.log(), recorder.log());
    for n in 0..5 {
        short.record(Op::ENQUEUE, n, || ());
    }
    for n in 5..15 {
        long.record(Op::ENQUEUE, n, || ());
    }
    // The history ends when the first operation found no space, not when later ones did.
    for n in 15..18 {
        short.record(Op::ENQUEUE, n, || ());
        long.record(Op::ENQUEUE, 100 + n, || ());
    }
    drop((short, long));
    let history = recorder.finish();
    assert_eq!(history.len(), 5 + 8);
    assert_eq!(history.input(12), Value::int(12));
}

#[test]
fn objects_and_custom_operations_are_kept_apart() {
    let recorder = Recorder::new();
    let rotate = recorder.op("rotate");
    assert_eq!(recorder.op("rotate"), rotate);
    assert_ne!(recorder.op("flip"), rotate);
    let mut log = recorder.log();
    log.on(3).record(rotate, (1, 2), || "done");
    log.on(4).begin(Op::WRITE, u64::MAX);
    log.end(());
    drop(log);
    let history = recorder.finish();
    assert_eq!(history.show(0).to_string(), r#"3.rotate([1,2]) -> "done""#);
    assert_eq!(history.show(1).to_string(), format!("4.write({})", u64::MAX));
}

#[test]
fn threads_without_a_scope_take_their_logs_along() {
    let recorder = Recorder::new();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let mut log = recorder.log();
            thread::spawn(move || log.record(Op::ADD, n, || true))
        })
        .collect();
    threads.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
    assert_eq!(recorder.finish().len(), 4);
}

#[test]
#[should_panic(expected = "a log is still in use")]
fn a_log_still_in_use_is_refused() {
    let recorder = Recorder::new();
    let _log = recorder.log();
    recorder.finish();
}

/// A plain store becomes visible to other cores only when it leaves the store buffer. The second stamp waits for that.
#[test]
fn an_operation_has_returned_when_its_store_is_seen() {
    let value = AtomicU64::new(0);
    let recorder = Recorder::new();
    thread::scope(|scope| {
        let (value, mut writer, mut reader) = (&value, recorder.log(), recorder.log());
        scope.spawn(move || {
            (1..200_000 * stress()).for_each(|n| writer.record(Op::WRITE, n, || value.store(n, Ordering::Release)));
        });
        scope.spawn(move || {
            for _ in 1..200_000 * stress() {
                reader.record(Op::READ, (), || value.load(Ordering::Acquire));
            }
        });
    });
    let history = recorder.finish();
    let mut writes: Vec<usize> = (0..history.len()).filter(|&row| history.op(row) == Op::WRITE).collect();
    writes.sort_by_key(|&row| history.ret(row));
    let (mut returned, mut newest) = (0, 0);
    for row in (0..history.len()).filter(|&row| history.op(row) == Op::READ) {
        while returned < writes.len() && history.ret(writes[returned]) < history.call(row) {
            newest = newest.max(history.input(writes[returned]).as_int().unwrap());
            returned += 1;
        }
        let read = history.output(row).as_int().unwrap();
        assert!(read >= newest, "{read} was read after the write of {newest} had returned");
    }
    assert!(newest > 0);
}

#[test]
fn a_recording_survives_a_file() {
    let history = count(2, 1000);
    let mut file = Vec::new();
    write_json(&history, &mut file).unwrap();
    let again = read(&file[..], Format::Json, None).unwrap();
    assert!(history.skew() > 0 && again.skew() == history.skew());
    assert_eq!(again.len(), history.len());
    for row in 0..history.len() {
        assert_eq!((again.get(row), again.ret(row)), (history.get(row), history.ret(row)));
    }
}
