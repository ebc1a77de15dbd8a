//! Claims, and the set-up of a decision: claim, error, method and limit.

use crate::number::ln::ln;
use crate::process::{Method, Test, Threshold};
use crate::{Direction, Error, Interval};

/// A statement about a success rate `p` that holds or fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim {
    /// `p` is at least this. (If `p` equals the threshold, either verdict counts as wrong, and the two together are
    /// rare.)
    AtLeast(f64),
    /// `p` is at most this.
    AtMost(f64),
    /// `low < p < high`.
    Within {
        /// The lower threshold.
        low: f64,
        /// The upper threshold.
        high: f64,
    },
    /// `p` is above `low` (holds) or below `high` (fails). In between, both are true, and either verdict is right.
    /// Thanks to the gap between the thresholds, the number of trials is bounded for all practical purposes, whatever
    /// the rate; with a single threshold, there is no bound for a rate next to it.
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

/// A complete question: two runs with the same set-up and the same outcomes give the same answer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Setup {
    /// The claim.
    pub claim: Claim,
    /// The maximum probability that any report is wrong, verdict or interval; between 0 and 1.
    pub error: f64,
    /// The method of deciding.
    pub method: Method,
    /// The number of trials after which to give up.
    pub limit: Option<u64>,
}

impl Setup {
    /// The claim, decided by [`Method::Mixture`], or, with a gap between two thresholds, by [`Method::Blend`]; without a
    /// limit.
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

    /// The same question with a limit to the number of trials.
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

    /// The tests that decide the claim, and the error that they leave for the interval.
    ///
    /// At any rate other than a single threshold, at most one of the two directions is wrong. So if the probability of
    /// each direction is known, as with [`Method::Mixture`], the tests get the whole error: at the threshold they use
    /// it up, and at every other rate the interval gets the part that the wrong direction leaves over. For two
    /// thresholds at once, each test gets half. With the other methods, the tests get two thirds of the error and the
    /// interval gets a third, at all rates.
    pub(crate) fn tests(&self) -> Result<Tests, Error> {
        self.check()?;
        let share = match (self.method, self.claim) {
            (Method::Mixture, Claim::AtLeast(_) | Claim::AtMost(_)) => 1.0,
            (Method::Mixture, Claim::Within { .. }) => 0.5,
            // Each of the two directions of this method has the same error, and at the threshold the errors add up.
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

    /// The error that the tests leave for the interval, region by region of rates.
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
                // Below both thresholds, "fails" is right, but not because the rate is above the ceiling.
                let [below, between, above] = [floor[0] + ceiling[0], floor[1] + ceiling[0], floor[1] + ceiling[1]];
                Ok(vec![region(low, below)?, region(high, between)?, region(1.0, above)?])
            }
            _ => Ok(vec![Region { to: 1.0, log_eps: log_part(self.error, 3.0)? }]),
        }
    }
}

/// A claim as tests: the claim holds when the rate is proven to be above the floor and below the ceiling, as far as
/// they exist, and fails as soon as the rate is proven to be on the wrong side of one.
#[derive(Debug, Clone)]
pub(crate) struct Tests {
    pub(crate) floor: Option<Test>,
    pub(crate) ceiling: Option<Test>,
    /// The error of the interval, for rates up to the first region's end, from there to the second's, and so on.
    pub(crate) interval: Vec<Region>,
}

/// Rates from the end of the previous region, and the error of an interval for them.
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
    /// An interval that agrees with the verdict: the thresholds are in it until there is a verdict, and rates ruled out
    /// by the verdict are not. Both are safe: the former makes the interval wider, and the latter is wrong only if the
    /// verdict is.
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

/// `ln(error share)`, rounded down, for a share of at most one.
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
