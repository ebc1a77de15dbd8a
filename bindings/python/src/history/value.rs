//! Arguments and results, as values of a history.

use millstream_history::{Datum, Value, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

/// The maximum depth of nested lists.
const MAX_DEPTH: usize = 64;

/// Converts a Python value.
pub(super) fn value(values: &mut Values, item: &Bound<'_, PyAny>) -> PyResult<Value> {
    enter(values, item, 0)
}

fn enter(values: &mut Values, item: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if item.is_none() {
        return Ok(Value::NULL);
    }
    // This also accepts numpy's booleans.
    if let Ok(truth) = item.extract::<bool>() {
        return Ok(truth.into());
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(values.text(text.to_str()?));
    }
    if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        if depth == MAX_DEPTH {
            return Err(PyValueError::new_err(format!("a value has more than {MAX_DEPTH} lists inside each other")));
        }
        let mut list = Vec::new();
        for item in item.try_iter()? {
            list.push(enter(values, &item?, depth + 1)?);
        }
        return Ok(values.list(&list));
    }
    match item.extract::<i128>() {
        Ok(int) => Ok(values.int(int)),
        Err(_) if item.is_instance_of::<PyInt>() => {
            Err(PyOverflowError::new_err(format!("an int must have at most 127 bits, found {}", shown(item))))
        }
        Err(_) => Err(PyTypeError::new_err(format!(
            "a value must be None, a bool, an int, a str, or a list or tuple of these, found {}",
            shown(item)
        ))),
    }
}

/// Converts a value to Python. Lists become tuples, which have a hash.
pub(super) fn given<'py>(py: Python<'py>, values: &Values, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match values.get(value) {
        Datum::Null => Ok(py.None().into_bound(py)),
        Datum::Bool(truth) => truth.into_bound_py_any(py),
        Datum::Int(int) => int.into_bound_py_any(py),
        Datum::Text(text) => text.into_bound_py_any(py),
        Datum::List(list) => {
            let list: PyResult<Vec<_>> = list.iter().map(|&item| given(py, values, item)).collect();
            Ok(PyTuple::new(py, list?)?.into_any())
        }
    }
}

/// Shows an object and its type, for a message.
pub(super) fn shown(item: &Bound<'_, PyAny>) -> String {
    const MAX_SHOWN: usize = 100;
    let text = item.repr().map_or_else(|_| "an object".to_owned(), |text| text.to_string());
    let text = match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    item.get_type().name().map_or_else(|_| text.clone(), |name| format!("{text} ({name})"))
}
