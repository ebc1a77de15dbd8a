//! Power: the probability and the time of a decision, before any data.
//!
//! For a given true rate, the probability of every state of a test is computed trial by trial. The probability of the
//! states that cross a boundary is added to that of the verdict. The result is exact up to rounding in the fifteenth
//! digit, without simulation.

mod walk;

use walk::Walk;

use crate::driver::Tests;
use crate::process::{Test, Threshold};
use crate::{Error, Setup, Verdict};

/// The maximum number of trials that are computed.
const MAX_LIMIT: u64 = 1_000_000;

/// The expected behaviour of a set-up at a known rate: the result of [`Setup::power`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Power {
    /// The probability of the verdict "holds" within the limit.
    pub holds: f64,
    /// The probability of the verdict "fails" within the limit.
    pub fails: f64,
    /// The probability that there is no verdict within the limit.
    pub undecided: f64,
    /// The mean number of trials, up to the limit.
    pub mean_trials: f64,
    /// The number of trials after which half of all runs are decided; `None` if the limit comes first.
    pub median_trials: Option<u64>,
    /// The number of trials after which 90 % of all runs are decided; `None` if the limit comes first.
    pub p90_trials: Option<u64>,
}

impl Setup {
    /// The behaviour at a true success rate of `rate`, within `limit` trials and the set-up's own limit. It is computed
    /// exactly, without simulation.
    ///
    /// # Errors
    /// The errors of [`Driver::new`](crate::Driver::new); a rate outside `[0, 1]`; a limit of zero, or of more than a
    /// million trials.
    ///
    /// # Cost
    /// Grows with `limit^1.5`: about 50 ms for 10 000 trials, and a few seconds for a million.
    ///
    /// ```
    /// use millstream_csm::{Claim, Setup};
    ///
    /// // Is 99 % under 50 ms? If it is really 99.9 %, and we can spend 5000 requests:
    /// let power = Setup::new(Claim::AtLeast(0.99), 1e-6).power(0.999, 5000)?;
    /// assert!(power.holds > 0.95 && power.fails < 1e-6 && power.mean_trials < 2600.0);
    /// # Ok::<(), millstream_csm::Error>(())
    /// ```
    pub fn power(&self, rate: f64, limit: u64) -> Result<Power, Error> {
        walk(&self.tests()?, rate, limit.min(self.limit.unwrap_or(u64::MAX)))
    }
}

impl Test {
    /// Like [`Setup::power`], for the test alone: "holds" means that the test proves
    /// [`Above`](crate::Direction::Above).
    ///
    /// # Errors
    /// Those of [`Setup::power`].
    pub fn power(&self, rate: f64, limit: u64) -> Result<Power, Error> {
        walk(&Tests { floor: Some(self.clone()), ceiling: None, interval: Vec::new() }, rate, limit)
    }
}

fn walk(tests: &Tests, rate: f64, limit: u64) -> Result<Power, Error> {
    if rate != 0.0 && rate != 1.0 {
        Threshold::new(rate).map_err(|error| match error {
            Error::OutOfRange { found, .. } => {
                Error::OutOfRange { what: "the true rate", expected: "between 0 and 1", found }
            }
            other => other,
        })?;
    }
    if limit == 0 {
        return Err(Error::OutOfRange { what: "the limit", expected: "at least one trial", found: 0.0 });
    }
    if limit > MAX_LIMIT {
        return Err(Error::TooMany { what: "trials to look ahead", found: limit, most: MAX_LIMIT });
    }
    let mut walk = Walk::new(tests, rate);
    let (mut mean_trials, mut median_trials, mut p90_trials) = (0.0, None, None);
    for trials in 1..=limit {
        mean_trials += walk.undecided();
        walk.advance();
        let decided = 1.0 - walk.undecided();
        if decided >= 0.5 && median_trials.is_none() {
            median_trials = Some(trials);
        }
        if decided >= 0.9 && p90_trials.is_none() {
            p90_trials = Some(trials);
        }
        if walk.undecided() == 0.0 {
            break;
        }
    }
    Ok(Power {
        holds: walk.decided(Verdict::Holds),
        fails: walk.decided(Verdict::Fails),
        undecided: walk.undecided(),
        mean_trials,
        median_trials,
        p90_trials,
    })
}
