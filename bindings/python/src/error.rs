//! The exception for errors of the mathematics.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;

create_exception!(
    millstream.csm,
    CsmError,
    PyValueError,
    "A question without an answer: what was expected, what was found, and what to do."
);

/// Converts an error, for `map_err`.
pub(crate) fn question(error: millstream_csm::Error) -> PyErr {
    CsmError::new_err(error.to_string())
}
