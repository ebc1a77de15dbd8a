//! Claims, as keyword arguments.

use millstream_csm::{Claim, Setup};
use pyo3::PyResult;
use pyo3::exceptions::PyTypeError;

use crate::error::question;

/// The claim that the three arguments make together.
pub(crate) fn claim(at_least: Option<f64>, at_most: Option<f64>, between: Option<(f64, f64)>) -> PyResult<Claim> {
    match (at_least, at_most, between) {
        (Some(p), None, None) => Ok(Claim::AtLeast(p)),
        (None, Some(p), None) => Ok(Claim::AtMost(p)),
        (Some(low), Some(high), None) => Ok(Claim::Within { low, high }),
        (None, None, Some((low, high))) => Ok(Claim::Between { low, high }),
        (None, None, None) => Err(PyTypeError::new_err("expected a claim; give at_least, at_most or between")),
        (.., Some(_)) => {
            Err(PyTypeError::new_err("expected between alone, found at_least or at_most beside it; drop one of them"))
        }
    }
}

/// The setup for a claim.
pub(crate) fn setup(claim: Claim, error: f64, method: Option<&str>, limit: Option<u64>) -> PyResult<Setup> {
    let mut setup = Setup::new(claim, error);
    if let Some(name) = method {
        setup = setup.method(name.parse().map_err(question)?);
    }
    Ok(Setup { limit, ..setup })
}
