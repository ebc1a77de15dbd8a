//! `millstream._native`: the compiled half of the Python package.
//!
//! This crate converts arguments, results and exceptions; [`millstream_csm`], [`millstream_history`] and
//! [`millstream_slab`] do the work. Users import the modules `millstream.csm`, `millstream.history` and
//! `millstream.slab`, from `python/millstream`. Their documentation consists of the docstrings in these modules and in
//! this crate, the types in the `.pyi` files, and `README.md`.

mod arguments;
mod arrays;
mod compare;
mod driver;
mod error;
mod history;
mod long;
mod means;
mod numbers;
mod permutation;
mod power;
mod slab;
mod values;

/// The compiled half of millstream.csm, millstream.history and millstream.slab.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::driver::{Driver, Status};
    #[pymodule_export]
    use crate::error::CsmError;
    #[pymodule_export]
    use crate::history::{History, HistoryError, Verdict, check, models};
    #[pymodule_export]
    use crate::means::{MeanDriver, MeanStatus};
    #[pymodule_export]
    use crate::numbers::{beta_bound, interval, log_choose, quantile_interval, quantile_ranks, stop};
    #[pymodule_export]
    use crate::permutation::permutation_test;
    #[pymodule_export]
    use crate::power::{Power, power};
    #[pymodule_export]
    use crate::slab::{Entry, Handle, Private, Slab, SlabError};
    #[pymodule_export]
    use crate::values::{BetaBound, Bounds, Interval, Ranks, Stop};

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.setattr("__version__", env!("CARGO_PKG_VERSION"))
    }
}
