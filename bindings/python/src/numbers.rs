//! The bare functions.

use millstream_csm::process::{Test, Threshold};
use millstream_csm::{Direction, Side, interval as intervals, quantile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::numbers;
use crate::error::question;
use crate::values::{BetaBound, Bounds, Interval, Ranks, Stop};

/// The natural logarithm of the number of ways to choose k of n, from below and from above.
///
/// >>> bounds = log_choose(10, 5)
/// >>> round(bounds.lower, 12), round(bounds.upper, 12)
/// (5.529429087511, 5.529429087511)
#[pyfunction]
pub(crate) fn log_choose(n: u64, k: u64) -> PyResult<Bounds> {
    let bounds = millstream_csm::log_choose(n, k).map_err(question)?;
    Ok(Bounds { lower: bounds.lower, upper: bounds.upper })
}

/// Does the rate of success differ from a threshold?
///
/// May be asked after every trial: the probability that it is ever answered wrongly is at most `exp(log_eps)`. `method` is
/// "robbins", "mixture", "balanced", "centred" or "one-sided". With "one-sided" each direction has an error of `exp(log_eps)`:
/// a rate on either side of the threshold is placed on the other one with that probability at most, but at the threshold
/// itself, where both directions are wrong, the two add up to as much as `2 * exp(log_eps)`.
#[pyfunction]
#[pyo3(signature = (trials, successes, threshold, log_eps, method = "robbins"))]
pub(crate) fn stop(trials: u64, successes: u64, threshold: f64, log_eps: f64, method: &str) -> PyResult<Stop> {
    let test = Threshold::new(threshold).and_then(|threshold| Test::shared(threshold, log_eps, method.parse()?));
    let decision = test.and_then(|test| test.stop(trials, successes)).map_err(question)?;
    let direction = decision.stop.map(|direction| match direction {
        Direction::Above => "above",
        Direction::Below => "below",
    });
    Ok(Stop { stop: decision.stop.is_some(), direction, level: decision.level })
}

/// A bound on a quantile of Beta(a, b), on the safe side.
///
/// With side="low" at most `eps` of the probability lies below the bound, with side="high" at most `eps` lies above it.
#[pyfunction]
pub(crate) fn beta_bound(a: f64, b: f64, eps: f64, side: &str) -> PyResult<BetaBound> {
    let side = match side {
        "low" => Side::Low,
        "high" => Side::High,
        other => return Err(PyValueError::new_err(format!("side is 'low' or 'high', not '{other}'"))),
    };
    let bound = millstream_csm::beta_bound(a, b, eps, side).map_err(question)?;
    Ok(BetaBound { bound: bound.bound, complement: bound.complement })
}

/// Where the rate of success lies, but for a probability of `error`.
///
/// kind="watched" is right at all times at once, so it may be shown while data come in. kind="fixed" (Clopper and Pearson)
/// is narrower, and right only if the number of trials was fixed before the first. kind="credible" is where the rate lies
/// if every rate was equally likely beforehand.
#[pyfunction]
#[pyo3(signature = (trials, successes, error, kind = "watched"))]
pub(crate) fn interval(trials: u64, successes: u64, error: f64, kind: &str) -> PyResult<Interval> {
    let interval = match kind {
        "watched" => intervals::watched(trials, successes, error),
        "fixed" => intervals::fixed(trials, successes, error),
        "credible" => intervals::credible(trials, successes, error),
        other => {
            let problem = format!("kind is 'watched', 'fixed' or 'credible', not '{other}'");
            return Err(PyValueError::new_err(problem));
        }
    };
    interval.map(Interval::from).map_err(question)
}

/// The ranks among n sorted values that the quantile q lies between, at all n at once, but for a probability of `error`.
#[pyfunction]
pub(crate) fn quantile_ranks(n: u64, q: f64, error: f64) -> PyResult<Ranks> {
    let ranks = quantile::ranks(n, q, error).map_err(question)?;
    Ok(Ranks { low: ranks.low, high: ranks.high })
}

/// Where the quantile q (0.5: the median) of what the values are drawn from lies, but for a probability of `error`.
///
/// Right at all numbers of values at once. The values need no order.
#[pyfunction]
pub(crate) fn quantile_interval(values: &Bound<'_, PyAny>, q: f64, error: f64) -> PyResult<Interval> {
    let mut sorted = numbers(values)?;
    sorted.sort_unstable_by(f64::total_cmp);
    quantile::interval(&sorted, q, error).map(Interval::from).map_err(question)
}
