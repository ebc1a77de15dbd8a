//! The cost of a decision, before any trial.

use pyo3::prelude::*;

use crate::arguments::{claim, setup};
use crate::error::question;
use crate::long::compute;
use crate::values::{count, hash};

/// The expected behaviour of a claim at a known rate of success.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Power {
    /// The probability of the verdict True within the limit.
    holds: f64,
    /// The probability of the verdict False within the limit.
    fails: f64,
    /// The probability that the claim is undecided at the limit.
    undecided: f64,
    /// The mean number of trials. Undecided runs count with the limit.
    mean_trials: f64,
    /// The number of trials after which half of all runs are decided; None if the limit comes first.
    median_trials: Option<u64>,
    /// The number of trials after which 90 % of all runs are decided; None if the limit comes first.
    p90_trials: Option<u64>,
}

#[pymethods]
impl Power {
    #[new]
    fn new(
        holds: f64,
        fails: f64,
        undecided: f64,
        mean_trials: f64,
        median_trials: Option<u64>,
        p90_trials: Option<u64>,
    ) -> Self {
        Self { holds, fails, undecided, mean_trials, median_trials, p90_trials }
    }

    fn __getnewargs__(&self) -> (f64, f64, f64, f64, Option<u64>, Option<u64>) {
        (self.holds, self.fails, self.undecided, self.mean_trials, self.median_trials, self.p90_trials)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!(
            "Power(holds={:?}, fails={:?}, undecided={:?}, mean_trials={:?}, median_trials={}, p90_trials={})",
            self.holds,
            self.fails,
            self.undecided,
            self.mean_trials,
            count(self.median_trials),
            count(self.p90_trials)
        )
    }
}

/// Computes the probabilities of the verdicts within `limit` trials if the rate of success is `rate`, by exact dynamic
/// programming.
#[pyfunction]
#[pyo3(signature = (rate, limit, *, at_least = None, at_most = None, between = None, error = 1e-6, method = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn power(
    py: Python<'_>,
    rate: f64,
    limit: u64,
    at_least: Option<f64>,
    at_most: Option<f64>,
    between: Option<(f64, f64)>,
    error: f64,
    method: Option<&str>,
) -> PyResult<Power> {
    let setup = setup(claim(at_least, at_most, between)?, error, method, None)?;
    let power = compute(py, move || setup.power(rate, limit))?.map_err(question)?;
    Ok(Power {
        holds: power.holds,
        fails: power.fails,
        undecided: power.undecided,
        mean_trials: power.mean_trials,
        median_trials: power.median_trials,
        p90_trials: power.p90_trials,
    })
}
