//! Deciding a claim about a rate as outcomes come in.

use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_csm::{Direction, Progress, Setup, Verdict, report_due};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{claim, claim_words, setup, write_claim};
use crate::arrays::{array_of_outcomes, outcome, take_each};
use crate::error::question;
use crate::values::{Interval, count, hash, maybe, truth};

/// Watches outcomes and reports when they decide a claim about the rate of success.
///
/// The claim is one of at_least=P (the rate is more than P), at_most=P (less than P), both (within the two), or
/// between=(LOW, HIGH). For the last, True is right if the rate is above LOW, and False is right if it is below HIGH.
/// In between, both are right, so this claim is always decided.
///
/// The probability that the verdict or any interval is wrong is at most `error`, whenever and however often the caller
/// checks. The arguments `trials` and `successes` resume from earlier evidence.
///
/// >>> driver = Driver(at_least=0.9, error=1e-6)
/// >>> driver.observe_many([True] * 1000) < 300
/// True
/// >>> driver.verdict
/// True
///
/// Drivers are equal if their claims and their evidence are, and can be copied and pickled. A driver changes, so it has
/// no hash. Several threads may use it concurrently.
#[pyclass(frozen, module = "millstream.csm")]
pub(crate) struct Driver {
    setup: Setup,
    // A thread holds the lock only during a single operation of the driver, which runs no Python code.
    driver: Mutex<millstream_csm::Driver>,
}

/// How many outcomes are observed between two checks for an interrupt.
const OUTCOMES_PER_CHECK: usize = 1 << 22;

impl Driver {
    fn lock(&self) -> MutexGuard<'_, millstream_csm::Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        self.lock().progress()
    }

    fn state(&self) -> State {
        let driver = self.lock();
        let (trials, successes) = driver.counts();
        (trials, successes, driver.proven_sides().map(side))
    }
}

/// Trials, successes, and the proven sides of the thresholds.
type State = (u64, u64, [Option<bool>; 2]);

/// Whether a proven side is the upper one.
fn side(direction: Option<Direction>) -> Option<bool> {
    direction.map(|direction| direction == Direction::Above)
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
        Ok(Self { setup, driver: Mutex::new(driver) })
    }

    /// Records an outcome, and returns the verdict so far.
    fn observe(&self, success: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        let success = outcome(success)?;
        self.lock().observe(success);
        Ok(self.verdict())
    }

    /// Records outcomes until the claim is decided, and returns how many were used. Further outcomes remain in an
    /// iterator.
    fn observe_many(&self, py: Python<'_>, outcomes: &Bound<'_, PyAny>) -> PyResult<usize> {
        let Some(outcomes) = array_of_outcomes(outcomes)? else {
            let is_wanted = || Ok(self.progress() == Progress::Running);
            return take_each(outcomes.try_iter()?, is_wanted, |item| {
                let success = outcome(&item)?;
                self.lock().observe(success);
                Ok(())
            });
        };
        let mut used = 0;
        for part in outcomes.chunks(OUTCOMES_PER_CHECK) {
            let taken = py.detach(|| self.lock().observe_slice(part).0);
            used += taken;
            if taken < part.len() {
                break;
            }
            py.check_signals()?;
        }
        Ok(used)
    }

    /// Records a set of trials that belong together, such as a batch that ran in parallel. Evaluates the evidence only
    /// once, at the end of the set.
    fn observe_set(&self, trials: u64, successes: u64) -> PyResult<Option<bool>> {
        self.lock().observe_set(trials, successes).map_err(question)?;
        Ok(self.verdict())
    }

    /// Calls `trial()` until the claim is decided or the limit is reached.
    ///
    /// `progress(status)` is called after 1, 10, 20, ... 100, 200, ... trials and at the end.
    #[pyo3(signature = (trial, progress = None))]
    fn run(&self, trial: &Bound<'_, PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Status> {
        while self.progress() == Progress::Running {
            let success = outcome(&trial.call0()?)?;
            let is_due = {
                let mut driver = self.lock();
                driver.observe(success);
                driver.progress() == Progress::Running && report_due(driver.counts().0)
            };
            if let (true, Some(progress)) = (is_due, progress) {
                progress.call1((self.status(),))?;
            }
            trial.py().check_signals()?;
        }
        let status = self.status();
        if let Some(progress) = progress {
            progress.call1((status.clone(),))?;
        }
        Ok(status)
    }

    /// Reports the progress. Takes about 50 microseconds.
    fn status(&self) -> Status {
        Status::from(self.lock().status())
    }

    /// True: the claim holds. False: it fails. None: it is undecided so far.
    #[getter]
    fn verdict(&self) -> Option<bool> {
        verdict(self.progress())
    }

    /// The number of trials observed.
    #[getter]
    fn trials(&self) -> u64 {
        self.lock().counts().0
    }

    /// The number of successes among them.
    #[getter]
    fn successes(&self) -> u64 {
        self.lock().counts().1
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.setup == other.setup && self.state() == other.state() && self.verdict() == other.verdict()
    }

    fn __copy__(&self) -> Self {
        Self { setup: self.setup, driver: Mutex::new(self.lock().clone()) }
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.__copy__()
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let arguments = PyDict::new(py);
        write_claim(self.setup.claim, &arguments)?;
        arguments.set_item("error", self.setup.error)?;
        arguments.set_item("method", self.setup.method.to_string())?;
        arguments.set_item("limit", self.setup.limit)?;
        Ok((PyTuple::empty(py), arguments))
    }

    fn __getstate__(&self) -> State {
        self.state()
    }

    fn __setstate__(&self, state: State) -> PyResult<()> {
        let (trials, successes, sides) = state;
        let sides = sides.map(|side| side.map(|above| if above { Direction::Above } else { Direction::Below }));
        let driver = millstream_csm::Driver::resume(&self.setup, trials, successes).map_err(question)?;
        *self.lock() = driver.with_proven_sides(sides);
        Ok(())
    }

    fn __repr__(&self) -> String {
        let (trials, successes, _) = self.state();
        format!(
            "Driver({}, error={:?}, method='{}', limit={}, trials={trials}, successes={successes})",
            claim_words(self.setup.claim),
            self.setup.error,
            self.setup.method,
            count(self.setup.limit)
        )
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
    /// An interval for the rate of success, valid simultaneously at all times.
    interval: Interval,
    /// The level of the test that is closest to a decision.
    level: f64,
    /// The claim is decided when the level is below this bound.
    log_eps: f64,
    /// True: the claim holds. False: it fails. None: it is undecided.
    verdict: Option<bool>,
    /// Whether the limit was reached without a decision.
    at_limit: bool,
}

#[pymethods]
impl Status {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the members")]
    fn new(
        trials: u64,
        successes: u64,
        rate: Option<f64>,
        interval: Interval,
        level: f64,
        log_eps: f64,
        verdict: Option<bool>,
        at_limit: bool,
    ) -> Self {
        Self { trials, successes, rate, interval, level, log_eps, verdict, at_limit }
    }

    fn __getnewargs__(&self) -> (u64, u64, Option<f64>, Interval, f64, f64, Option<bool>, bool) {
        let Self { trials, successes, rate, interval, level, log_eps, verdict, at_limit } = *self;
        (trials, successes, rate, interval, level, log_eps, verdict, at_limit)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

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
