//! `millstream.history`: whether a history is linearizable.

mod log;
mod operations;
mod value;
mod verdict;

pub(crate) use log::History;
pub(crate) use verdict::Verdict;

use std::sync::Arc;
use std::time::Duration;

use millstream_history::{Kind, Model, Op, Options};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::long::compute_or_stop;

create_exception!(
    millstream.history,
    HistoryError,
    PyValueError,
    "A log that is not a history, or a history that the model does not fit: what is wrong, and where."
);

/// Converts an error to an exception, for `map_err`.
fn refused(error: impl std::fmt::Display) -> PyErr {
    HistoryError::new_err(error.to_string())
}

/// Decides whether operations are linearizable: whether the model permits an order in which each operation takes effect
/// at one moment between its start and its end.
///
/// `operations` is a `History`, or an iterable of `Op`s (or tuples of their members). `model` is a name in MODELS,
/// followed by a colon and a capacity or an initial value, if the model has one: "queue", "queue:8", "register:0",
/// "key-value".
///
/// For most models, histories of distinct values take near-linear time. All others are searched, in exponential time in
/// the worst case. If `seconds` have passed (None: no limit) or `memory_bytes` are used, the verdict is unknown.
/// explain=False omits the search for a small failing part. Other threads run during the check, and Ctrl-C ends it.
///
/// >>> verdict = check([(0, "write", 1, None, 0, 10), (1, "read", None, 0, 12, 15)], "register:0")
/// >>> verdict.linearizable, verdict.failing
/// (False, (0, 1))
#[pyfunction]
#[pyo3(signature = (operations, model, *, seconds = None, memory_bytes = 1_073_741_824, explain = true))]
pub(crate) fn check(
    py: Python<'_>,
    operations: &Bound<'_, PyAny>,
    model: &str,
    seconds: Option<f64>,
    memory_bytes: u64,
    explain: bool,
) -> PyResult<Verdict> {
    let model: Model = model.parse().map_err(refused)?;
    let time = seconds.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
        PyValueError::new_err(format!("expected seconds of 0 or more, or None, found {}", seconds.unwrap_or_default()))
    })?;
    let (history, rows) = match operations.cast::<History>() {
        Ok(history) => (Arc::clone(&history.get().history), None),
        Err(_) if operations.is_instance_of::<PyString>() => {
            let problem = "expected operations, found a str; History.parse reads a log, History.load a file";
            return Err(pyo3::exceptions::PyTypeError::new_err(problem));
        }
        Err(_) => {
            let (history, rows) = operations::read(operations)?;
            (Arc::new(history), Some(rows))
        }
    };
    let checked = Arc::clone(&history);
    let decide = move |stop| {
        let options = Options { time, memory_bytes, explain, stop: Some(stop), ..Options::default() };
        millstream_history::check(&checked, &model, &options)
    };
    let verdict = compute_or_stop(py, decide)?.map_err(|error| {
        let place = rows.as_ref().map_or(error.row, |rows| rows[error.row as usize]);
        HistoryError::new_err(format!("operation {place}: {}", error.misuse))
    })?;
    Ok(Verdict::of(&verdict, &history, rows.as_deref(), model))
}

/// The objects that can be checked, and the names of their operations.
#[pyfunction]
pub(crate) fn models(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let models = PyDict::new(py);
    let history = millstream_history::History::default();
    for kind in Kind::ALL {
        let names = kind.operations().iter().map(|&op: &Op| history.op_name(op));
        models.set_item(kind.name(), pyo3::types::PyTuple::new(py, names.collect::<Vec<_>>())?)?;
    }
    Ok(models)
}
