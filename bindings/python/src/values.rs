//! Small result types.
//!
//! The constructor of each type takes its members in order; copies and pickles use it. Two values of a type are equal
//! if their members are, and a value has the hash of the tuple of its members.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The hash of a value, from its members.
pub(crate) fn hash<'py>(py: Python<'py>, members: impl IntoPyObject<'py>) -> PyResult<isize> {
    members.into_bound_py_any(py)?.hash()
}

/// Two bounds around an exact value: `lower <= exact value <= upper`.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

#[pymethods]
impl Bounds {
    #[new]
    fn new(lower: f64, upper: f64) -> Self {
        Self { lower, upper }
    }

    fn __getnewargs__(&self) -> (f64, f64) {
        (self.lower, self.upper)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!("Bounds(lower={:?}, upper={:?})", self.lower, self.upper)
    }
}

/// An interval from `low` to `high`, both included.
#[pyclass(frozen, get_all, eq, from_py_object, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

#[pymethods]
impl Interval {
    #[new]
    fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    fn __getnewargs__(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    /// The distance between the ends.
    #[getter]
    fn width(&self) -> f64 {
        self.high - self.low
    }

    fn __contains__(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    pub(crate) fn __repr__(&self) -> String {
        format!("Interval(low={:?}, high={:?})", self.low, self.high)
    }
}

impl From<millstream_csm::Interval> for Interval {
    fn from(interval: millstream_csm::Interval) -> Self {
        Self { low: interval.low, high: interval.high }
    }
}

/// A bound on a quantile of a Beta distribution, and one minus the bound, to full precision.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BetaBound {
    pub(crate) bound: f64,
    pub(crate) complement: f64,
}

#[pymethods]
impl BetaBound {
    #[new]
    fn new(bound: f64, complement: f64) -> Self {
        Self { bound, complement }
    }

    fn __getnewargs__(&self) -> (f64, f64) {
        (self.bound, self.complement)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!("BetaBound(bound={:?}, complement={:?})", self.bound, self.complement)
    }
}

/// Whether to stop, on which side of the threshold the rate is, and the level, which is compared with `log_eps`: minus
/// the logarithm of the evidence.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stop {
    pub(crate) stop: bool,
    pub(crate) direction: Option<&'static str>,
    pub(crate) level: f64,
}

#[pymethods]
impl Stop {
    #[new]
    fn new(stop: bool, direction: Option<&str>, level: f64) -> PyResult<Self> {
        Ok(Self { stop, direction: known(direction, ["above", "below"])?, level })
    }

    fn __getnewargs__(&self) -> (bool, Option<&'static str>, f64) {
        (self.stop, self.direction, self.level)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __bool__(&self) -> bool {
        self.stop
    }

    fn __repr__(&self) -> String {
        let (stop, direction) = (truth(self.stop), text(self.direction));
        format!("Stop(stop={stop}, direction={direction}, level={:?})", self.level)
    }
}

/// Ranks in sorted data, counted from 1; 0 and one more than the number of values mean that there is no bound.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

#[pymethods]
impl Ranks {
    #[new]
    fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    fn __getnewargs__(&self) -> (u64, u64) {
        (self.low, self.high)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!("Ranks(low={}, high={})", self.low, self.high)
    }
}

/// Returns the known word that equals `word`; `None` for `None`.
pub(crate) fn known<const N: usize>(word: Option<&str>, words: [&'static str; N]) -> PyResult<Option<&'static str>> {
    let Some(found) = word else { return Ok(None) };
    let word = words.into_iter().find(|word| *word == found);
    word.map(Some).ok_or_else(|| PyValueError::new_err(format!("expected one of {words:?}, found '{found}'")))
}

/// Formats a truth value as Python does.
pub(crate) fn truth(value: impl Into<Option<bool>>) -> &'static str {
    match value.into() {
        Some(true) => "True",
        Some(false) => "False",
        None => "None",
    }
}

/// Formats an optional string as Python does.
pub(crate) fn text(value: Option<&str>) -> String {
    value.map_or_else(|| "None".to_owned(), |text| format!("'{text}'"))
}

/// Formats an optional count as Python does.
pub(crate) fn count(value: Option<u64>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| value.to_string())
}

/// Formats an optional number as Python does.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("{value:?}"))
}
