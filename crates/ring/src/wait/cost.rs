//! The costs of waiting on this machine. The process learns them while it waits.
//!
//! | cost | learnt from | used for |
//! | --- | --- | --- |
//! | a pause | one measurement, before the first wait | turning times into pauses |
//! | a yield that lets no other thread run | the quickest yield so far | how long to spin before a yield |
//! | a sleep and its wake-up | times from a waker's stamp to the sleeper's next instruction | how long to poll before a sleep |
//!
//! All of this is advice: a lost update changes only the length of a wait. So the atomics are relaxed, and they are the
//! standard ones even in a model. In a model the clock stays at zero, and a waiter checks twice.

use std::hint::spin_loop;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A wake-up that takes longer counts as this long, because its sleeper lacked a core.
const MAX_WAKE_UP_NS: u32 = 100_000;

/// The assumed cost of a wake-up until one has been measured.
const FIRST_WAKE_UP_NS: u32 = 10_000;

/// The shortest time over which the initial costs are measured.
const MIN_RUN: Duration = Duration::from_micros(10);

/// The process's costs: that of a pause in picoseconds, the others in nanoseconds.
#[derive(Debug)]
struct Costs {
    epoch: Instant,
    pause_ps: u64,
    yield_ns: AtomicU32,
    wake_up_ns: AtomicU32,
}

static COSTS: LazyLock<Costs> = LazyLock::new(|| {
    let epoch = Instant::now();
    // Each run is long enough for a coarse clock. The quickest of a few runs counts, because nothing interrupted it.
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
        // On busy cores each of these yields lets other threads run for whole time slices, so the cost is limited.
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

/// The cost in nanoseconds of a yield that does not let another thread run.
pub(super) fn of_yield() -> u32 {
    if cfg!(loom) { 1 } else { COSTS.yield_ns.load(Ordering::Relaxed) }
}

/// Yields, learns from the time that the yield took, and returns it in nanoseconds.
pub(super) fn timed_yield() -> u64 {
    let before = now_ns();
    crate::primitive::yield_now();
    let took = now_ns().saturating_sub(before);
    let known = of_yield();
    // A time of zero is a yield within one tick of a coarse clock, and is ignored. The cost falls in small steps, so
    // that no single reading spoils it.
    if (1..u64::from(known)).contains(&took) {
        COSTS.yield_ns.store((took as u32).max(known - known / 8), Ordering::Relaxed);
    }
    took
}

/// The time in nanoseconds from the beginning of a wake-up to the sleeper's first instruction.
pub(super) fn of_wake_up() -> u32 {
    if cfg!(loom) { 1 } else { COSTS.wake_up_ns.load(Ordering::Relaxed) }
}

/// The cost of a sleep in nanoseconds. Falling asleep takes about as long as the wake-up.
pub(super) fn of_sleep() -> u32 {
    2 * of_wake_up()
}

/// The time since the process first waited, in nanoseconds.
pub(super) fn now_ns() -> u64 {
    if cfg!(loom) { 0 } else { COSTS.epoch.elapsed().as_nanos() as u64 }
}

/// The time at which a waker last began to wake a sleeper.
#[derive(Debug, Default)]
pub(super) struct Stamp(AtomicU64);

impl Stamp {
    /// The time at which the last wake-up began.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Records that a wake-up begins now.
    pub(super) fn set(&self) {
        self.0.store(now_ns(), Ordering::Relaxed);
    }

    /// Learns the cost of a wake-up from a sleeper that fell asleep at `began` and is awake at `now`. Each wake-up
    /// moves the known cost by at most an eighth, so that the cost follows the median and not the slowest wake-ups.
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
