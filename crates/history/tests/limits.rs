//! A check that would exceed its time or memory stops at the limit and reports its progress.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_history::{Builder, History, Kind, Limit, Op, Operation, Options, Value, Verdict, check};

/// The system's allocator, with counters.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: the counters publish no other data.
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Enqueues that all overlap, followed by dequeues. A wrong order of the enqueues becomes apparent only at the last
/// dequeues. The very last dequeue finds the queue empty although it is not, so the search must try every order.
fn hopeless(width: u32) -> History {
    let mut builder = Builder::new();
    let (enqueues, dequeues) = (2 * width, 2 * width - 1);
    for process in 0..enqueues {
        let value = Value::from(process / 2);
        builder.push(Operation { ret: Some(10), ..Operation::new(process, Op::ENQUEUE, value) }).unwrap();
    }
    for process in 0..dequeues {
        let output = if process + 1 == dequeues { Value::NULL } else { Value::from(process / 2) };
        let dequeue =
            Operation { call: 20, ret: Some(30), output, ..Operation::new(process, Op::DEQUEUE, Value::NULL) };
        builder.push(dequeue).unwrap();
    }
    builder.finish().unwrap()
}

fn unknown(history: &History, options: &Options) -> millstream_history::Progress {
    match check(history, &Kind::Queue.into(), options).unwrap() {
        Verdict::Unknown(progress) => progress,
        decided => panic!("decided: {decided:?}"),
    }
}

/// This file has only one test, so that no other test allocates at the same time.
#[test]
fn memory_and_time_are_bounded() {
    let history = hopeless(15);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let memory_bytes = 32 << 20;
    let progress = unknown(&history, &Options { memory_bytes, ..Options::default() });
    let used = PEAK.load(Ordering::Relaxed) - before;
    assert_eq!(progress.limit, Limit::Memory);
    assert!(used as u64 <= memory_bytes, "{used} bytes in use, {memory_bytes} allowed");
    assert!(used as u64 > memory_bytes / 8, "only {used} bytes in use: it gave up too early");
    assert!(progress.configurations > 1000 && progress.decided < progress.total, "{progress:?}");

    let begun = Instant::now();
    let time = Some(Duration::from_millis(50));
    let progress = unknown(&history, &Options { time, memory_bytes: 1 << 40, ..Options::default() });
    assert_eq!(progress.limit, Limit::Time);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());

    let progress = unknown(&history, &Options { memory_bytes: 10, ..Options::default() });
    assert_eq!((progress.limit, progress.decided), (Limit::Memory, 0));
}
