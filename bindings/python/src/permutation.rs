//! The permutation test of two samples.

use std::cell::RefCell;
use std::time::Instant;

use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference, median_difference};
use millstream_csm::random::Random;
use millstream_csm::{Driver, Progress};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::{claim, setup};
use crate::arrays::numbers;
use crate::driver::Status;
use crate::error::question;
use crate::long::PATIENCE;

/// Tests whether the difference between two samples is larger than chance explains.
///
/// The function repeatedly divides the values of both samples at random into two new samples of the same sizes. The
/// p-value is the rate of divisions whose statistic is at least as extreme as that of the given samples. The function
/// decides a claim about the p-value, by default that it is less than 1 %, with its own error. A verdict of True means
/// that the difference is real, which is wrong with a probability of at most `at_most + error`.
///
/// `statistic` is "mean" or "median" (that of the first sample minus that of the second, as in scipy's tests), or any
/// function of two lists that returns a float. `tail` is "both" (or "two-sided"), "greater" (the first has the larger
/// values) or "less". "both" counts statistics whose absolute value is at least the observed one; scipy doubles the
/// smaller of the other two tails, which is the same if the statistic is symmetric around zero. The null hypothesis is
/// that the second sample is distributed like shift + scale * first.
///
/// >>> permutation_test(range(100), range(50, 150), "mean", seed=1).verdict
/// True
#[pyfunction]
#[pyo3(signature = (first, second, statistic, *, tail = "both", shift = 0.0, scale = 1.0, at_least = None, at_most = None, between = None, error = 1e-6, method = None, limit = None, seed))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn permutation_test(
    py: Python<'_>,
    first: &Bound<'_, PyAny>,
    second: &Bound<'_, PyAny>,
    statistic: &Bound<'_, PyAny>,
    tail: &str,
    shift: f64,
    scale: f64,
    at_least: Option<f64>,
    at_most: Option<f64>,
    between: Option<(f64, f64)>,
    error: f64,
    method: Option<&str>,
    limit: Option<u64>,
    seed: u64,
) -> PyResult<Status> {
    let tail = match tail {
        "greater" => Tail::Greater,
        "less" => Tail::Less,
        "both" | "two-sided" => Tail::Both,
        other => {
            return Err(PyValueError::new_err(format!("expected tail 'both', 'greater' or 'less', found '{other}'")));
        }
    };
    let at_most = if at_least.is_none() && between.is_none() { at_most.or(Some(0.01)) } else { at_most };
    let setup = setup(claim(at_least, at_most, between)?, error, method, limit)?;
    let mut driver = Driver::new(&setup).map_err(question)?;
    let mut random = Random::seeded(seed);
    let (first, second, null) = (numbers(first)?, numbers(second)?, Null { shift, scale });
    if statistic.is_callable() {
        return with_theirs(&first, &second, statistic, tail, null, driver, &mut random);
    }
    let ours: fn(&[f64], &[f64]) -> f64 = match statistic.extract::<String>().as_deref() {
        Ok("mean") => mean_difference,
        Ok("median") => median_difference,
        _ => {
            let problem = format!("expected statistic 'mean', 'median' or a function, found {statistic}");
            return Err(PyValueError::new_err(problem));
        }
    };
    let mut test = py.detach(|| Permutation::new(&first, &second, ours, tail, null)).map_err(question)?;
    while driver.progress() == Progress::Running {
        py.detach(|| {
            let began = Instant::now();
            while driver.progress() == Progress::Running && began.elapsed() < PATIENCE {
                driver.observe(test.draw(&mut random));
            }
        });
        py.check_signals()?;
    }
    Ok(driver.status().into())
}

/// Decides with a statistic that is a Python function.
fn with_theirs(
    first: &[f64],
    second: &[f64],
    statistic: &Bound<'_, PyAny>,
    tail: Tail,
    null: Null,
    mut driver: Driver,
    random: &mut Random,
) -> PyResult<Status> {
    // The exception that the statistic raised.
    let raised = RefCell::new(None);
    let compute = |first: &[f64], second: &[f64]| {
        let found = statistic.call1((first.to_vec(), second.to_vec())).and_then(|found| found.extract());
        found.unwrap_or_else(|error| {
            raised.borrow_mut().get_or_insert(error);
            f64::NAN
        })
    };
    let test = Permutation::new(first, second, compute, tail, null);
    if let Some(error) = raised.take() {
        return Err(error);
    }
    let mut test = test.map_err(question)?;
    while driver.progress() == Progress::Running {
        driver.observe(test.draw(random));
        if let Some(error) = raised.take() {
            return Err(error);
        }
        statistic.py().check_signals()?;
    }
    Ok(driver.status().into())
}
