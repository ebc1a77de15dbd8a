//! `millstream.csm`: confidence sequences, exact tests and stopping rules for Python.
//!
//! This crate handles arguments, results and exceptions; the mathematics is in [`millstream_csm`]. The docs for users
//! are the docstrings here, `python/millstream/csm.pyi` (the types) and `README.md`.

mod arguments;
mod arrays;
mod compare;
mod driver;
mod error;
mod long;
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
/// - to decide which of two samples, or of two programs, is smaller: `compare`
/// - to know whether two samples differ, by any statistic: `permutation_test`
/// - to show where a rate or a quantile lies: `interval`, `quantile_interval`
/// - to call the low-level functions: `log_choose`, `beta_bound`, `stop`
///
/// Functions of many outcomes or numbers accept numpy arrays, `array.array`, lists and all other iterables.
#[pyo3::pymodule]
mod csm {
    use pyo3::prelude::*;

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

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.setattr("__version__", env!("CARGO_PKG_VERSION"))
    }
}
