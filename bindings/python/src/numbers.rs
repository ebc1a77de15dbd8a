//! The low-level functions.

use millstream_csm::{Direction, Side, Test, interval as intervals, quantile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::numbers;
use crate::error::question;
use crate::long::compute;
use crate::values::{BetaBound, Bounds, Interval, Ranks, Stop};

/// Bounds the natural logarithm of the number of ways to choose k of n, from below and from above.
///
/// >>> bounds = log_choose(10, 5)
/// >>> round(bounds.lower, 12), round(bounds.upper, 12)
/// (5.529429087511, 5.529429087511)
#[pyfunction]
pub(crate) fn log_choose(n: u64, k: u64) -> PyResult<Bounds> {
    let bounds = millstream_csm::log_choose(n, k).map_err(question)?;
    Ok(Bounds { lower: bounds.low, upper: bounds.high })
}

/// Decides whether the rate of success differs from a threshold.
///
/// Programs may call this function after every trial: the probability that any of the answers is wrong is at most
/// `exp(log_eps)`. `method` is "robbins", "mixture", "balanced", "centred" or "one-sided". With "one-sided", each
/// direction has an error of `exp(log_eps)`: for a rate above or below the threshold, the probability of the wrong
/// direction is at most `exp(log_eps)`. At the threshold itself both directions are wrong, and the two errors add up to
/// at most `2 * exp(log_eps)`.
#[pyfunction]
#[pyo3(signature = (trials, successes, threshold, log_eps, method = "robbins"))]
pub(crate) fn stop(trials: u64, successes: u64, threshold: f64, log_eps: f64, method: &str) -> PyResult<Stop> {
    let test = method.parse().and_then(|method| Test::new(threshold, log_eps, method));
    let decision = test.and_then(|test| test.stop(trials, successes)).map_err(question)?;
    let direction = decision.stop.map(|direction| match direction {
        Direction::Above => "above",
        Direction::Below => "below",
    });
    Ok(Stop { stop: decision.stop.is_some(), direction, level: decision.level })
}

/// Computes a bound on a quantile of Beta(a, b), on the safe side.
///
/// With side="low" at most `eps` of the probability is below the bound; with side="high" at most `eps` is above it.
#[pyfunction]
pub(crate) fn beta_bound(a: f64, b: f64, eps: f64, side: &str) -> PyResult<BetaBound> {
    let side = match side {
        "low" => Side::Low,
        "high" => Side::High,
        other => return Err(PyValueError::new_err(format!("expected side 'low' or 'high', found '{other}'"))),
    };
    let bound = millstream_csm::beta_bound(a, b, eps, side).map_err(question)?;
    Ok(BetaBound { bound: bound.bound, complement: bound.complement })
}

/// Computes an interval for the rate of success that is wrong with a probability of at most `error`.
///
/// kind="watched" is valid simultaneously at all times, so it may be shown while data come in. kind="fixed" (Clopper
/// and Pearson) is narrower, but valid only if the number of trials was fixed before the first. kind="credible"
/// contains the rate with probability `1 - error` if every rate was equally likely beforehand.
#[pyfunction]
#[pyo3(signature = (trials, successes, error, kind = "watched"))]
pub(crate) fn interval(trials: u64, successes: u64, error: f64, kind: &str) -> PyResult<Interval> {
    let interval = match kind {
        "watched" => intervals::watched(trials, successes, error),
        "fixed" => intervals::fixed(trials, successes, error),
        "credible" => intervals::credible(trials, successes, error),
        other => {
            let problem = format!("expected kind 'watched', 'fixed' or 'credible', found '{other}'");
            return Err(PyValueError::new_err(problem));
        }
    };
    interval.map(Interval::from).map_err(question)
}

/// Computes the ranks among n sorted values that enclose the quantile q. They are right simultaneously for all n,
/// except with a probability of at most `error`.
#[pyfunction]
pub(crate) fn quantile_ranks(n: u64, q: f64, error: f64) -> PyResult<Ranks> {
    let ranks = quantile::ranks(n, q, error).map_err(question)?;
    Ok(Ranks { low: ranks.low, high: ranks.high })
}

/// Computes an interval for the quantile q (0.5 is the median) of the values' distribution, which is wrong with a
/// probability of at most `error`.
///
/// The interval is valid simultaneously for all numbers of values. The values need not be sorted.
#[pyfunction]
pub(crate) fn quantile_interval(py: Python<'_>, values: &Bound<'_, PyAny>, q: f64, error: f64) -> PyResult<Interval> {
    let mut sorted = numbers(values)?;
    let interval = compute(py, move || {
        sorted.sort_unstable_by(f64::total_cmp);
        quantile::interval(&sorted, q, error)
    });
    interval?.map(Interval::from).map_err(question)
}
