//! Tests: on which side of a threshold is the success rate?

use std::sync::Arc;

use super::balance;
use super::calibrate::calibrate;
use super::{BetaMixture, Blend, EProcess, LikelihoodRatio, Method, TailMixture, Threshold, UniformTail};
use super::{check_counts, check_log_eps};
use crate::Error;

/// A test of a success rate against a threshold: a pure function of the counts, which may be evaluated any number of
/// times.
///
/// The test stops when the level of a direction is strictly below `ln eps`. Over an endless sequence of evaluations,
/// the probability of a wrong direction is at most `eps`.
///
/// ```
/// use millstream_csm::{Direction, Method, Test};
///
/// let test = Test::new(0.98, 0.001f64.ln(), Method::Balanced)?;
/// assert_eq!(test.stop(1000, 995)?.stop, None);
/// assert_eq!(test.stop(4000, 3972)?.stop, Some(Direction::Above));
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Test {
    log_eps: f64,
    pub(super) arms: Arc<[Arm]>,
    /// Bounds on the probabilities of "above" and "below" at the threshold, relative to the error, if the method knows
    /// them.
    stops: Option<[f64; 2]>,
}

/// A direction and its share of the error.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    process: Arc<dyn EProcess>,
    ln_share: f64,
}

/// The side of a threshold on which the success rate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The rate is above the threshold.
    Above,
    /// The rate is below the threshold.
    Below,
}

impl Direction {
    /// The other side.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Direction::Above => Direction::Below,
            Direction::Below => Direction::Above,
        }
    }
}

/// The result of one evaluation of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The proven direction, if any.
    pub stop: Option<Direction>,
    /// An upper bound on the level. The test stops when this bound is below `ln eps`. If the directions have different
    /// shares of the error, the level is relative to the share.
    pub level: f64,
}

impl Test {
    /// A test in both directions, computed without a lookup in the cache.
    pub(super) fn compute(threshold: Threshold, log_eps: f64, method: Method) -> Result<Self, Error> {
        check_log_eps(log_eps)?;
        if method.needs_two_thresholds() {
            return Err(Error::NeedsTwoThresholds { method });
        }
        let directions = [Direction::Above, Direction::Below];
        let mut ln_shares = [0.0; 2];
        let mut stops = None;
        if method == Method::Balanced {
            ln_shares = balance::ln_shares(threshold, log_eps);
        }
        if method == Method::Mixture {
            let mixtures = directions.map(|direction| TailMixture::new(threshold, direction));
            let shares = calibrate(threshold, &mixtures, log_eps);
            ln_shares = shares.ln_shares;
            stops = Some(shares.stops);
        }
        let arms = directions.into_iter().zip(ln_shares);
        let arms = arms.map(|(direction, ln_share)| Arm { process: alone(threshold, direction, method), ln_share });
        Ok(Test { log_eps, arms: arms.collect(), stops })
    }

    /// A test that distinguishes rates of at most `low` from rates of at least `high`. [`Direction::Above`] means above
    /// `low`, and [`Direction::Below`] means below `high`; for a rate in between, both are right. At any rate, at most
    /// one direction is wrong, and its probability is at most `eps`.
    ///
    /// # Errors
    /// A threshold is not between 0 and 1, `low >= high`, or `log_eps` is positive or not finite.
    pub fn between(low: f64, high: f64, log_eps: f64, method: Method) -> Result<Self, Error> {
        check_log_eps(log_eps)?;
        let (low, high) = (Threshold::new(low)?, Threshold::new(high)?);
        if low.value() >= high.value() {
            return Err(Error::NotInOrder { what: "two thresholds", low: low.value(), high: high.value() });
        }
        let arm = |threshold, other, direction| {
            let ratio = || Arc::new(LikelihoodRatio::new(threshold, other));
            let process: Arc<dyn EProcess> = match method {
                Method::Sprt => ratio(),
                Method::Blend => Arc::new(Blend::new(ratio(), alone(threshold, direction, Method::OneSided))),
                _ => alone(threshold, direction, method),
            };
            Arm { process, ln_share: 0.0 }
        };
        let arms = [arm(low, high, Direction::Above), arm(high, low, Direction::Below)];
        Ok(Test { log_eps, arms: arms.into(), stops: None })
    }

    /// The same test, restricted to this direction.
    pub(crate) fn towards(self, direction: Direction) -> Self {
        let arms = self.towards_arms(direction).cloned().collect();
        Test { arms, ..self }
    }

    /// Bounds on the probabilities of "above" and "below" at the threshold itself, relative to the error. They add up
    /// to at most one. `None` for a method that bounds only the sum.
    pub(crate) fn stops(&self) -> Option<[f64; 2]> {
        self.stops
    }

    /// The limit below which the level must fall.
    pub(crate) fn log_eps(&self) -> f64 {
        self.log_eps
    }

    /// Evaluates the counts.
    ///
    /// # Errors
    /// More successes than trials, or more than [`MAX_TRIALS`](crate::MAX_TRIALS) trials.
    pub fn stop(&self, trials: u64, successes: u64) -> Result<Decision, Error> {
        check_counts(trials, successes)?;
        Ok(self.look(trials, successes))
    }

    /// Like [`stop`](Self::stop), for counts that are already checked.
    pub(crate) fn look(&self, trials: u64, successes: u64) -> Decision {
        let mut best = Decision { stop: None, level: f64::INFINITY };
        for arm in self.arms.iter() {
            let level = arm.level(trials, successes);
            if level < best.level {
                let stop = (level < self.log_eps).then(|| arm.process.direction());
                best = Decision { stop, level };
            }
        }
        best
    }

    /// The direction that the counts prove. Like [`look`](Self::look), but cheap if the counts prove none.
    pub(crate) fn proof(&self, trials: u64, successes: u64) -> Option<Direction> {
        if self.is_clear_of(Direction::Above, trials, successes)
            && self.is_clear_of(Direction::Below, trials, successes)
        {
            return None;
        }
        self.look(trials, successes).stop
    }

    /// Whether the counts prove this direction.
    pub(crate) fn proves(&self, direction: Direction, trials: u64, successes: u64) -> bool {
        !self.is_clear_of(direction, trials, successes)
            && self.towards_arms(direction).any(|arm| arm.level(trials, successes) < self.log_eps)
    }

    /// Whether the exact evidence is certainly too weak to prove this direction, with a margin for all rounding.
    pub(crate) fn is_clear_of(&self, direction: Direction, trials: u64, successes: u64) -> bool {
        // `room` is four times the maximum error of a level that is near `ln eps`.
        let room = 4e-6 * (1.0 + self.log_eps.abs());
        self.towards_arms(direction)
            .all(|arm| arm.process.level_at_least(trials, successes) - arm.ln_share > self.log_eps + room)
    }

    fn towards_arms(&self, direction: Direction) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(move |arm| arm.process.direction() == direction)
    }
}

impl Arm {
    fn level(&self, trials: u64, successes: u64) -> f64 {
        let level = self.process.level(trials, successes);
        if self.ln_share == 0.0 { level } else { (level - self.ln_share).next_up() }
    }
}

fn alone(threshold: Threshold, direction: Direction, method: Method) -> Arc<dyn EProcess> {
    match method {
        Method::Robbins => Arc::new(BetaMixture::robbins(threshold, direction)),
        Method::Centred => Arc::new(BetaMixture::centred(threshold, direction, BetaMixture::WEIGHT)),
        Method::Mixture => Arc::new(TailMixture::new(threshold, direction)),
        _ => Arc::new(UniformTail::new(threshold, direction)),
    }
}
