//! The driver for means.

use super::bernstein::Bernstein;
use super::{MeanSetup, Moments};
use crate::driver::log_part;
use crate::process::Looks;
use crate::{Claim, Direction, Error, Interval, MAX_TRIALS, Progress, Verdict};

/// Decides a claim about a mean, value by value, with an interval for the mean that may be examined at any time.
///
/// Two thirds of the error go to the tests, and a sixth to each end of the interval. The values must be within the
/// bounds, and independent with the same mean. More generally, it suffices that the mean of a value, given all earlier
/// values, is always the same.
#[derive(Debug, Clone)]
pub struct MeanDriver {
    setup: MeanSetup,
    /// One over the distance between the bounds.
    per_width: f64,
    evidence: Bernstein,
    moments: Moments,
    tests: Vec<MeanTest>,
    interval_log_eps: f64,
    limit: u64,
    looks: Looks,
    verdict: Option<Verdict>,
}

/// A test of one side of a threshold.
#[derive(Debug, Clone, Copy)]
struct MeanTest {
    mean: f64,
    direction: Direction,
    log_eps: f64,
    /// The meaning of the proof: the claim fails, holds, or holds once both halves are proven.
    means: Meaning,
    proven: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Fails,
    Holds,
    Half,
}

/// The state of a [`MeanDriver`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MeanStatus {
    /// The number of values so far.
    pub trials: u64,
    /// The mean of the values, if there are any.
    pub mean: Option<f64>,
    /// The means that are not ruled out: a confidence sequence, valid for all numbers of values simultaneously, that
    /// agrees with the verdict.
    pub interval: Interval,
    /// The progress.
    pub progress: Progress,
}

impl MeanDriver {
    /// A driver without values.
    ///
    /// # Errors
    /// The error is not between 0 and 1; the bounds are not finite, not in order, too far apart or too close for
    /// floats; a threshold is not strictly between the bounds; thresholds are not in order; or the limit is zero.
    pub fn new(setup: &MeanSetup) -> Result<Self, Error> {
        setup.check()?;
        Ok(MeanDriver {
            setup: *setup,
            per_width: 1.0 / (setup.high - setup.low),
            evidence: Bernstein::new(),
            moments: Moments::default(),
            tests: tests(setup)?,
            interval_log_eps: log_part(setup.error, 6.0)?,
            limit: setup.limit.unwrap_or(MAX_TRIALS),
            looks: Looks::default(),
            verdict: None,
        })
    }

    /// A driver that continues from the [state](Self::state) of another driver with the same set-up.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); also sums that this number of values between the bounds cannot have.
    pub fn resume(setup: &MeanSetup, state: Moments) -> Result<Self, Error> {
        let mut driver = MeanDriver::new(setup)?;
        let n = state.trials as f64;
        for (what, found, most) in [
            ("the sum of the values so far", state.sum, n),
            ("the remainder of that sum", state.sum_rest.abs(), 1.0),
            ("the sum of squares so far", state.squares, n),
        ] {
            if !found.is_finite() {
                return Err(Error::NotFinite { what, found });
            }
            if !(0.0..=most * (1.0 + 1e-6)).contains(&found) {
                return Err(Error::OutOfRange { what, expected: "a sum that this number of values can have", found });
            }
        }
        if state.trials > MAX_TRIALS {
            return Err(Error::TooMany { what: "values", found: state.trials, most: MAX_TRIALS });
        }
        driver.moments = state;
        driver.look();
        Ok(driver)
    }

    /// The state. With the set-up, it is all that needs to be stored between runs.
    #[must_use]
    pub fn state(&self) -> Moments {
        self.moments
    }

    /// Whether each side that makes the claim hold or fail is proven. With one threshold, these are the side on which
    /// the claim holds, and the other side. With two thresholds, the first two are the side above the lower threshold
    /// and the side below the upper one. With [`Claim::Within`], the third and the fourth are the side below the lower
    /// threshold and the side above the upper one. With [`Claim::Within`], the sums may no longer show what earlier
    /// sums have proven, so a driver should be restored with its proven sides.
    #[must_use]
    pub fn proven_sides(&self) -> [bool; 4] {
        std::array::from_fn(|test| self.tests.get(test).is_some_and(|test| test.proven))
    }

    /// Adds the [`proven_sides`](Self::proven_sides) of another driver with the same set-up and state.
    #[must_use]
    pub fn with_proven_sides(mut self, sides: [bool; 4]) -> Self {
        for (test, proven) in self.tests.iter_mut().zip(sides) {
            test.proven |= proven;
        }
        self.conclude();
        self
    }

    /// Adds a value, and returns the verdict, if there is one. After the verdict and at the limit, values are ignored.
    ///
    /// Cost: some nanoseconds. An evaluation of the evidence takes microseconds, and is skipped as long as no possible
    /// value could decide the claim.
    ///
    /// # Errors
    /// The value is not a number, or not within the bounds. Such a value is left out.
    #[inline]
    pub fn observe(&mut self, value: f64) -> Result<Option<Verdict>, Error> {
        if !(self.setup.low <= value && value <= self.setup.high) {
            return Err(self.refusal(value));
        }
        if self.verdict.is_none() && self.moments.trials < self.limit {
            self.moments.add(((value - self.setup.low) * self.per_width).min(1.0));
            if self.moments.trials >= self.looks.next {
                self.look();
            }
        }
        Ok(self.verdict)
    }

    /// The state. Computes the interval, which takes about 200 microseconds.
    #[must_use]
    pub fn status(&self) -> MeanStatus {
        let width = self.setup.high - self.setup.low;
        let bound = |direction| self.evidence.bound(&self.moments, self.interval_log_eps, direction);
        // Converts to the unit of the values; a step outwards covers rounding.
        let back = |x: f64, step: f64| self.setup.low + (x + step).clamp(0.0, 1.0) * width;
        let step = 4.0 * f64::EPSILON;
        let mean = self.moments.mean().map(|x| back(x, 0.0));
        let interval = Interval {
            low: back(bound(Direction::Above), -step).next_down().max(self.setup.low),
            high: back(bound(Direction::Below), step).next_up().min(self.setup.high),
        };
        MeanStatus {
            trials: self.moments.trials,
            mean,
            interval: self.setup.claim.agreeing(interval, self.verdict, mean.unwrap_or(self.setup.low)),
            progress: self.progress(),
        }
    }

    /// The progress. Unlike [`status`](Self::status), this computes nothing.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match self.verdict {
            Some(verdict) => Progress::Decided(verdict),
            None if self.moments.trials >= self.limit => Progress::AtLimit,
            None => Progress::Running,
        }
    }

    #[cold]
    fn refusal(&self, value: f64) -> Error {
        if value.is_nan() {
            return Error::NotFinite { what: "each value", found: value };
        }
        Error::OutOfRange { what: "each value", expected: "within the bounds of the set-up", found: value }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        for test in self.tests.iter_mut().filter(|test| !test.proven) {
            test.proven = self.evidence.level(&self.moments, test.mean, test.direction) < test.log_eps;
        }
        self.conclude();
        if self.verdict.is_none() {
            self.plan_next_look();
        }
    }

    fn conclude(&mut self) {
        let proven = |means| self.tests.iter().any(|test| test.means == means && test.proven);
        let mut halves = self.tests.iter().filter(|test| test.means == Meaning::Half).peekable();
        let both = halves.peek().is_some() && halves.all(|test| test.proven);
        if proven(Meaning::Fails) {
            self.verdict = Some(Verdict::Fails);
        } else if proven(Meaning::Holds) || both {
            self.verdict = Some(Verdict::Holds);
        }
    }

    fn plan_next_look(&mut self) {
        let mut looks = self.looks;
        looks.plan(self.moments.trials, |trials| self.is_clear(trials));
        self.looks = looks;
    }

    /// Whether the next `trials` values cannot decide, even if all of them were extreme and added nothing to the sum of
    /// squares. Each such value raises the evidence, so it suffices to check the sums after the last.
    fn is_clear(&self, trials: u64) -> bool {
        self.tests.iter().filter(|test| !test.proven).all(|test| {
            let x = if test.direction == Direction::Above { 1.0 } else { 0.0 };
            let best = self.moments.at_best(trials, x);
            // Each value adds a few times 2^-53 to the error of the sums. The second term of `room` covers that.
            let room = 1e-6 * (1.0 + test.log_eps.abs()) + 1e-14 * best.trials as f64;
            self.evidence.level_roughly(&best, test.mean, test.direction) > test.log_eps + room
        })
    }
}

/// The tests of a claim. They get two thirds of the error, divided equally if there are two thresholds.
///
/// The two directions of a single threshold share one part, because at a mean that equals the threshold both verdicts
/// count as wrong.
fn tests(setup: &MeanSetup) -> Result<Vec<MeanTest>, Error> {
    use Direction::{Above, Below};
    use Meaning::{Fails, Half, Holds};
    let alone = log_part(setup.error, 3.0)?;
    let test = |mean: f64, direction, means, log_eps| MeanTest {
        mean: setup.scale(mean),
        direction,
        log_eps,
        means,
        proven: false,
    };
    Ok(match setup.claim {
        Claim::AtLeast(mean) => vec![test(mean, Above, Holds, alone), test(mean, Below, Fails, alone)],
        Claim::AtMost(mean) => vec![test(mean, Below, Holds, alone), test(mean, Above, Fails, alone)],
        Claim::Within { low, high } => {
            let each = log_part(setup.error, 6.0)?;
            vec![
                test(low, Above, Half, each),
                test(high, Below, Half, each),
                test(low, Below, Fails, each),
                test(high, Above, Fails, each),
            ]
        }
        Claim::Between { low, high } => vec![test(low, Above, Holds, alone), test(high, Below, Fails, alone)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One half of the claim is proven. After further values, the sums no longer prove it. The other half is proven
    /// later.
    #[test]
    fn a_restored_driver_has_forgotten_no_side() {
        let setup = MeanSetup::new(Claim::Within { low: 0.4, high: 0.6 }, 0.01, 0.0, 1.0);
        let mut driver = MeanDriver::new(&setup).unwrap();
        let values = [1.0; 60].into_iter().chain([0.0; 55]);
        for value in values {
            driver.observe(value).unwrap();
            let state = driver.state();
            let restored = MeanDriver::resume(&setup, state).unwrap().with_proven_sides(driver.proven_sides());
            assert_eq!((restored.proven_sides(), restored.progress()), (driver.proven_sides(), driver.progress()));
        }
        assert_ne!(driver.proven_sides(), [false; 4]);
    }

    #[test]
    fn the_tests_have_two_thirds_of_the_error_together() {
        let claims = [
            (Claim::AtLeast(0.5), 2),
            (Claim::AtMost(0.5), 2),
            (Claim::Within { low: 0.2, high: 0.7 }, 4),
            (Claim::Between { low: 0.2, high: 0.7 }, 2),
        ];
        for (claim, count) in claims {
            let tests = tests(&MeanSetup::new(claim, 0.03, 0.0, 1.0)).expect("a valid question");
            let all: f64 = tests.iter().map(|test| test.log_eps.exp()).sum();
            assert!(tests.len() == count && (all - 0.02).abs() < 1e-12, "{claim:?}: {all}");
        }
    }
}
