//! Decides how long an idle worker spins before it sleeps.
//!
//! A sleep costs the worker a round trip into the kernel, and its waker a system call. If work comes soon, it is cheaper to
//! spin and check for work; if not, the spinning is wasted. The rule is competitive: a worker spins for no longer than a sleep
//! costs. A wait therefore costs at most twice as much as if the worker knew in advance when work would come.
//!
//! The worker measures the cost of a sleep: it is the length of the shortest recent sleep, since that sleep was ended almost as
//! soon as it began. The worker spins only while its sleeps are about that short. Each longer sleep halves the time for which it
//! spins, down to none.
//!
//! Source of the idea: A. Karlin et al., "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor",
//! 1991.

use std::cell::Cell;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// The maximum cost of a sleep: a virtual machine takes about 50 µs to wake a halted core. A longer sleep means only that no
/// work came.
const MAX_COST: Duration = Duration::from_micros(50);

/// The number of pause instructions between two checks.
const PAUSES: u32 = 8;

/// The number of checks after which the worker yields its thread, in case another thread needs its core.
const LOOKS_A_YIELD: u32 = 16;

/// Each sleep increases the known cost by the fraction `1 / GROWS_BY`, because the machine may have become slower.
const GROWS_BY: u32 = 16;

/// A sleep that lasts at most this many times its cost is short: spinning would have been cheaper.
const SHORT: u32 = 2;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Alert {
    /// The known cost of a sleep.
    cost: Cell<Duration>,
    /// The time for which the worker spins and checks for work before it sleeps.
    look: Cell<Duration>,
}

impl Alert {
    pub(super) fn new() -> Self {
        Alert { cost: Cell::new(MAX_COST), look: Cell::new(Duration::ZERO) }
    }

    /// Spins and checks for work. Returns `true` if there is work or the next timer is due.
    pub(super) fn look(&self, due: Option<Instant>, has_work: impl Fn() -> bool) -> bool {
        let most = self.look.get();
        if most.is_zero() {
            return has_work();
        }
        let began = Instant::now();
        for looks in 1u32.. {
            if has_work() {
                return true;
            }
            (0..PAUSES).for_each(|_| spin_loop());
            if looks.is_multiple_of(LOOKS_A_YIELD) {
                std::thread::yield_now();
            }
            let now = Instant::now();
            if due.is_some_and(|due| now >= due) {
                return true;
            }
            if now - began >= most {
                break;
            }
        }
        has_work()
    }

    /// Adjusts the cost and the spinning time after a sleep that lasted `took`.
    pub(super) fn slept(&self, took: Duration) {
        let known = self.cost.get();
        // If the wake-up comes just before the sleep, the sleep costs next to nothing. One such sleep proves little, so it
        // halves the known cost at most.
        let cost = (known + known / GROWS_BY).min(MAX_COST).min(took.max(known / 2));
        self.cost.set(cost);
        self.look.set(if took <= cost * SHORT { cost } else { self.look.get().min(cost) / 2 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_SLEEP: Duration = Duration::from_micros(5);

    #[test]
    fn a_worker_looks_as_long_as_its_shortest_sleep_while_sleeps_are_short() {
        let alert = Alert::new();
        alert.slept(MIN_SLEEP * 3);
        (0..4).for_each(|_| alert.slept(MIN_SLEEP));
        assert_eq!(alert.look.get(), MIN_SLEEP);
        alert.slept(MIN_SLEEP * 3 / 2);
        assert!((MIN_SLEEP..MIN_SLEEP * 2).contains(&alert.look.get()), "{:?}", alert.look);
    }

    #[test]
    fn a_worker_that_sleeps_long_looks_no_more() {
        let alert = Alert::new();
        (0..4).for_each(|_| alert.slept(MIN_SLEEP));
        (0..40).for_each(|_| alert.slept(Duration::from_millis(10)));
        assert_eq!(alert.look.get(), Duration::ZERO);
        let idle = Alert::new();
        idle.slept(Duration::from_millis(10));
        assert_eq!(idle.look.get(), Duration::ZERO, "its first sleep tells nothing about the cost");
    }

    #[test]
    fn a_look_sees_work_that_comes_meanwhile_and_ends_without() {
        let looks = Cell::new(0);
        let comes = || looks.replace(looks.get() + 1) == 40;
        let looking_for = |most: Duration| Alert { cost: Cell::new(most), look: Cell::new(most) };
        assert!(looking_for(Duration::from_secs(60)).look(None, comes));
        assert!(!looking_for(Duration::from_millis(1)).look(None, || false));
        let due = Instant::now() + Duration::from_millis(1);
        assert!(looking_for(Duration::from_secs(60)).look(Some(due), || false), "a timer ends it");
    }
}
