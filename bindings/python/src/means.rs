//! Deciding a claim about a mean while numbers come in.

use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_csm::means::{self, MeanSetup, Moments};
use millstream_csm::{Progress, report_due};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{claim, claim_words, write_claim};
use crate::arrays::{array_of_numbers, take_each};
use crate::driver::verdict;
use crate::error::question;
use crate::values::{Interval, count, hash, maybe, truth};

/// Watches numbers in [low, high] and reports when they decide a claim about their mean.
///
/// The claim is one of at_least=M, at_most=M, both, or between=(LOW, HIGH), as for `Driver`; the thresholds are in the
/// same unit as the numbers.
///
/// >>> driver = MeanDriver(0, 1, at_most=0.5, error=1e-3)
/// >>> driver.observe_many([0.1, 0.3] * 100) < 200
/// True
/// >>> driver.verdict
/// True
///
/// The argument `state` resumes from the `state` of an earlier driver with the same claim and bounds. Drivers are equal
/// if their claims and their evidence are, and can be copied and pickled. A driver changes, so it has no hash. Several
/// threads may use it concurrently.
#[pyclass(frozen, module = "millstream.csm")]
pub(crate) struct MeanDriver {
    setup: MeanSetup,
    // A thread holds the lock only during a single operation of the driver, which runs no Python code.
    driver: Mutex<means::MeanDriver>,
}

/// The number of values; their sum, scaled to values between 0 and 1; the rounding error of the sum; and the sum of
/// squares.
type State = (u64, f64, f64, f64);

/// How many numbers are observed between two checks for an interrupt.
const NUMBERS_PER_CHECK: usize = 1 << 20;

impl MeanDriver {
    fn lock(&self) -> MutexGuard<'_, means::MeanDriver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        self.lock().progress()
    }

    fn resume(setup: &MeanSetup, (trials, sum, sum_rest, squares): State) -> PyResult<means::MeanDriver> {
        means::MeanDriver::resume(setup, Moments { trials, sum, sum_rest, squares }).map_err(question)
    }

    /// Observes numbers until the claim is decided, and returns how many were used.
    fn observe_slice(&self, numbers: &[f64]) -> Result<usize, millstream_csm::Error> {
        let mut driver = self.lock();
        for (used, &value) in numbers.iter().enumerate() {
            if driver.progress() != Progress::Running {
                return Ok(used);
            }
            driver.observe(value)?;
        }
        Ok(numbers.len())
    }
}

#[pymethods]
impl MeanDriver {
    #[new]
    #[pyo3(signature = (low, high, *, at_least = None, at_most = None, between = None, error = 1e-6, limit = None, state = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn new(
        low: f64,
        high: f64,
        at_least: Option<f64>,
        at_most: Option<f64>,
        between: Option<(f64, f64)>,
        error: f64,
        limit: Option<u64>,
        state: Option<State>,
    ) -> PyResult<Self> {
        let setup = MeanSetup::new(claim(at_least, at_most, between)?, error, low, high);
        let setup = if let Some(limit) = limit { setup.limit(limit) } else { setup };
        let driver = match state {
            Some(state) => Self::resume(&setup, state)?,
            None => means::MeanDriver::new(&setup).map_err(question)?,
        };
        Ok(Self { setup, driver: Mutex::new(driver) })
    }

    /// Records a number, and returns the verdict so far.
    fn observe(&self, value: f64) -> PyResult<Option<bool>> {
        self.lock().observe(value).map_err(question)?;
        Ok(self.verdict())
    }

    /// Records numbers until the claim is decided, and returns how many were used. Further numbers remain in an
    /// iterator.
    fn observe_many(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<usize> {
        let Some(numbers) = array_of_numbers(values)? else {
            let is_wanted = || Ok(self.progress() == Progress::Running);
            return take_each(values.try_iter()?, is_wanted, |item| {
                let value: f64 = item.extract()?;
                self.lock().observe(value).map_err(question)?;
                Ok(())
            });
        };
        let mut used = 0;
        for part in numbers.chunks(NUMBERS_PER_CHECK) {
            let taken = py.detach(|| self.observe_slice(part)).map_err(question)?;
            used += taken;
            if taken < part.len() {
                break;
            }
            py.check_signals()?;
        }
        Ok(used)
    }

    /// Calls `measure()` until the claim is decided or the limit is reached.
    ///
    /// `progress(status)` is called after 1, 10, 20, ... 100, 200, ... numbers and at the end.
    #[pyo3(signature = (measure, progress = None))]
    fn run(&self, measure: &Bound<'_, PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<MeanStatus> {
        while self.progress() == Progress::Running {
            let value = measure.call0()?.extract()?;
            let is_due = {
                let mut driver = self.lock();
                driver.observe(value).map_err(question)?;
                driver.progress() == Progress::Running && report_due(driver.state().trials)
            };
            if let (true, Some(progress)) = (is_due, progress) {
                progress.call1((self.status(),))?;
            }
            measure.py().check_signals()?;
        }
        let status = self.status();
        if let Some(progress) = progress {
            progress.call1((status.clone(),))?;
        }
        Ok(status)
    }

    /// Reports the progress.
    fn status(&self) -> MeanStatus {
        MeanStatus::from(self.lock().status())
    }

    /// True: the claim holds. False: it fails. None: it is undecided so far.
    #[getter]
    fn verdict(&self) -> Option<bool> {
        verdict(self.progress())
    }

    /// The number of values observed.
    #[getter]
    fn trials(&self) -> u64 {
        self.lock().state().trials
    }

    /// The whole evidence, for the argument `state` of a later driver.
    #[getter]
    fn state(&self) -> State {
        let Moments { trials, sum, sum_rest, squares } = self.lock().state();
        (trials, sum, sum_rest, squares)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.setup == other.setup && self.__getstate__() == other.__getstate__()
    }

    fn __copy__(&self) -> Self {
        Self { setup: self.setup, driver: Mutex::new(self.lock().clone()) }
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.__copy__()
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((f64, f64), Bound<'py, PyDict>)> {
        let arguments = PyDict::new(py);
        write_claim(self.setup.claim, &arguments)?;
        arguments.set_item("error", self.setup.error)?;
        arguments.set_item("limit", self.setup.limit)?;
        Ok(((self.setup.low, self.setup.high), arguments))
    }

    fn __getstate__(&self) -> (State, [bool; 4]) {
        let sides = self.lock().proven_sides();
        (self.state(), sides)
    }

    fn __setstate__(&self, state: (State, [bool; 4])) -> PyResult<()> {
        let (state, sides) = state;
        let driver = Self::resume(&self.setup, state)?.with_proven_sides(sides);
        *self.lock() = driver;
        Ok(())
    }

    fn __repr__(&self) -> String {
        let MeanSetup { claim, error, low, high, limit, .. } = self.setup;
        let (trials, sum, sum_rest, squares) = self.state();
        format!(
            "MeanDriver({low:?}, {high:?}, {}, error={error:?}, limit={}, state=({trials}, {sum:?}, {sum_rest:?}, {squares:?}))",
            claim_words(claim),
            count(limit)
        )
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
    /// An interval for the true mean, valid simultaneously at all times.
    interval: Interval,
    /// True: the claim holds. False: it fails. None: it is undecided.
    verdict: Option<bool>,
    /// Whether the limit was reached without a decision.
    at_limit: bool,
}

#[pymethods]
impl MeanStatus {
    #[new]
    fn new(trials: u64, mean: Option<f64>, interval: Interval, verdict: Option<bool>, at_limit: bool) -> Self {
        Self { trials, mean, interval, verdict, at_limit }
    }

    fn __getnewargs__(&self) -> (u64, Option<f64>, Interval, Option<bool>, bool) {
        (self.trials, self.mean, self.interval, self.verdict, self.at_limit)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

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
