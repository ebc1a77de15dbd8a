//! Records a lock that is biased towards one thread and consists only of a pair of fences, and checks that no two threads are
//! inside at once. A variant with two light fences must fail the same check. `MILLSTREAM_STRESS=n` makes the runs n times longer.
//! With `MILLSTREAM_PICTURES=folder`, the counter-examples are drawn in this folder.

#[path = "support/again.rs"]
mod again;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use again::{again, is_again};
use millstream_fence::{Fence, heavy, is_asymmetric, light, shared};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Op, Options, Verdict, check};
use millstream_recorder::{Preemption, Recorder};
use millstream_verify_random::stress;

/// The owner stores that it is inside, and then checks whether the lock is closed. Another thread closes the lock, and then
/// checks whether the owner is inside. If their fences pair, at least one of the two sees the other's store.
struct Biased<L, H> {
    busy: AtomicBool,
    closed: AtomicBool,
    others: Mutex<()>,
    light: L,
    heavy: H,
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let mut looks = 0_u32;
    while !holds() {
        looks += 1;
        if looks.is_multiple_of(100) {
            thread::yield_now();
        }
    }
}

impl<L: Fn(), H: Fn()> Biased<L, H> {
    fn enter(&self) {
        loop {
            self.busy.store(true, Release);
            (self.light)();
            if !self.closed.load(Acquire) {
                return;
            }
            self.busy.store(false, Release);
            wait_until(|| !self.closed.load(Acquire));
        }
    }

    fn leave(&self) {
        self.busy.store(false, Release);
    }

    fn close(&self) {
        self.closed.store(true, Release);
        (self.heavy)();
        wait_until(|| !self.busy.load(Acquire));
    }

    fn open(&self) {
        self.closed.store(false, Release);
    }
}

/// Stays inside for a while. If two threads are inside at once, the recording then shows this even if their clocks differ.
fn inside(round: u64) {
    (0..10 + round % 20).for_each(|_| std::hint::spin_loop());
}

/// Records a run: the owner enters again and again until each of `others` threads has closed the lock `closes` times.
fn lockings(others: u64, closes: u64, light: impl Fn() + Sync, heavy: impl Fn() + Sync) -> History {
    let lock =
        Biased { busy: AtomicBool::new(false), closed: AtomicBool::new(false), others: Mutex::new(()), light, heavy };
    let (recorder, closing) = (Recorder::new().room(1 << 12), AtomicU64::new(others));
    let preemption = Preemption::start().unwrap();
    thread::scope(|scope| {
        let mut log = recorder.log();
        let (lock, closing) = (&lock, &closing);
        scope.spawn(move || {
            for round in 0_u64.. {
                if closing.load(Acquire) == 0 {
                    return;
                }
                log.record(Op::ACQUIRE, (), || lock.enter());
                inside(round);
                log.record(Op::RELEASE, (), || lock.leave());
                inside(round + 7);
            }
        });
        for _ in 0..others {
            let mut log = recorder.log();
            scope.spawn(move || {
                for round in 0..closes {
                    let turn = lock.others.lock().unwrap();
                    log.record(Op::ACQUIRE, (), || lock.close());
                    inside(round);
                    log.record(Op::RELEASE, (), || lock.open());
                    drop(turn);
                    inside(round + 13);
                }
                closing.fetch_sub(1, Release);
            });
        }
    });
    drop(preemption); // it would disturb the measurements at the end
    recorder.finish()
}

fn assert_excludes(others: u64, closes: u64, light: impl Fn() + Sync, heavy: impl Fn() + Sync) {
    let verdict = check(&lockings(others, closes, light, heavy), &Kind::Mutex.into(), &Options::default()).unwrap();
    assert_eq!(verdict.holds(), Some(true), "{verdict:?}");
}

const CLOSES: u64 = 2000;

#[test]
fn a_pair_of_fences_excludes() {
    for others in [1, 3, 7] {
        assert_excludes(others, CLOSES / others * stress(), light, heavy);
        assert_excludes(others, CLOSES / others * stress(), light, || Fence::FAST.ticket().wait());
    }
    // Each close takes a grace period of the kernel.
    assert_excludes(1, 30 * stress(), light, || Fence::QUIET.heavy());
}

#[test]
fn the_shared_pair_excludes() {
    if shared::register().is_ok() {
        assert_excludes(3, CLOSES / 3 * stress(), shared::light, || shared::heavy().unwrap());
    } else {
        assert_excludes(3, CLOSES / 3 * stress(), shared::light, shared::light);
    }
}

#[test]
fn pairs_of_symmetric_fences_exclude() {
    if !is_again("symmetric") {
        return again("pairs_of_symmetric_fences_exclude", "symmetric", "symmetric", false);
    }
    assert!(!is_asymmetric());
    assert_excludes(3, CLOSES / 3 * stress(), light, heavy);
    assert_excludes(3, CLOSES / 3 * stress(), light, light);
}

#[test]
fn a_pair_of_fences_excludes_where_membarrier_is_forbidden() {
    if !is_again("forbidden") {
        return again("a_pair_of_fences_excludes_where_membarrier_is_forbidden", "forbidden", "", true);
    }
    assert_excludes(3, CLOSES / 3 * stress(), light, heavy);
}

/// The test fails after this number of runs, but not before [`PATIENCE`] has passed.
const MAX_RUNS: u32 = 200;
/// The minimum time before the test fails: if other processes use the processors as well, two threads seldom run at the same
/// time.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn two_light_fences_are_caught() {
    if !is_asymmetric() {
        println!("skipped: light fences are full ones here, so two of them are a pair");
        return;
    }
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: on one processor, the running thread sees all earlier writes");
        return;
    }
    let title = "a lock on two light fences";
    let decide = |history: &History, explain| {
        check(history, &Kind::Mutex.into(), &Options { explain, ..Options::default() }).unwrap()
    };
    let begun = Instant::now();
    let runs = (0..).take_while(|run| *run < MAX_RUNS || begun.elapsed() < PATIENCE);
    let history =
        runs.map(|_| lockings(1, CLOSES, light, light)).find(|history| decide(history, false).holds() == Some(false));
    let history = history.unwrap_or_else(|| panic!("{title} was not caught in {MAX_RUNS} runs"));
    let verdict = decide(&history, true);
    let Verdict::Fails(found) = &verdict else { panic!("{verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join("two-light-fences.svg"), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
