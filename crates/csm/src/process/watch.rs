//! A watch: follows a test trial by trial, for little more than the cost of counting.

use super::Test;
use crate::{Direction, MAX_TRIALS};

/// A [`Test`] with its trials so far. The watch stops at the same trial as a test that is evaluated after each trial.
///
/// **Why it is fast.** A level costs a hundred nanoseconds and more, so most levels are not computed. Suppose that the
/// test would not stop after `k` further successes in a row, nor after `k` further failures in a row. Then it stops at
/// none of the next `k` trials, whatever their outcomes. Among the states after `j <= k` further trials, the state with
/// `j` successes is the most favourable to "above", and further successes only make it more favourable
/// ([`EProcess`](super::EProcess), promise 2). So both extremes are evaluated, with a margin for rounding, and then `k`
/// trials are only counted. The distance to a boundary grows like the square root of the number of trials, so the
/// evaluations ("looks") become rare.
///
/// Cost: about a nanosecond per trial, and less if trials [until the next look](Self::until_look) are added as a set.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    test: Test,
    trials: u64,
    successes: u64,
    looks: Looks,
    stopped: Option<Direction>,
}

impl Watch {
    /// A watch without trials.
    pub(crate) fn new(test: Test) -> Self {
        Watch { test, trials: 0, successes: 0, looks: Looks::default(), stopped: None }
    }

    /// The proven direction, if any.
    pub(crate) fn stopped(&self) -> Option<Direction> {
        self.stopped
    }

    /// Stops the watch with a direction that was proven earlier.
    pub(crate) fn stop(&mut self, direction: Direction) {
        self.stopped = Some(direction);
    }

    /// Adds a trial. Trials after the stop, or beyond [`MAX_TRIALS`], are ignored.
    #[inline]
    pub(crate) fn observe(&mut self, success: bool) -> Option<Direction> {
        if self.trials + 1 < self.looks.next {
            self.trials += 1;
            self.successes += u64::from(success);
            return None;
        }
        self.observe_and_look(1, u64::from(success))
    }

    /// Adds a set of trials and evaluates the test once, after the last one.
    ///
    /// # Panics
    /// If there are more successes than trials.
    pub(crate) fn observe_set(&mut self, trials: u64, successes: u64) -> Option<Direction> {
        assert!(successes <= trials, "{successes} successes in {trials} trials");
        self.observe_and_look(trials, successes)
    }

    /// The number of trials up to and including the next look, limited to `1..=most`.
    pub(crate) fn until_look(&self, most: usize) -> usize {
        if self.stopped.is_some() {
            return most;
        }
        let trials = self.looks.next.saturating_sub(self.trials).max(1);
        usize::try_from(trials).unwrap_or(usize::MAX).min(most)
    }

    #[cold]
    #[inline(never)]
    fn observe_and_look(&mut self, trials: u64, successes: u64) -> Option<Direction> {
        if self.stopped.is_some() || trials > MAX_TRIALS - self.trials {
            return self.stopped;
        }
        self.trials += trials;
        self.successes += successes;
        if self.trials >= self.looks.next {
            self.stopped = self.test.proof(self.trials, self.successes);
            if self.stopped.is_none() {
                self.plan_next_look();
            }
        }
        self.stopped
    }

    fn plan_next_look(&mut self) {
        let mut looks = self.looks;
        looks.plan(self.trials, |trials| self.is_clear(trials));
        self.looks = looks;
    }

    /// Whether the next `trials` trials certainly do not stop the test.
    fn is_clear(&self, trials: u64) -> bool {
        let last = self.trials + trials;
        self.test.is_clear_of(Direction::Above, last, self.successes + trials)
            && self.test.is_clear_of(Direction::Below, last, self.successes)
    }
}

/// The schedule of looks, for evidence that grows trial by trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Looks {
    /// The number of trials at which the next look is due.
    pub(crate) next: u64,
    /// The number of trials that the last look skipped.
    stride: u64,
}

impl Looks {
    /// Plans the look after the one at `trials`, such that the trials in between certainly cannot decide. The first
    /// candidate is twice the last stride, and each further candidate is half of the previous one, so few are tested.
    pub(crate) fn plan(&mut self, trials: u64, is_clear: impl Fn(u64) -> bool) {
        let mut stride = (2 * self.stride + 1).min(MAX_TRIALS - trials);
        while stride > 0 && !is_clear(stride) {
            stride /= 2;
        }
        *self = Looks { next: trials + stride + 1, stride };
    }
}

/// The number of outcomes that are true.
pub(crate) fn count(outcomes: &[bool]) -> u64 {
    // Up to 255 bytes are added up as bytes, so that a vector register adds many at once.
    outcomes.chunks(255).map(|chunk| u64::from(chunk.iter().fold(0u8, |sum, &success| sum + u8::from(success)))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Method;
    use crate::random::Random;
    use millstream_verify_random::cases;

    proptest! {
        #![proptest_config(cases(150))]

        #[test]
        fn a_watch_stops_after_the_same_trial_as_its_test(
            method in prop::sample::select(&Method::ALL[..]),
            p in prop_oneof![0.001..0.999f64, Just(0.5), Just(0.99), Just(1e-6)],
            shift in -0.2..0.2f64,
            log_eps in prop_oneof![-20.0..-0.01f64, Just(0.0)],
            seed: u64,
        ) {
            let test = match method.needs_two_thresholds() {
                true => Test::between(p, p + (1.0 - p) / 2.0, log_eps, method).unwrap(),
                false => Test::new(p, log_eps, method).unwrap(),
            };
            let mut random = Random::seeded(seed);
            let rate = (p + shift).clamp(0.0, 1.0);
            let outcomes: Vec<bool> = (0..1500).map(|_| random.uniform() < rate).collect();
            let mut successes = 0;
            let expected = outcomes.iter().zip(1..).find_map(|(&success, trials)| {
                successes += u64::from(success);
                test.look(trials, successes).stop.map(|direction| (trials, direction))
            });

            let mut watch = Watch::new(test.clone());
            let single = outcomes.iter().zip(1..).find_map(|(&success, trials)| {
                watch.observe(success).map(|direction| (trials, direction))
            });
            prop_assert_eq!(single, expected);

            let mut skipping = Watch::new(test);
            let mut rest = &outcomes[..];
            while !rest.is_empty() && skipping.stopped().is_none() {
                let (chunk, later) = rest.split_at(skipping.until_look(rest.len()));
                skipping.observe_set(chunk.len() as u64, count(chunk));
                rest = later;
            }
            prop_assert_eq!(skipping.stopped().map(|direction| (skipping.trials, direction)), expected);
        }
    }
}
