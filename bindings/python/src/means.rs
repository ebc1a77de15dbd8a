//! Deciding a claim about a mean as numbers come in.

use millstream_csm::means::{self, MeanSetup};
use millstream_csm::{Progress, report_due};
use pyo3::prelude::*;

use crate::arguments::claim;
use crate::arrays::{array_of_numbers, take_each};
use crate::driver::verdict;
use crate::error::question;
use crate::values::{Interval, maybe, truth};

/// Watches numbers in [low, high] and reports when they decide a claim about their mean.
///
/// The claim is one of at_least=M, at_most=M, both, or between=(LOW, HIGH), as for `Driver`; the thresholds have the
/// unit of the numbers.
///
/// >>> driver = MeanDriver(0, 1, at_most=0.5, error=1e-3)
/// >>> driver.observe_many([0.1, 0.3] * 100) < 200
/// True
/// >>> driver.verdict
/// True
#[pyclass(module = "millstream.csm")]
pub(crate) struct MeanDriver {
    driver: means::MeanDriver,
}

#[pymethods]
impl MeanDriver {
    #[new]
    #[pyo3(signature = (low, high, *, at_least = None, at_most = None, between = None, error = 1e-6, limit = None))]
    fn new(
        low: f64,
        high: f64,
        at_least: Option<f64>,
        at_most: Option<f64>,
        between: Option<(f64, f64)>,
        error: f64,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        let setup = MeanSetup { claim: claim(at_least, at_most, between)?, error, low, high, limit };
        Ok(Self { driver: means::MeanDriver::new(&setup).map_err(question)? })
    }

    /// Records one number; returns the verdict so far.
    fn observe(&mut self, value: f64) -> PyResult<Option<bool>> {
        self.driver.observe(value).map_err(question)?;
        Ok(self.verdict())
    }

    /// Records numbers until they decide; returns how many were used. The rest stay in an iterator.
    fn observe_many(slf: &Bound<'_, Self>, values: &Bound<'_, PyAny>) -> PyResult<usize> {
        let is_wanted = || Ok(slf.try_borrow()?.driver.progress() == Progress::Running);
        let Some(numbers) = array_of_numbers(values)? else {
            // The driver is not borrowed while the iterator runs, as the iterator may look at it.
            return take_each(values.try_iter()?, is_wanted, |item| {
                let value: f64 = item.extract()?;
                slf.try_borrow_mut()?.driver.observe(value).map_err(question)?;
                Ok(())
            });
        };
        for (used, &value) in numbers.iter().enumerate() {
            if !is_wanted()? {
                return Ok(used);
            }
            slf.borrow_mut().driver.observe(value).map_err(question)?;
        }
        Ok(numbers.len())
    }

    /// Calls `measure()` until its numbers decide, or the limit is reached.
    ///
    /// `progress(status)` is called after 1, 10, 20, ... 100, 200, ... numbers and at the end.
    #[pyo3(signature = (measure, progress = None))]
    fn run(
        slf: &Bound<'_, Self>,
        measure: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<MeanStatus> {
        let mut trials = slf.borrow().driver.state().trials;
        while slf.borrow().driver.progress() == Progress::Running {
            // The driver is not borrowed during the call, which may look at it.
            let value = measure.call0()?.extract()?;
            slf.borrow_mut().observe(value)?;
            trials += 1;
            if let Some(progress) = progress
                && report_due(trials)
                && slf.borrow().driver.progress() == Progress::Running
            {
                progress.call1((slf.borrow().status(),))?;
            }
            slf.py().check_signals()?;
        }
        let status = slf.borrow().status();
        if let Some(progress) = progress {
            progress.call1((status.clone(),))?;
        }
        Ok(status)
    }

    /// Reports the progress.
    fn status(&self) -> MeanStatus {
        MeanStatus::from(self.driver.status())
    }

    /// True: the claim holds. False: it fails. None: it is undecided so far.
    #[getter]
    fn verdict(&self) -> Option<bool> {
        verdict(self.driver.progress())
    }
}

/// The progress of a `MeanDriver`.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MeanStatus {
    /// The number of values observed.
    trials: u64,
    /// The mean of the values; None without values.
    mean: Option<f64>,
    /// An interval for the true mean, valid at all times at once.
    interval: Interval,
    /// True: the claim holds. False: it fails. None: it is undecided.
    verdict: Option<bool>,
    /// Whether the limit was reached without a decision.
    at_limit: bool,
}

#[pymethods]
impl MeanStatus {
    fn __repr__(&self) -> String {
        format!(
            "MeanStatus(trials={}, mean={}, interval={}, verdict={}, at_limit={})",
            self.trials,
            maybe(self.mean),
            self.interval.__repr__(),
            truth(self.verdict),
            truth(self.at_limit)
        )
    }
}

impl From<means::MeanStatus> for MeanStatus {
    fn from(status: means::MeanStatus) -> Self {
        Self {
            trials: status.trials,
            mean: status.mean,
            interval: status.interval.into(),
            verdict: verdict(status.progress),
            at_limit: status.progress == Progress::AtLimit,
        }
    }
}
