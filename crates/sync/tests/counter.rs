//! Tests of counters, gauges, minima, maxima and histograms of several threads, and of counters shared by several
//! processes, with every kind of rseq area.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/sources.rs"]
mod sources;

use millstream_sync::counter::{Counter, Gauge, Histogram, Maximum, Minimum, SharedCounters, SharedError};
use millstream_verify_random::stress;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const EACH: u64 = 100_000;

fn on_threads(work: impl Fn(u64) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || work(thread));
        }
    });
}

#[test]
fn additions_of_several_threads_are_not_lost() {
    static COUNTER: Counter = Counter::new();
    on_threads(|_| (0..EACH).for_each(|_| COUNTER.add(3)));
    assert_eq!(COUNTER.sum(), 3 * THREADS * EACH);
}

#[test]
fn ended_threads_lose_nothing_and_their_words_are_reused() {
    let counter = Counter::new();
    for _ in 0..200 {
        on_threads(|_| {
            let local = counter.local();
            local.add(2);
            counter.increment();
            local.increment();
        });
    }
    assert_eq!(counter.sum(), 200 * THREADS * 4);
}

#[test]
fn locals_held_at_one_time_have_distinct_words() {
    let counter = Counter::new();
    let locals: Vec<_> = (0..10).map(|_| counter.local()).collect();
    for (n, local) in locals.iter().enumerate() {
        local.add(1 << n);
    }
    assert_eq!(counter.sum(), (1 << 10) - 1);
    let text = format!("{locals:?}");
    assert!((0..10).all(|n| text.contains(&format!("Local({})", 1 << n))), "{text}");
}

#[test]
fn a_sum_lies_between_finished_and_started_additions() {
    let counter = Counter::new();
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let (until, enough) = (Instant::now() + Duration::from_millis(500) * stress() as u32, AtomicBool::new(false));
    // This deadline leaves time for the sums below, however busy the machine is.
    let last = until + Duration::from_secs(60);
    let mut sums = 0;
    thread::scope(|scope| {
        for thread in 0..2 {
            let (counter, begun, done, enough) = (&counter, &begun, &done, &enough);
            scope.spawn(move || {
                let local = (thread == 0).then(|| counter.local());
                // The adding threads stop by time alone, in case the summing thread panics and cannot stop them.
                let goes_on = || Instant::now() < if enough.load(SeqCst) { until } else { last };
                for n in (1..=7).cycle().take_while(|_| goes_on()) {
                    begun.fetch_add(n, SeqCst);
                    local.as_ref().map_or_else(|| counter.add(n), |local| local.add(n));
                    done.fetch_add(n, SeqCst);
                }
            });
        }
        let mut latest = 0;
        while Instant::now() < if sums > 1000 { until } else { last } {
            let before = done.load(SeqCst);
            let sum = counter.sum();
            let after = begun.load(SeqCst);
            assert!(before <= sum && sum <= after, "{sum} is not within {before} to {after}");
            assert!(latest <= sum, "{sum} after {latest}");
            latest = sum;
            sums += 1;
            enough.store(sums > 1000, SeqCst);
        }
    });
    assert!(sums > 1000, "only {sums} sums were taken");
    assert_eq!((counter.sum(), counter.sum()), (done.into_inner(), begun.into_inner()));
}

#[test]
fn a_gauge_is_the_additions_less_the_subtractions() {
    let gauge = Gauge::new();
    on_threads(|thread| (0..EACH).for_each(|_| if thread % 2 == 0 { gauge.add(3) } else { gauge.subtract(5) }));
    assert_eq!(gauge.value(), EACH.cast_signed() * (THREADS / 2).cast_signed() * -2);
}

#[test]
fn extremes_are_those_of_all_threads() {
    let (largest, smallest) = (Maximum::new(), Minimum::new());
    assert_eq!((largest.value(), smallest.value()), (0, u64::MAX));
    on_threads(|thread| {
        (0..EACH).for_each(|i| {
            let number = 1000 + thread + THREADS * ((i * 7919) % EACH);
            largest.record(number);
            smallest.record(number);
        });
    });
    assert_eq!((smallest.value(), largest.value()), (1000, 1000 + THREADS * EACH - 1));
}

#[test]
fn a_histogram_counts_the_numbers_of_all_threads() {
    let histogram = Histogram::new();
    on_threads(|thread| (0..EACH).for_each(|i| histogram.record(thread * EACH + i)));
    let distribution = histogram.distribution();
    assert_eq!(distribution.count(), THREADS * EACH);
    assert!(distribution.quantile(0.5).unwrap().contains(&(THREADS * EACH / 2 - 1)));
    assert_eq!(distribution.buckets().map(|(_, count)| count).sum::<u64>(), THREADS * EACH);
}

/// The environment variable that makes this program a counting process.
const FILE: &str = "MILLSTREAM_COUNTER_FILE";
/// The environment variable that makes that process count until it is killed.
const ENDLESS: &str = "MILLSTREAM_COUNTER_ENDLESS";

#[derive(Clone, Copy)]
enum How {
    BySections,
    ByAtomics,
    UntilKilled,
}

#[test]
fn processes_share_counters_and_may_be_killed() {
    if let Ok(path) = std::env::var(FILE) {
        return count(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let counters = SharedCounters::create(&file, 3).unwrap();
    let start = |how: How| -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes_share_counters_and_may_be_killed"]).env(FILE, &path);
        match how {
            How::BySections => &mut command,
            How::ByAtomics => command.env("MILLSTREAM_RSEQ", "off"),
            How::UntilKilled => command.env(ENDLESS, "1"),
        };
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut finishing = [How::BySections, How::BySections, How::ByAtomics].map(start);
    let mut killed = start(How::UntilKilled);
    (0..EACH).for_each(|_| counters.add(0, 1));
    while counters.sum(2) < 1000 {
        let ended = killed.try_wait().unwrap();
        assert!(ended.is_none(), "the process ended before it was killed: {ended:?}");
        thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    for process in &mut finishing {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(counters.sum(0), 4 * EACH);
    let (begun, done) = (counters.sum(1), counters.sum(2));
    assert!(done == begun || done + 1 == begun, "{begun} begun, {done} done");
    assert_eq!(SharedCounters::open(&file).unwrap().sum(0), 4 * EACH);
}

/// Counts [`EACH`] times in counter 0, or in counters 1 and 2 in turn until it is killed.
fn count(path: &str) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let counters = SharedCounters::open(&file).unwrap();
    if std::env::var(ENDLESS).is_ok() {
        loop {
            counters.add(1, 1);
            counters.add(2, 1);
        }
    }
    (0..EACH).for_each(|_| counters.add(0, 1));
}

#[test]
fn files_that_are_not_counters_are_refused() {
    let file = tempfile::tempfile().unwrap();
    assert!(matches!(SharedCounters::create(&file, 0), Err(SharedError::Number { asked: 0 })));
    assert!(matches!(SharedCounters::create(&file, 513), Err(SharedError::Number { asked: 513 })));
    assert!(matches!(SharedCounters::open(&file), Err(SharedError::System(_))));
    SharedCounters::create(&file, 512).unwrap().add(511, 1);
    assert_eq!(SharedCounters::open(&file).unwrap().sum(511), 1);
    let length = file.metadata().unwrap().len();
    file.set_len(length - 1).unwrap();
    assert!(matches!(SharedCounters::open(&file), Err(SharedError::Length { .. })));
    file.set_len(length).unwrap();
    // This flips each bit of the header's words in turn.
    for bit in 0..4 * 64 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, bit / 8).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], bit / 8).unwrap();
        match SharedCounters::open(&file) {
            Err(SharedError::Foreign { .. }) => assert!(bit < 64),
            Err(SharedError::Version { .. }) => assert!((64..128).contains(&bit)),
            // Fewer counters than the file was made with are valid.
            Ok(counters) => {
                assert!((128..192).contains(&bit));
                // The header says fewer than 512 counters, so the last one is missing.
                let last = std::panic::AssertUnwindSafe(|| counters.sum(511));
                assert!(std::panic::catch_unwind(last).is_err());
            }
            Err(SharedError::Number { .. }) => assert!((128..192).contains(&bit)),
            Err(SharedError::Length { .. }) => assert!(bit >= 192),
            Err(error) => panic!("{error}"),
        }
        file.write_all_at(&byte, bit / 8).unwrap();
    }
    let mut text = tempfile::tempfile().unwrap();
    text.write_all(&[b'x'; 10_000]).unwrap();
    assert!(matches!(SharedCounters::open(&text), Err(SharedError::Foreign { .. })));
}

#[test]
fn again_with_other_areas() {
    sources::again_with_other_areas("again_with_other_areas", "");
}
