//! Many outcomes or numbers at once: buffers (numpy arrays, `array.array`, memory views) and all other iterables.

use std::ffi::CStr;

use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyMemoryView};

/// Collects the numbers of an array or iterable, in order.
pub(crate) fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if let Some(numbers) = array_of_numbers(values)? {
        return Ok(numbers);
    }
    let mut numbers = Vec::new();
    let take = |value: Bound<'_, PyAny>| {
        numbers.push(value.extract()?);
        Ok(())
    };
    take_each(values.try_iter()?, || Ok(true), take)?;
    Ok(numbers)
}

/// How many items an iterator yields between two checks for an interrupt.
const ITEMS_PER_CHECK: usize = 1024;

/// Takes items from an iterator, one by one, while `is_wanted` is true, and returns how many were taken. Further items
/// remain in the iterator.
pub(crate) fn take_each<'py>(
    mut items: Bound<'py, PyIterator>,
    mut is_wanted: impl FnMut() -> PyResult<bool>,
    mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<usize> {
    let py = items.py();
    let mut taken = 0;
    while is_wanted()? {
        let Some(item) = items.next() else { break };
        take(item?)?;
        taken += 1;
        if taken % ITEMS_PER_CHECK == 0 {
            py.check_signals()?;
            // Release the GIL for a moment: an iterator written in C runs no bytecode, so the interpreter would not
            // switch threads.
            py.detach(|| ());
        }
    }
    Ok(taken)
}

/// Collects the outcomes of an array of booleans or of numbers that are 0 or 1; returns `None` if the value is not an
/// array.
pub(crate) fn array_of_outcomes(values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<bool>>> {
    const BOOLEANS: &CStr = c"?";
    refuse_mask(values)?;
    if let Ok(buffer) = PyUntypedBuffer::get(values)
        && buffer.format() == BOOLEANS
        && buffer.is_c_contiguous()
        && buffer.dimensions() == 1
    {
        // Each element is a byte, 0 or 1.
        let bytes = PyMemoryView::from(values)?.call_method1("cast", ("B",))?;
        return Ok(Some(PyBuffer::<u8>::get(&bytes)?.to_vec(values.py())?.into_iter().map(|byte| byte != 0).collect()));
    }
    match array_of_numbers(values)? {
        Some(numbers) => numbers.into_iter().map(zero_or_one).collect::<PyResult<_>>().map(Some),
        None => Ok(None),
    }
}

/// Converts one outcome.
pub(crate) fn outcome(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(outcome) = value.extract::<bool>() {
        return Ok(outcome);
    }
    match value.extract::<f64>() {
        Ok(number) => zero_or_one(number),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected an outcome (a bool, or a number that is 0 or 1), found {value}"
        ))),
    }
}

fn zero_or_one(number: f64) -> PyResult<bool> {
    if number == 0.0 || number == 1.0 {
        Ok(number == 1.0)
    } else {
        let problem = format!(
            "expected an outcome (a bool, or a number that is 0 or 1), found {number}; compare numbers with a limit first"
        );
        Err(PyValueError::new_err(problem))
    }
}

/// Rejects a masked array with a masked element, because neither its buffer nor its iterator shows the mask reliably.
fn refuse_mask(values: &Bound<'_, PyAny>) -> PyResult<()> {
    let (Ok(mask), true) = (values.getattr("mask"), values.hasattr("compressed")?) else { return Ok(()) };
    if mask.call_method0("any")?.is_truthy()? {
        let problem = "expected an array without masked elements; values.compressed() leaves them out";
        return Err(PyValueError::new_err(problem));
    }
    Ok(())
}

/// Collects the numbers of a one-dimensional array; returns `None` if the value is not an array of numbers in this
/// machine's byte order. (The binding library ignores the byte order of a buffer.)
pub(crate) fn array_of_numbers(values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<f64>>> {
    refuse_mask(values)?;
    let Ok(buffer) = PyUntypedBuffer::get(values) else { return Ok(None) };
    if buffer.dimensions() != 1 {
        let problem = format!("expected an array of one dimension, found {}", buffer.dimensions());
        return Err(PyValueError::new_err(problem));
    }
    let format = buffer.format().to_bytes();
    if format.contains(&b'Z') {
        return Err(PyTypeError::new_err("expected real numbers, found an array of complex ones"));
    }
    let is_native = match format.first() {
        Some(b'>' | b'!') => cfg!(target_endian = "big"),
        Some(b'<') => cfg!(target_endian = "little"),
        _ => true,
    };
    if !is_native {
        return Ok(None);
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

/// Reads the buffer's elements, if they are of this type.
fn read<T: Element + Into<f64>>(buffer: &PyUntypedBuffer, py: Python<'_>) -> Option<PyResult<Vec<f64>>> {
    let typed = buffer.as_typed::<T>().ok()?;
    Some(typed.to_vec(py).map(|values| values.into_iter().map(Into::into).collect()))
}

/// Like [`read`], for integers that a double may not represent exactly.
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
            Err(PyValueError::new_err(format!("a float cannot represent {value} exactly")))
        }
    };
    Some(typed.to_vec(py).and_then(|values| values.into_iter().map(exact).collect()))
}
