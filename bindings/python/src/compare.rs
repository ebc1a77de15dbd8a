//! Comparison of two samples.

use millstream_csm::compare::{self as comparing, Paired, Smaller, samples};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::numbers;
use crate::error::question;
use crate::long::compute;
use crate::values::{Interval, hash, known, maybe, text};

/// Which of two samples is smaller, and the ratio between them.
#[pyclass(frozen, get_all, eq, module = "millstream.csm")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// The number of pairs examined, or the size of the smaller sample.
    pairs: u64,
    /// "first", "second", or None if undecided.
    smaller: Option<&'static str>,
    /// The median of the second sample divided by that of the first (paired: the median of the ratios); None without
    /// data.
    ratio: Option<f64>,
    /// An interval for the true ratio.
    interval: Interval,
    /// The largest probability that the interval is wrong.
    error: f64,
}

#[pymethods]
impl Comparison {
    #[new]
    fn new(pairs: u64, smaller: Option<&str>, ratio: Option<f64>, interval: Interval, error: f64) -> PyResult<Self> {
        Ok(Self { pairs, smaller: known(smaller, ["first", "second"])?, ratio, interval, error })
    }

    fn __getnewargs__(&self) -> (u64, Option<&'static str>, Option<f64>, Interval, f64) {
        (self.pairs, self.smaller, self.ratio, self.interval, self.error)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!(
            "Comparison(pairs={}, smaller={}, ratio={}, interval={}, error={:?})",
            self.pairs,
            text(self.smaller),
            maybe(self.ratio),
            self.interval.__repr__(),
            self.error
        )
    }
}

/// Decides which of two samples of positive numbers is smaller, by their medians.
///
/// With paired=True, the n-th numbers of both samples form a pair, as with programs that take turns. The answer is then
/// about the median of the pairs' ratios, and numbers after the decision are ignored.
#[pyfunction]
#[pyo3(signature = (first, second, *, error = 1e-6, paired = false))]
pub(crate) fn compare(
    py: Python<'_>,
    first: &Bound<'_, PyAny>,
    second: &Bound<'_, PyAny>,
    error: f64,
    paired: bool,
) -> PyResult<Comparison> {
    let (first, second) = (numbers(first)?, numbers(second)?);
    if paired && first.len() != second.len() {
        let problem = format!("paired samples must have the same size, found {} and {}", first.len(), second.len());
        return Err(PyValueError::new_err(problem));
    }
    let decide = move || if paired { pairs(&first, &second, error) } else { samples(&first, &second, error) };
    let found = compute(py, decide)?.map_err(question)?;
    let smaller = found.smaller.map(|smaller| match smaller {
        Smaller::First => "first",
        Smaller::Second => "second",
    });
    Ok(Comparison {
        pairs: found.pairs,
        smaller,
        ratio: found.ratio,
        interval: found.interval.into(),
        error: found.error,
    })
}

/// Compares the n-th numbers of both samples until they decide.
fn pairs(first: &[f64], second: &[f64], error: f64) -> Result<comparing::Comparison, millstream_csm::Error> {
    let mut pairs = Paired::new(error, 1.0)?;
    for (&first, &second) in first.iter().zip(second) {
        if pairs.observe(first, second)?.is_some() {
            break;
        }
    }
    pairs.status()
}
