//! Deciding a claim about a rate as outcomes come in.

use millstream_csm::{Progress, Verdict, report_due};
use pyo3::prelude::*;

use crate::arguments::{claim, setup};
use crate::arrays::{array_of_outcomes, outcome, take_each};
use crate::error::question;
use crate::values::{Interval, maybe, truth};

/// Watches outcomes and reports when they decide a claim about the rate of success.
///
/// The claim is one of at_least=P (the rate is more than P), at_most=P (less), both (within), or between=(LOW, HIGH):
/// two thresholds, where above LOW True is a right answer, below HIGH False is, and in between both are, so that the
/// claim is always decided.
///
/// Verdict and interval together are wrong with probability at most `error`, however often and whenever the caller
/// looks. `trials` and `successes` resume from earlier evidence.
///
/// >>> driver = Driver(at_least=0.9, error=1e-6)
/// >>> driver.observe_many([True] * 1000) < 300
/// True
/// >>> driver.verdict
/// True
#[pyclass(module = "millstream.csm")]
pub(crate) struct Driver {
    driver: millstream_csm::Driver,
}

#[pymethods]
impl Driver {
    #[new]
    #[pyo3(signature = (*, at_least = None, at_most = None, between = None, error = 1e-6, method = None, limit = None, trials = 0, successes = 0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn new(
        at_least: Option<f64>,
        at_most: Option<f64>,
        between: Option<(f64, f64)>,
        error: f64,
        method: Option<&str>,
        limit: Option<u64>,
        trials: u64,
        successes: u64,
    ) -> PyResult<Self> {
        let setup = setup(claim(at_least, at_most, between)?, error, method, limit)?;
        let driver = millstream_csm::Driver::resume(&setup, trials, successes).map_err(question)?;
        Ok(Self { driver })
    }

    /// Records one outcome; returns the verdict so far.
    fn observe(&mut self, success: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        self.driver.observe(outcome(success)?);
        Ok(self.verdict())
    }

    /// Records outcomes until they decide; returns how many were used. The rest stay in an iterator.
    fn observe_many(slf: &Bound<'_, Self>, outcomes: &Bound<'_, PyAny>) -> PyResult<usize> {
        if let Some(outcomes) = array_of_outcomes(outcomes)? {
            return Ok(slf.borrow_mut().driver.observe_slice(&outcomes).0);
        }
        // The driver is not borrowed while the iterator runs, as the iterator may look at it.
        let is_wanted = || Ok(slf.try_borrow()?.driver.progress() == Progress::Running);
        take_each(outcomes.try_iter()?, is_wanted, |item| {
            let success = outcome(&item)?;
            slf.try_borrow_mut()?.driver.observe(success);
            Ok(())
        })
    }

    /// Records a set of trials that belong together, such as a batch that ran in parallel, and evaluates the evidence
    /// once, at its end.
    fn observe_set(&mut self, trials: u64, successes: u64) -> PyResult<Option<bool>> {
        self.driver.observe_set(trials, successes).map_err(question)?;
        Ok(self.verdict())
    }

    /// Calls `trial()` until its outcomes decide, or the limit is reached.
    ///
    /// `progress(status)` is called after 1, 10, 20, ... 100, 200, ... trials and at the end.
    #[pyo3(signature = (trial, progress = None))]
    fn run(slf: &Bound<'_, Self>, trial: &Bound<'_, PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Status> {
        let py = slf.py();
        loop {
            let status = slf.borrow().driver.progress();
            if status != Progress::Running {
                break;
            }
            // The driver is not borrowed during the call, as the trial may look at it.
            let success = outcome(&trial.call0()?)?;
            let due = {
                let driver = &mut slf.borrow_mut().driver;
                driver.observe(success);
                driver.progress() == Progress::Running && report_due(driver.counts().0)
            };
            if let (true, Some(progress)) = (due, progress) {
                let status = slf.borrow().status();
                progress.call1((status,))?;
            }
            py.check_signals()?;
        }
        let status = slf.borrow().status();
        if let Some(progress) = progress {
            progress.call1((status.clone(),))?;
        }
        Ok(status)
    }

    /// Reports the progress. Takes some 50 microseconds.
    fn status(&self) -> Status {
        Status::from(self.driver.status())
    }

    /// True: the claim holds. False: it fails. None: it is undecided so far.
    #[getter]
    fn verdict(&self) -> Option<bool> {
        verdict(self.driver.progress())
    }

    /// The number of trials observed.
    #[getter]
    fn trials(&self) -> u64 {
        self.driver.counts().0
    }

    /// The number of successes among them.
    #[getter]
    fn successes(&self) -> u64 {
        self.driver.counts().1
    }
}

/// The progress of a `Driver`.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    /// The number of trials observed.
    trials: u64,
    /// The number of successes among them.
    successes: u64,
    /// The share of successes; None without trials.
    rate: Option<f64>,
    /// An interval for the rate of success, valid at all times at once.
    interval: Interval,
    /// The level of the test that is closest to a decision.
    level: f64,
    /// The bound below which the level decides.
    log_eps: f64,
    /// True: the claim holds. False: it fails. None: it is undecided.
    verdict: Option<bool>,
    /// Whether the limit was reached without a decision.
    at_limit: bool,
}

#[pymethods]
impl Status {
    fn __repr__(&self) -> String {
        format!(
            "Status(trials={}, successes={}, rate={}, interval={}, level={:?}, log_eps={:?}, verdict={}, at_limit={})",
            self.trials,
            self.successes,
            maybe(self.rate),
            self.interval.__repr__(),
            self.level,
            self.log_eps,
            truth(self.verdict),
            truth(self.at_limit)
        )
    }
}

impl From<millstream_csm::Status> for Status {
    fn from(status: millstream_csm::Status) -> Self {
        Self {
            trials: status.trials,
            successes: status.successes,
            rate: status.rate,
            interval: status.interval.into(),
            level: status.level,
            log_eps: status.log_eps,
            verdict: verdict(status.progress),
            at_limit: status.progress == Progress::AtLimit,
        }
    }
}

pub(crate) fn verdict(progress: Progress) -> Option<bool> {
    match progress {
        Progress::Decided(verdict) => Some(verdict == Verdict::Holds),
        Progress::Running | Progress::AtLimit => None,
    }
}
