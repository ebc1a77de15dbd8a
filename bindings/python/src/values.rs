//! Small result types.

use pyo3::prelude::*;

/// Two bounds around an exact value: `lower <= exact value <= upper`.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

#[pymethods]
impl Bounds {
    fn __repr__(&self) -> String {
        format!("Bounds(lower={:?}, upper={:?})", self.lower, self.upper)
    }
}

/// An interval from `low` to `high`, both included.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

#[pymethods]
impl Interval {
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

/// A bound on a quantile of a Beta distribution, and one minus the bound with all its digits.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BetaBound {
    pub(crate) bound: f64,
    pub(crate) complement: f64,
}

#[pymethods]
impl BetaBound {
    fn __repr__(&self) -> String {
        format!("BetaBound(bound={:?}, complement={:?})", self.bound, self.complement)
    }
}

/// Whether to stop observing, on which side of the threshold the rate lies, and the logarithm of the evidence's
/// weight, which is compared with `log_eps`.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stop {
    pub(crate) stop: bool,
    pub(crate) direction: Option<&'static str>,
    pub(crate) level: f64,
}

#[pymethods]
impl Stop {
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
    fn __repr__(&self) -> String {
        format!("Ranks(low={}, high={})", self.low, self.high)
    }
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

/// Formats an optional number as Python does.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("{value:?}"))
}
