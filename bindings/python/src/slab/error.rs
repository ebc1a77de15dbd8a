//! The exceptions of slabs.

use millstream_slab::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    millstream.slab,
    SlabError,
    PyException,
    "A slab that cannot be opened, is full, or does not have the object: what was expected, and what was found."
);

/// Converts an error to an exception, for `map_err`.
pub(super) fn refused(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::System { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, message)),
            None => PyOSError::new_err(message),
        },
        Error::Exists { .. } => PyFileExistsError::new_err(message),
        Error::OutOfRange { .. } => PyValueError::new_err(message),
        _ => SlabError::new_err(message),
    }
}
