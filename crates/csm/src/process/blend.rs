//! A blend: half of the stake is on each of two processes.

use std::sync::Arc;

use super::EProcess;
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::ln::ln_1p;

/// The average of two e-processes for the same threshold and direction. It is an e-process, too.
///
/// Its level exceeds the lower of the two levels by at most `ln 2`, and by less if both processes have evidence.
#[derive(Debug, Clone)]
pub(crate) struct Blend {
    first: Arc<dyn EProcess>,
    second: Arc<dyn EProcess>,
}

impl Blend {
    /// # Panics
    /// If the processes prove different directions.
    pub(crate) fn new(first: Arc<dyn EProcess>, second: Arc<dyn EProcess>) -> Self {
        assert_eq!(first.direction(), second.direction(), "a blend of two directions proves neither");
        Blend { first, second }
    }
}

impl EProcess for Blend {
    fn direction(&self) -> Direction {
        self.first.direction()
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        let (first, second) = (self.first.level(trials, successes), self.second.level(trials, successes));
        let (low, high) = (first.min(second), first.max(second));
        // -ln((e^-low + e^-high) / 2) = low + ln 2 - ln(1 + e^(low - high)). Without the last term the level is higher,
        // which is safe.
        let help = if high - low < 40.0 { ln_1p(exp(Ball::from(low) + -high)) } else { Ball::ZERO };
        if low.is_finite() { (Ball::LN_2 - help + low).upper() } else { low }
    }

    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        // The average is at most the larger evidence, so its level is at least the lower level.
        self.first.level_at_least(trials, successes).min(self.second.level_at_least(trials, successes))
    }
}
