//! Claims, as keyword arguments.

use millstream_csm::{Claim, Setup};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::question;

/// The claim that the three arguments define.
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
    Ok(if let Some(limit) = limit { setup.limit(limit) } else { setup })
}

/// Adds the keyword arguments that define the claim.
pub(crate) fn write_claim(claim: Claim, arguments: &Bound<'_, PyDict>) -> PyResult<()> {
    match claim {
        Claim::AtLeast(p) => arguments.set_item("at_least", p),
        Claim::AtMost(p) => arguments.set_item("at_most", p),
        Claim::Within { low, high } => {
            arguments.set_item("at_least", low)?;
            arguments.set_item("at_most", high)
        }
        Claim::Between { low, high } => arguments.set_item("between", (low, high)),
    }
}

/// The same arguments as Python source text.
pub(crate) fn claim_words(claim: Claim) -> String {
    match claim {
        Claim::AtLeast(p) => format!("at_least={p:?}"),
        Claim::AtMost(p) => format!("at_most={p:?}"),
        Claim::Within { low, high } => format!("at_least={low:?}, at_most={high:?}"),
        Claim::Between { low, high } => format!("between=({low:?}, {high:?})"),
    }
}
