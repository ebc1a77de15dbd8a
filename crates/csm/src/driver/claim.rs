//! What is claimed, with what error, decided how, within how many trials.

use crate::number::ln::ln;
use crate::process::{Method, Test, Threshold};
use crate::{Direction, Error};

/// A statement about a success rate `p` that holds or fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim {
    /// `p` is at least this. (If it is exactly this, either verdict counts as wrong, and both are rare.)
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
    /// With a gap between the thresholds the number of trials is bounded for all practical purposes, whatever the
    /// rate; with a single threshold a rate next to it takes for ever.
    Between {
        /// The lower threshold.
        low: f64,
        /// The upper threshold.
        high: f64,
    },
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is true.
    Holds,
    /// It is not.
    Fails,
}

/// A question, completely: two runs with the same set-up and the same outcomes give the same answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// What is claimed.
    pub claim: Claim,
    /// The probability that anything reported is wrong, verdict or interval, at most; between 0 and 1.
    pub error: f64,
    /// How to decide.
    pub method: Method,
    /// After how many trials to give up.
    pub limit: Option<u64>,
}

impl Method {
    /// The best safe choice for a claim.
    #[must_use]
    pub fn default_for(claim: &Claim) -> Self {
        match claim {
            Claim::Between { .. } => Method::Blend,
            _ => Method::Balanced,
        }
    }
}

impl Setup {
    /// The claim, decided by the [method that is best for it](Method::default_for), without a limit.
    #[must_use]
    pub fn new(claim: Claim, error: f64) -> Self {
        Setup { claim, error, method: Method::default_for(&claim), limit: None }
    }

    /// With another method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Setup { method, ..self }
    }

    /// With a limit to the number of trials.
    #[must_use]
    pub fn limit(self, trials: u64) -> Self {
        Setup { limit: Some(trials), ..self }
    }

    /// Whether the question makes sense.
    ///
    /// # Errors
    /// A threshold or the error is not between 0 and 1, thresholds are not in order, the method needs two thresholds,
    /// or the limit is zero.
    pub fn check(&self) -> Result<(), Error> {
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

    /// The error that is left for the interval, a third: a sixth for each of its ends.
    pub(crate) fn interval_log_eps(&self) -> Result<f64, Error> {
        log_part(self.error, 3.0)
    }

    /// The tests that decide the claim. They have two thirds of the error, in equal parts if there are two
    /// thresholds.
    pub(crate) fn tests(&self) -> Result<Tests, Error> {
        self.check()?;
        let alone = log_part(self.error, 1.5)?;
        let each = log_part(self.error, 3.0)?;
        let test = |p, log_eps| Test::new(Threshold::new(p)?, log_eps, self.method);
        Ok(match self.claim {
            Claim::AtLeast(p) => Tests { floor: Some(test(p, alone)?), ceiling: None },
            Claim::AtMost(p) => Tests { floor: None, ceiling: Some(test(p, alone)?) },
            Claim::Within { low, high } => Tests { floor: Some(test(low, each)?), ceiling: Some(test(high, each)?) },
            Claim::Between { low, high } => {
                let (low, high) = (Threshold::new(low)?, Threshold::new(high)?);
                Tests { floor: Some(Test::between(low, high, each, self.method)?), ceiling: None }
            }
        })
    }
}

/// A claim as tests: it holds when every one that is there is on the right side, above the floor and below the
/// ceiling, and fails as soon as one is on the wrong side.
#[derive(Debug, Clone)]
pub(crate) struct Tests {
    pub(crate) floor: Option<Test>,
    pub(crate) ceiling: Option<Test>,
}

impl Tests {
    /// The verdict, from what each test has proven.
    pub(crate) fn verdict(&self, floor: Option<Direction>, ceiling: Option<Direction>) -> Option<Verdict> {
        if floor == Some(Direction::Below) || ceiling == Some(Direction::Above) {
            return Some(Verdict::Fails);
        }
        let holds = (self.floor.is_none() || floor.is_some()) && (self.ceiling.is_none() || ceiling.is_some());
        holds.then_some(Verdict::Holds)
    }
}

/// `ln(error / parts)`, rounded down.
pub(crate) fn log_part(error: f64, parts: f64) -> Result<f64, Error> {
    let what = "the error";
    if !error.is_finite() {
        return Err(Error::NotFinite { what, found: error });
    }
    if error <= 0.0 || error >= 1.0 {
        return Err(Error::OutOfRange { what, expected: "between 0 and 1, both excluded", found: error });
    }
    Ok((ln(error.into()) - ln(parts.into())).lower())
}
