//! `millstream.csm`: confidence sequences, exact tests and stopping rules for Python.
//!
//! A face: arguments, results and exceptions. The mathematics is in [`millstream_csm`]. What a user reads is in the
//! docstrings here, in `python/millstream/csm.pyi` (the types) and in `README.md`.

mod arguments;
mod arrays;
mod bins;
mod compare;
mod driver;
mod error;
mod means;
mod numbers;
mod permutation;
mod power;
mod values;

/// Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side.
///
/// Which one do I want?
///
/// - to decide whether a rate of successes is above or below a threshold as outcomes come in: `Driver`
/// - to decide about the mean of bounded numbers: `MeanDriver`
/// - to know beforehand how many observations that takes: `power`
/// - to say which of two samples, or of two programs, is smaller: `compare`
/// - to know whether two samples differ, by any statistic: `permutation_test`
/// - to show where a rate or a quantile lies: `interval`, `quantile_interval`
/// - the bare functions: `log_choose`, `beta_bound`, `stop`
///
/// Wherever many outcomes or numbers are taken, numpy arrays, `array.array`, lists and other iterables are accepted.
#[pyo3::pymodule]
mod csm {
    #[pymodule_export]
    use crate::bins::Bins;
    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::driver::{Driver, Status};
    #[pymodule_export]
    use crate::error::CsmError;
    #[pymodule_export]
    use crate::means::{MeanDriver, MeanStatus};
    #[pymodule_export]
    use crate::numbers::{beta_bound, interval, log_choose, quantile_interval, quantile_ranks, stop};
    #[pymodule_export]
    use crate::permutation::permutation_test;
    #[pymodule_export]
    use crate::power::{Power, power};
    #[pymodule_export]
    use crate::values::{BetaBound, Bounds, Interval, Ranks, Stop};
}
