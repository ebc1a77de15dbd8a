//! Operations given as tuples.

use std::collections::HashSet;

use millstream_history::{Builder, Contradiction, History, Operation, Status};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::value::{shown, value};
use super::{HistoryError, refused};
use crate::arrays::take_each;

/// The maximum number of names of operations in a history.
const MAX_NAMES: usize = 60_000;

/// Reads operations. Returns the history and, for each of its rows, the number of the operation.
pub(super) fn read(operations: &Bound<'_, PyAny>) -> PyResult<(History, Vec<u32>)> {
    let mut reader = Reader::default();
    take_each(operations.try_iter()?, || Ok(true), |item| reader.take(&item))?;
    reader.finish()
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    /// The time of each operation's call.
    calls: Vec<u64>,
    names: HashSet<String>,
}

impl Reader {
    fn take(&mut self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let operation = self.operation(item).map_err(|error| {
            let py = item.py();
            let told = HistoryError::new_err(format!("operation {}: {}", self.calls.len(), error.value(py)));
            told.set_cause(py, Some(error));
            told
        })?;
        self.calls.push(operation.call);
        self.builder.push(operation).map_err(|contradiction| self.contradicted(contradiction))
    }

    fn operation(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let expected = "a tuple of process, call, argument, result, start, end, and maybe key and status";
        let wrong = |what: &str, expected: &str, found: &Bound<'_, PyAny>| {
            PyTypeError::new_err(format!("{what} must be {expected}, found {}", shown(found)))
        };
        let members = item.cast::<PyTuple>().map_err(|_| wrong("an operation", expected, item))?;
        if !(6..=8).contains(&members.len()) {
            return Err(wrong("an operation", expected, item));
        }
        let [process, call, argument, result, start, end] = [0, 1, 2, 3, 4, 5].map(|at| members.get_item(at));
        let (process, call, start, end) = (process?, call?, start?, end?);
        let name = call.cast::<PyString>().map_err(|_| wrong("call", "the name of an operation", &call))?.to_str()?;
        if self.names.len() >= MAX_NAMES && !self.names.contains(name) {
            return Err(HistoryError::new_err(format!("there are more than {MAX_NAMES} names of operations")));
        }
        if !self.names.contains(name) {
            self.names.insert(name.to_owned());
        }
        let time = "an int of 0 or more, such as time.monotonic_ns()";
        let optional = |at: usize| match members.len() > at {
            true => members.get_item(at).map(|item| (!item.is_none()).then_some(item)),
            false => Ok(None),
        };
        let status = match optional(7)? {
            None => Status::Ok,
            Some(status) => match status.extract::<String>().as_deref() {
                Ok("ok") => Status::Ok,
                Ok("fail") => Status::Fail,
                Ok("info") => Status::Info,
                _ => return Err(wrong("status", "'ok', 'fail' or 'info'", &status)),
            },
        };
        let ret = match end.is_none() {
            true => None,
            false => Some(end.extract().map_err(|_| wrong("end", time, &end))?),
        };
        let values = self.builder.values();
        let operation = Operation {
            key: optional(6)?.map(|key| value(values, &key)).transpose()?,
            output: value(values, &result?)?,
            call: start.extract().map_err(|_| wrong("start", time, &start))?,
            ret,
            status,
            ..Operation::new(
                process.extract().map_err(|_| wrong("process", "an int from 0 to 4294967295", &process))?,
                millstream_history::Op::READ,
                value(values, &argument?)?,
            )
        };
        if ret.is_none() && !operation.output.is_null() {
            return Err(HistoryError::new_err("it has a result and no end; one that has not returned has no result"));
        }
        Ok(Operation { op: self.builder.op(name), ..operation })
    }

    fn contradicted(&self, contradiction: Contradiction) -> PyErr {
        match contradiction {
            Contradiction::ReturnBeforeCall { operation, call, ret } => {
                HistoryError::new_err(format!("operation {operation}: it ends at {ret}, before its start at {call}"))
            }
            Contradiction::TwoAtOnce { process, earlier, operation, .. } => HistoryError::new_err(format!(
                "operation {operation}: process {process} called it while its operation {earlier} had not returned; a \
                 process that gives up waiting must go on under another number"
            )),
            other => refused(other),
        }
    }

    fn finish(self) -> PyResult<(History, Vec<u32>)> {
        let Self { builder, calls, names } = self;
        // Rows are in the order of the calls. Operations with equal times keep their order.
        let mut rows: Vec<u32> = (0..calls.len() as u32).collect();
        rows.sort_by_key(|&operation| calls[operation as usize]);
        let history = builder
            .finish()
            .map_err(|contradiction| Self { builder: Builder::new(), calls, names }.contradicted(contradiction))?;
        Ok((history, rows))
    }
}
