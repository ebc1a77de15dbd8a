//! The costs of waiting on this machine, which the process learns as it waits.
//!
//! | cost | learnt from | used for |
//! | --- | --- | --- |
//! | a pause | one measurement, before the first wait | turning times into pauses |
//! | a yield that lets no other thread run | the quickest yield so far | how long to spin before a yield |
//! | a sleep and its wake-up | times from a waker's stamp to the sleeper's next instruction | how long to look before a sleep |
//!
//! All of this is advice: a lost update changes nothing but the length of a wait. The atomics are the standard ones, in a
//! model, too, and relaxed. In a model time stands still, and a waiter looks twice.

use std::hint::spin_loop;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// The longest wake-up that counts as one: a sleeper that takes longer lacked a core.
const MAX_WAKE_UP_NS: u32 = 100_000;

/// The process's costs in nanoseconds; a pause's in picoseconds.
#[derive(Debug)]
struct Costs {
    epoch: Instant,
    pause_ps: u32,
    yield_ns: AtomicU32,
    wake_up_ns: AtomicU32,
}

static COSTS: LazyLock<Costs> = LazyLock::new(|| {
    let epoch = Instant::now();
    // The quickest of a few runs is the one that no interrupt lengthened.
    let quickest = |times: u32, act: fn()| {
        let runs = (0..4).map(|_| {
            let began = Instant::now();
            (0..times).for_each(|_| act());
            began.elapsed().as_nanos() as u32
        });
        runs.min().expect("there are four runs").max(1)
    };
    let pauses = 64;
    Costs {
        epoch,
        pause_ps: (quickest(pauses, spin_loop).saturating_mul(1000) / pauses).max(1),
        yield_ns: AtomicU32::new(quickest(1, std::thread::yield_now)),
        // A first guess, until the first sleepers are woken: each wake-up moves it by an eighth.
        wake_up_ns: AtomicU32::new(10_000),
    }
});

/// The number of pauses that take this many nanoseconds, at least one.
pub(super) fn pauses_in(ns: u32) -> u32 {
    if cfg!(loom) {
        return 1;
    }
    ((u64::from(ns) * 1000 / u64::from(COSTS.pause_ps)) as u32).max(1)
}

/// Nanoseconds of a yield that lets no other thread run.
pub(super) fn of_yield() -> u32 {
    if cfg!(loom) { 1 } else { COSTS.yield_ns.load(Ordering::Relaxed) }
}

/// Yields, learns from it, and returns what it took in nanoseconds.
pub(super) fn timed_yield() -> u64 {
    let before = now_ns();
    crate::primitive::yield_now();
    let took = now_ns() - before;
    if took < u64::from(of_yield()) {
        COSTS.yield_ns.store((took as u32).max(1), Ordering::Relaxed);
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
    /// A wake-up begins.
    pub(super) fn set(&self) {
        self.0.store(now_ns(), Ordering::Relaxed);
    }

    /// A sleeper that fell asleep at `began` is awake at `now`: learns what its wake-up took. Each wake-up moves the known
    /// cost by at most an eighth, so that it follows the median and not those that were held up.
    pub(super) fn learn(&self, began: u64, now: u64) {
        let set = self.0.load(Ordering::Relaxed);
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
