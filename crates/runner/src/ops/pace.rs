//! The amount of work done between two checks of the time limit and of cancellation.

use std::time::{Duration, Instant};

/// The time between two checks.
const LOOK: Duration = Duration::from_millis(10);

/// The maximum number of steps between two checks.
const MAX_STEPS: u64 = 4096;

/// Chooses the number of steps in each batch from the time that the previous batch took.
///
/// A batch has at most twice as many steps as the previous batch, so cheap first steps do not lead to a long batch.
/// After a long batch, the next one may be far smaller. If the batch was long only because the machine was busy, the
/// size recovers within a few batches.
pub(super) struct Pace {
    steps: u64,
    began: Instant,
}

impl Pace {
    /// Begins a first batch of a single step.
    pub(super) fn new() -> Self {
        Self { steps: 1, began: Instant::now() }
    }

    /// Ends a batch. Returns the number of steps in the next batch.
    pub(super) fn next(&mut self) -> u64 {
        let now = Instant::now();
        self.steps = after(self.steps, now - self.began);
        self.began = now;
        self.steps
    }
}

/// Returns the number of steps for the next batch. The previous batch had `steps` steps and took the time `took`.
fn after(steps: u64, took: Duration) -> u64 {
    let fit = u128::from(steps) * LOOK.as_nanos() / took.as_nanos().max(1);
    u64::try_from(fit).unwrap_or(MAX_STEPS).clamp(1, (2 * steps).min(MAX_STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_about_ten_milliseconds_whatever_a_step_costs() {
        for (cost, expected) in [
            (Duration::ZERO, MAX_STEPS),
            (Duration::from_nanos(100), MAX_STEPS),
            (Duration::from_micros(100), 100),
            (Duration::from_millis(3), 3),
            (Duration::from_secs(1), 1),
            (Duration::MAX, 1),
        ] {
            for first in [1, 64, MAX_STEPS] {
                let at = |steps: u64| cost.saturating_mul(u32::try_from(steps).unwrap());
                let mut steps = first;
                for _ in 0..12 {
                    steps = after(steps, at(steps));
                }
                assert_eq!(steps, expected, "{cost:?} from {first}");
            }
        }
        assert_eq!((after(1, Duration::ZERO), after(64, Duration::from_nanos(1))), (2, 128), "it grows step by step");
        assert_eq!(after(MAX_STEPS, Duration::from_secs(10)), 4, "and shrinks at once");
    }
}
