//! Many outcomes or numbers at once: buffers (numpy arrays, `array.array`, memory views) and any other iterable.

use std::ffi::CStr;

use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// The numbers of an array or iterable, in order.
pub(crate) fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if let Some(numbers) = from_buffer(values)? {
        return Ok(numbers);
    }
    values.try_iter()?.map(|value| value?.extract()).collect()
}

/// The outcomes of an array or iterable: booleans, or numbers that are 0 or 1.
pub(crate) fn outcomes(values: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    const BOOLEANS: &CStr = c"?";
    if let Ok(buffer) = PyUntypedBuffer::get(values)
        && buffer.format() == BOOLEANS
        && buffer.is_c_contiguous()
        && buffer.dimensions() == 1
    {
        // Elements of one byte each, 0 or 1.
        let bytes = PyMemoryView::from(values)?.call_method1("cast", ("B",))?;
        return Ok(PyBuffer::<u8>::get(&bytes)?.to_vec(values.py())?.into_iter().map(|byte| byte != 0).collect());
    }
    if let Some(numbers) = from_buffer(values)? {
        return numbers.into_iter().map(zero_or_one).collect();
    }
    values.try_iter()?.map(|value| outcome(&value?)).collect()
}

/// One outcome.
pub(crate) fn outcome(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(outcome) = value.extract::<bool>() {
        return Ok(outcome);
    }
    match value.extract::<f64>() {
        Ok(number) => zero_or_one(number),
        Err(_) => Err(PyTypeError::new_err(format!("an outcome is a bool, or a number that is 0 or 1, not {value}"))),
    }
}

fn zero_or_one(number: f64) -> PyResult<bool> {
    if number == 0.0 || number == 1.0 {
        Ok(number == 1.0)
    } else {
        let problem = format!(
            "an outcome is a bool, or a number that is 0 or 1, not {number}; compare numbers with a limit first"
        );
        Err(PyValueError::new_err(problem))
    }
}

/// The numbers of a one-dimensional buffer; `None` if it is no buffer of numbers.
fn from_buffer(values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<f64>>> {
    let Ok(buffer) = PyUntypedBuffer::get(values) else { return Ok(None) };
    if buffer.dimensions() != 1 {
        let problem = format!("expected an array of one dimension, found {}", buffer.dimensions());
        return Err(PyValueError::new_err(problem));
    }
    let py = values.py();
    let found = read::<f64>(&buffer, py)
        .or_else(|| read::<f32>(&buffer, py))
        .or_else(|| read_whole::<i64>(&buffer, py))
        .or_else(|| read_whole::<u64>(&buffer, py))
        .or_else(|| read::<i32>(&buffer, py))
        .or_else(|| read::<u32>(&buffer, py))
        .or_else(|| read::<i16>(&buffer, py))
        .or_else(|| read::<u16>(&buffer, py))
        .or_else(|| read::<i8>(&buffer, py))
        .or_else(|| read::<u8>(&buffer, py));
    found.transpose()
}

/// The buffer's elements, if they are of this type.
fn read<T: Element + Into<f64>>(buffer: &PyUntypedBuffer, py: Python<'_>) -> Option<PyResult<Vec<f64>>> {
    let typed = buffer.as_typed::<T>().ok()?;
    Some(typed.to_vec(py).map(|values| values.into_iter().map(Into::into).collect()))
}

/// As [`read`], for integers that a double may not hold exactly.
fn read_whole<T: Element + Copy + std::fmt::Display>(
    buffer: &PyUntypedBuffer,
    py: Python<'_>,
) -> Option<PyResult<Vec<f64>>>
where
    i128: From<T>,
{
    let typed = buffer.as_typed::<T>().ok()?;
    let exact = |value: T| {
        let number = i128::from(value) as f64;
        if number as i128 == i128::from(value) {
            Ok(number)
        } else {
            Err(PyValueError::new_err(format!("{value} cannot be held exactly by a float")))
        }
    };
    Some(typed.to_vec(py).and_then(|values| values.into_iter().map(exact).collect()))
}
