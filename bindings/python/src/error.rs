//! Errors of the mathematics as an exception.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;

create_exception!(
    millstream.csm,
    CsmError,
    PyValueError,
    "A question that has no answer: what was expected, what was found, and what to do."
);

/// For `map_err`.
pub(crate) fn question(error: millstream_csm::Error) -> PyErr {
    CsmError::new_err(error.to_string())
}
