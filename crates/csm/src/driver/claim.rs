//! Claims, and the set-up of a decision: claim, error, method and limit.

use crate::number::ln::ln;
use crate::process::{Method, Test, Threshold};
use crate::{Direction, Error, Interval};

/// A claim about a success rate `p`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim {
    /// `p` is at least this threshold. (If `p` equals the threshold, both verdicts count as wrong, and any verdict is
    /// rare.)
    AtLeast(f64),
    /// `p` is at most this threshold.
    AtMost(f64),
    /// `low < p < high`.
    Within {
        /// The lower threshold.
        low: f64,
        /// The upper threshold.
        high: f64,
    },
    /// `p` is above `low` (holds) or below `high` (fails). If `p` is in between, both verdicts are right. Because of
    /// the gap between the thresholds, the number of trials is bounded for all practical purposes, whatever the rate. A
    /// single threshold has no such bound: the closer the rate is to it, the more trials are needed.
    Between {
        /// The lower threshold.
        low: f64,
        /// The upper threshold.
        high: f64,
    },
}

/// The outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The claim is true.
    Holds,
    /// The claim is false.
    Fails,
}

/// A complete question: with the same set-up and the same outcomes, two runs have the same answer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Setup {
    /// The claim.
    pub claim: Claim,
    /// The maximum probability that the verdict or any interval is wrong; between 0 and 1.
    pub error: f64,
    /// The decision method.
    pub method: Method,
    /// The maximum number of trials: without a verdict by then, the claim remains undecided.
    pub limit: Option<u64>,
}

impl Setup {
    /// A question without a limit. The method is [`Method::Blend`] for [`Claim::Between`], and [`Method::Mixture`] for
    /// other claims.
    #[must_use]
    pub fn new(claim: Claim, error: f64) -> Self {
        let method = if let Claim::Between { .. } = claim { Method::Blend } else { Method::Mixture };
        Setup { claim, error, method, limit: None }
    }

    /// The same question with another method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Setup { method, ..self }
    }

    /// The same question with a maximum number of trials.
    #[must_use]
    pub fn limit(self, trials: u64) -> Self {
        Setup { limit: Some(trials), ..self }
    }

    /// Checks that the question makes sense.
    fn check(&self) -> Result<(), Error> {
        if self.limit == Some(0) {
            return Err(Error::OutOfRange { what: "the limit", expected: "at least one trial", found: 0.0 });
        }
        if let Claim::Within { low, high } | Claim::Between { low, high } = self.claim {
            let (low, high) = (Threshold::new(low)?.value(), Threshold::new(high)?.value());
            if low >= high {
                return Err(Error::NotInOrder { what: "two thresholds", low, high });
            }
        } else if self.method.needs_two_thresholds() {
            return Err(Error::NeedsTwoThresholds { method: self.method });
        }
        if let Claim::AtLeast(p) | Claim::AtMost(p) = self.claim {
            Threshold::new(p)?;
        }
        if let (Claim::Within { .. }, true) = (self.claim, self.method.needs_two_thresholds()) {
            return Err(Error::NeedsTwoThresholds { method: self.method });
        }
        log_part(self.error, 1.0).map(drop)
    }

    /// The tests that decide the claim, and the part of the error that remains for the interval.
    ///
    /// With [`Method::Mixture`], the probability of each direction at the threshold is known, and the tests get the
    /// whole error. At the threshold itself, the tests use up the whole error. At any other rate only one of the two
    /// directions is wrong, and the interval gets the part of the error that this direction does not use. If the claim
    /// has two thresholds, each of the two tests gets half of the error. With the other methods, the tests get two
    /// thirds of the error and the interval gets a third, at all rates.
    pub(crate) fn tests(&self) -> Result<Tests, Error> {
        self.check()?;
        let share = match (self.method, self.claim) {
            (Method::Mixture, Claim::AtLeast(_) | Claim::AtMost(_)) => 1.0,
            (Method::Mixture, Claim::Within { .. }) => 0.5,
            // With this method, both directions have the full error of their test, and at the threshold the two errors
            // add up.
            (Method::OneSided, Claim::AtLeast(_) | Claim::AtMost(_)) => 1.0 / 3.0,
            (Method::OneSided, Claim::Within { .. }) => 1.0 / 6.0,
            (_, Claim::Within { .. }) => 1.0 / 3.0,
            _ => 2.0 / 3.0,
        };
        let log_eps = log_share(self.error, share)?;
        let test = |p| Test::new(p, log_eps, self.method);
        let (floor, ceiling) = match self.claim {
            Claim::AtLeast(p) => (Some(test(p)?), None),
            Claim::AtMost(p) => (None, Some(test(p)?)),
            Claim::Within { low, high } => (Some(test(low)?), Some(test(high)?)),
            Claim::Between { low, high } => (Some(Test::between(low, high, log_eps, self.method)?), None),
        };
        Ok(Tests { interval: self.left_for_interval(&floor, &ceiling, share)?, floor, ceiling })
    }

    /// The error that remains for the interval, for each region of rates.
    fn left_for_interval(
        &self,
        floor: &Option<Test>,
        ceiling: &Option<Test>,
        share: f64,
    ) -> Result<Vec<Region>, Error> {
        let stops = |test: &Option<Test>| test.as_ref().and_then(Test::stops);
        let region = |to, used: f64| {
            let left = (1.0 - share * used).next_down();
            Ok(Region { to, log_eps: if left > 0.0 { log_share(self.error, left)? } else { f64::NEG_INFINITY } })
        };
        match (self.claim, stops(floor), stops(ceiling)) {
            (Claim::AtLeast(p), Some([above, below]), _) | (Claim::AtMost(p), _, Some([above, below])) => {
                Ok(vec![region(p, above)?, region(1.0, below)?])
            }
            (Claim::Within { low, high }, Some(floor), Some(ceiling)) => {
                // In each region, the errors of the wrong proofs add up. Below both thresholds, both proofs of "above" are
                // wrong. Between them, "below the floor" and "above the ceiling" are. Above both, both proofs of "below" are.
                let [below, between, above] = [floor[0] + ceiling[0], floor[1] + ceiling[0], floor[1] + ceiling[1]];
                Ok(vec![region(low, below)?, region(high, between)?, region(1.0, above)?])
            }
            _ => Ok(vec![Region { to: 1.0, log_eps: log_part(self.error, 3.0)? }]),
        }
    }
}

/// A claim as tests. The claim holds when the rate is proven to be above the floor and below the ceiling, as far as
/// they exist. It fails as soon as the rate is proven to be below the floor or above the ceiling.
#[derive(Debug, Clone)]
pub(crate) struct Tests {
    pub(crate) floor: Option<Test>,
    pub(crate) ceiling: Option<Test>,
    /// The error of the interval for each region of rates, in ascending order.
    pub(crate) interval: Vec<Region>,
}

/// A region of rates, which begins at the end of the previous region, and the error of the interval in this region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    /// The end of the region.
    pub(crate) to: f64,
    /// The logarithm of the error.
    pub(crate) log_eps: f64,
}

impl Tests {
    /// The verdict, from the directions that each test has proven.
    pub(crate) fn verdict(&self, floor: Option<Direction>, ceiling: Option<Direction>) -> Option<Verdict> {
        if floor == Some(Direction::Below) || ceiling == Some(Direction::Above) {
            return Some(Verdict::Fails);
        }
        let holds = (self.floor.is_none() || floor.is_some()) && (self.ceiling.is_none() || ceiling.is_some());
        holds.then_some(Verdict::Holds)
    }
}

impl Claim {
    /// Adjusts the interval to the verdict. Without a verdict, the interval is widened to contain the thresholds; with
    /// a verdict, the rates that the verdict rules out are removed. Both adjustments are safe: widening is always safe,
    /// and the true rate is among the removed rates only if the verdict is wrong.
    pub(crate) fn agreeing(&self, interval: Interval, verdict: Option<Verdict>, observed: f64) -> Interval {
        use Verdict::{Fails, Holds};
        let Interval { low, high } = interval;
        let from = |least: f64| Interval { low: low.max(least), high: high.max(least) };
        let to = |most: f64| Interval { low: low.min(most), high: high.min(most) };
        let around = |least: f64, most: f64| Interval { low: low.min(least), high: high.max(most) };
        match (*self, verdict) {
            (Claim::AtLeast(p) | Claim::AtMost(p), None) => around(p, p),
            (Claim::AtLeast(p), Some(Holds)) | (Claim::AtMost(p), Some(Fails)) => from(p),
            (Claim::AtLeast(p), Some(Fails)) | (Claim::AtMost(p), Some(Holds)) => to(p),
            (Claim::Within { low, high } | Claim::Between { low, high }, None) => around(low, high),
            (Claim::Between { low, .. }, Some(Holds)) => from(low),
            (Claim::Between { high, .. }, Some(Fails)) => to(high),
            (Claim::Within { low: least, high: most }, Some(Holds)) => {
                Interval { low: low.clamp(least, most), high: high.clamp(least, most) }
            }
            // The claim fails on the side of the observed rate.
            (Claim::Within { low: least, .. }, Some(Fails)) if observed < least => to(least),
            (Claim::Within { high: most, .. }, Some(Fails)) => from(most),
        }
    }
}

/// `ln(error * share)`, rounded down, for a share of at most one.
fn log_share(error: f64, share: f64) -> Result<f64, Error> {
    check_error(error)?;
    Ok((ln(error.into()) + ln(share.into())).lower())
}

/// `ln(error / parts)`, rounded down.
pub(crate) fn log_part(error: f64, parts: f64) -> Result<f64, Error> {
    check_error(error)?;
    Ok((ln(error.into()) - ln(parts.into())).lower())
}

fn check_error(error: f64) -> Result<(), Error> {
    let what = "the error";
    if !error.is_finite() {
        return Err(Error::NotFinite { what, found: error });
    }
    if error <= 0.0 || error >= 1.0 {
        return Err(Error::OutOfRange { what, expected: "between 0 and 1, both excluded", found: error });
    }
    Ok(())
}
