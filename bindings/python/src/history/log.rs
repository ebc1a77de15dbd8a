//! Histories from operations, from a text or from a file.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use millstream_history::format::{Format, FormatError, Problem, guess, read, write_json};
use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::value::given;
use super::{operations, refused};
use crate::long::compute;

/// Operations in the order of their starts, from a list of `Op`s, a log, or a file.
///
/// >>> log = '{"process":0,"op":"push","in":3,"call":0,"return":5}'
/// >>> history = History.parse(log)
/// >>> len(history), history.show(0)
/// (1, 'push(3)')
/// >>> history[0].call, history[0].argument
/// ('push', 3)
///
/// A history has a length, its items are `Op`s, and it cannot be changed. It is pickled as JSON lines.
#[pyclass(frozen, module = "millstream.history")]
pub(crate) struct History {
    pub(super) history: Arc<millstream_history::History>,
}

impl History {
    fn of(history: millstream_history::History) -> Self {
        Self { history: Arc::new(history) }
    }
}

#[pymethods]
impl History {
    #[new]
    fn new(operations: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::of(operations::read(operations)?.0))
    }

    /// Reads a log. `format` is "json" (lines of operations), "jepsen" (EDN), "jepsen-independent" (whose values are pairs
    /// [key value]) or "etcd"; None recognises all but "jepsen-independent" by their first characters.
    #[staticmethod]
    #[pyo3(signature = (log, format = None))]
    fn parse(py: Python<'_>, log: &Bound<'_, PyAny>, format: Option<&str>) -> PyResult<Self> {
        let log: Vec<u8> = match (log.extract::<String>(), log.extract::<Vec<u8>>()) {
            (Ok(text), _) => text.into_bytes(),
            (_, Ok(bytes)) => bytes,
            _ => return Err(PyTypeError::new_err("expected a log as str or bytes; History.load reads a file")),
        };
        let format = named(format)?;
        compute(py, move || {
            let format = format.or_else(|| guess(&log)).ok_or_else(unrecognised)?;
            read(log.as_slice(), format, None).map_err(|error| error.to_string())
        })?
        .map(Self::of)
        .map_err(refused)
    }

    /// Reads a file, as `parse` reads a log.
    #[staticmethod]
    #[pyo3(signature = (path, format = None))]
    fn load(py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<Self> {
        let format = named(format)?;
        let place = path.clone().into_os_string();
        match compute(py, move || load(&path, format))? {
            Ok(history) => Ok(Self::of(history)),
            // Python uses the number to choose the subclass of OSError, and shows the path.
            Err(Unread::System(error)) => Err(match error.raw_os_error() {
                Some(number) => {
                    let text = error.to_string();
                    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                    PyOSError::new_err((number, text, place))
                }
                None => error.into(),
            }),
            Err(Unread::Format(problem)) => Err(refused(problem)),
        }
    }

    /// Shows the operation as a call: enqueue(17), dequeue() -> 17, read() -> ?.
    fn show(&self, index: isize) -> PyResult<String> {
        Ok(self.history.show(self.row(index)?).to_string())
    }

    /// The history as JSON lines, which `parse` can read.
    fn to_json(&self) -> PyResult<String> {
        let mut lines = Vec::new();
        write_json(&self.history, &mut lines)?;
        Ok(String::from_utf8(lines)?)
    }

    fn __len__(&self) -> usize {
        self.history.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        static OP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let op = OP.get_or_try_init(py, || Ok::<_, PyErr>(py.import("millstream.history")?.getattr("Op")?.unbind()))?;
        let (history, row) = (&self.history, self.row(index)?);
        let operation = history.get(row);
        let value = |value| given(py, history.values(), value);
        op.bind(py).call1((
            operation.process,
            history.op_name(operation.op),
            value(operation.input)?,
            value(operation.output)?,
            operation.call,
            operation.ret,
            operation.key.map(value).transpose()?,
            operation.status.name(),
        ))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, &'static str))> {
        Ok((slf.getattr("parse")?, (slf.get().to_json()?, "json")))
    }

    fn __repr__(&self) -> String {
        format!("<History of {} operations>", self.history.len())
    }
}

impl History {
    /// The row of an index, which counts from the end if it is negative.
    fn row(&self, index: isize) -> PyResult<usize> {
        let len = self.history.len();
        let row = if index < 0 { len.checked_add_signed(index) } else { usize::try_from(index).ok() };
        row.filter(|&row| row < len)
            .ok_or_else(|| PyIndexError::new_err(format!("operation {index} of a history of {len}")))
    }
}

fn named(format: Option<&str>) -> PyResult<Option<Format>> {
    format.map(|name| name.parse().map_err(refused)).transpose()
}

fn unrecognised() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    format!("the beginning is that of no known log; pass format, one of {}", names.join(", "))
}

enum Unread {
    System(io::Error),
    Format(String),
}

fn load(path: &PathBuf, format: Option<Format>) -> Result<millstream_history::History, Unread> {
    let mut file = BufReader::new(File::open(path).map_err(Unread::System)?);
    let start = io::BufRead::fill_buf(&mut file).map_err(Unread::System)?;
    let format = format.or_else(|| guess(start)).ok_or_else(|| Unread::Format(unrecognised()))?;
    read(file, format, None).map_err(|error| match error {
        FormatError { problem: Problem::Io(error), .. } => Unread::System(error),
        error => Unread::Format(error.to_string()),
    })
}
