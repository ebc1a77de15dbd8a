//! The costs of waiting on this machine, which the process learns as it waits.
//!
//! | cost | learnt from | used for |
//! | --- | --- | --- |
//! | a pause | one measurement, before the first wait | turning times into pauses |
//! | a yield that lets no other thread run | the quickest yield so far | how long to spin before a yield |
//! | a sleep and its wake-up | times from a waker's stamp to the sleeper's next instruction | how long to poll before a sleep |
//!
//! All of this is advice: a lost update changes nothing but the length of a wait. The atomics are the standard ones, in a
//! model, too, and relaxed. In a model time stands still, and a waiter checks twice.

use std::hint::spin_loop;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest wake-up that counts as one: a sleeper that takes longer lacked a core.
const MAX_WAKE_UP_NS: u32 = 100_000;

/// A first guess, which each wake-up moves by an eighth.
const FIRST_WAKE_UP_NS: u32 = 10_000;

/// The shortest run by which a cost is measured.
const MIN_RUN: Duration = Duration::from_micros(10);

/// The process's costs in nanoseconds; a pause's in picoseconds.
#[derive(Debug)]
struct Costs {
    epoch: Instant,
    pause_ps: u64,
    yield_ns: AtomicU32,
    wake_up_ns: AtomicU32,
}

static COSTS: LazyLock<Costs> = LazyLock::new(|| {
    let epoch = Instant::now();
    // A run is long enough for a coarse clock, and the quickest of a few is the one that nothing interrupted.
    let quickest_ps = |act: fn()| {
        let run = |_| {
            let mut times = 16;
            loop {
                let began = Instant::now();
                (0..times).for_each(|_| act());
                let took = began.elapsed();
                if took >= MIN_RUN {
                    return (took.as_nanos() as u64 * 1000 / times).max(1);
                }
                times *= 2;
            }
        };
        (0..4).map(run).min().expect("there are four runs")
    };
    Costs {
        epoch,
        pause_ps: quickest_ps(spin_loop),
        // On busy cores each of these yields lasts for other threads' slices.
        yield_ns: AtomicU32::new(((quickest_ps(std::thread::yield_now) / 1000) as u32).clamp(1, FIRST_WAKE_UP_NS)),
        wake_up_ns: AtomicU32::new(FIRST_WAKE_UP_NS),
    }
});

/// The number of pauses that take this many nanoseconds, at least one.
pub(super) fn pauses_in(ns: u32) -> u32 {
    if cfg!(loom) {
        return 1;
    }
    ((u64::from(ns) * 1000 / COSTS.pause_ps) as u32).max(1)
}

/// Nanoseconds of a yield that lets no other thread run.
pub(super) fn of_yield() -> u32 {
    if cfg!(loom) { 1 } else { COSTS.yield_ns.load(Ordering::Relaxed) }
}

/// Yields, learns from it, and returns what it took in nanoseconds.
pub(super) fn timed_yield() -> u64 {
    let before = now_ns();
    crate::primitive::yield_now();
    let took = now_ns().saturating_sub(before);
    let known = of_yield();
    // A yield that takes no time is one within a tick of a coarse clock. A step down is small, so that no single reading
    // spoils the cost.
    if (1..u64::from(known)).contains(&took) {
        COSTS.yield_ns.store((took as u32).max(known - known / 8), Ordering::Relaxed);
    }
    took
}

/// Nanoseconds from a wake-up's beginning to the sleeper's first instruction.
pub(super) fn of_wake_up() -> u32 {
    if cfg!(loom) { 1 } else { COSTS.wake_up_ns.load(Ordering::Relaxed) }
}

/// Nanoseconds of a sleep: to fall asleep takes about as long as to be woken.
pub(super) fn of_sleep() -> u32 {
    2 * of_wake_up()
}

/// The time since the process first waited, in nanoseconds.
pub(super) fn now_ns() -> u64 {
    if cfg!(loom) { 0 } else { COSTS.epoch.elapsed().as_nanos() as u64 }
}

/// When a waker last began to wake a sleeper.
#[derive(Debug, Default)]
pub(super) struct Stamp(AtomicU64);

impl Stamp {
    /// When the last wake-up began.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A wake-up begins.
    pub(super) fn set(&self) {
        self.0.store(now_ns(), Ordering::Relaxed);
    }

    /// A sleeper that fell asleep at `began` is awake at `now`: learns what its wake-up took. Each wake-up moves the known
    /// cost by at most an eighth, so that it follows the median and not those that were held up.
    pub(super) fn learn(&self, began: u64, now: u64) {
        let set = self.get();
        if set < began || set > now {
            return;
        }
        let known = of_wake_up();
        let took = (now - set).min(u64::from(MAX_WAKE_UP_NS)) as u32;
        let step = (known / 8).max(1);
        COSTS.wake_up_ns.store(took.clamp(known.saturating_sub(step), known + step).max(1), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_moves_the_known_cost_by_an_eighth_at_most() {
        let stamp = Stamp(AtomicU64::new(1000));
        let known = of_wake_up();
        stamp.learn(1001, u64::MAX);
        stamp.learn(0, 999);
        assert_eq!(of_wake_up(), known, "a stamp from before the sleep, or from after it, was taken for its end");
        stamp.learn(1000, u64::MAX);
        assert!((known..=known + known / 8 + 1).contains(&of_wake_up()));
        (0..100).for_each(|_| stamp.learn(1000, 1000));
        assert!(of_wake_up() < known / 100 + 8, "{} ns after a hundred wake-ups that took no time", of_wake_up());
        (0..1000).for_each(|_| stamp.learn(1000, u64::MAX));
        assert!(of_wake_up() <= MAX_WAKE_UP_NS, "a sleeper that lacked a core counts as woken");
        (0..200).for_each(|_| stamp.learn(1000, 1000 + u64::from(known)));
        assert!(pauses_in(0) == 1 && pauses_in(u32::MAX) > pauses_in(1000) && of_yield() > 0);
    }
}
