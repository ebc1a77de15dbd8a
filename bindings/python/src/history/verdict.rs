//! The result of a check, as a Python class.

use std::fmt::Write as _;

use millstream_history::{History, Limit, Model};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::values::{hash, known, truth};

/// The result of `check`. It is true if the operations are linearizable. A test can write `assert verdict, verdict`: if
/// the operations are not linearizable, the text says why, and shows the operations.
#[pyclass(frozen, eq, module = "millstream.history")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    linearizable: Option<bool>,
    order: Option<Vec<u32>>,
    failing: Option<Vec<u32>>,
    reason: Option<String>,
    state: Option<String>,
    limit: Option<&'static str>,
    decided: usize,
    total: usize,
    text: String,
}

const LIMITS: [&str; 3] = ["memory", "time", "concurrency"];

impl Verdict {
    /// `rows` maps each row to the number of its operation; `None` if the two are equal.
    pub(super) fn of(
        verdict: &millstream_history::Verdict,
        history: &History,
        rows: Option<&[u32]>,
        model: Model,
    ) -> Self {
        let number = |row: u32| rows.map_or(row, |rows| rows[row as usize]);
        let numbers = |found: &[u32]| Some(found.iter().map(|&row| number(row)).collect());
        let total = history.len();
        let none = Self {
            linearizable: verdict.holds(),
            order: None,
            failing: None,
            reason: None,
            state: None,
            limit: None,
            decided: total,
            total,
            text: String::new(),
        };
        match verdict {
            millstream_history::Verdict::Holds(witness) => {
                let text = format!("linearizable as a {model}: {total} operations");
                Self { order: numbers(&witness.order), text, ..none }
            }
            millstream_history::Verdict::Fails(example) => {
                let mut text = format!("not linearizable as a {model}: {}", example.reason);
                if let Some(state) = &example.start {
                    let _ = write!(text, "\nfrom the state {state}");
                }
                for &row in &example.operations {
                    let (operation, shown) = (number(row), history.show(row as usize));
                    let process = history.process(row as usize);
                    let start = history.call(row as usize);
                    let _ = write!(text, "\noperation {operation}, process {process}, from {start} ");
                    let _ = match history.returned_at(row as usize) {
                        Some(end) => write!(text, "to {end}: {shown}"),
                        None => write!(text, "on: {shown}"),
                    };
                }
                let (reason, state) = (Some(example.reason.clone()), example.start.clone());
                Self { failing: numbers(&example.operations), reason, state, text, ..none }
            }
            millstream_history::Verdict::Unknown(progress) => {
                let limit = match progress.limit {
                    Limit::Memory => LIMITS[0],
                    Limit::Time => LIMITS[1],
                    Limit::Concurrency => LIMITS[2],
                };
                let (decided, total) = (progress.decided, progress.total);
                let text = format!("unknown: at the limit of {limit}, {decided} of {total} operations are explained");
                Self { limit: Some(limit), decided, total, text, ..none }
            }
        }
    }
}

/// The members, in their order.
type Members<'py> = (
    Option<bool>,
    Option<Bound<'py, PyTuple>>,
    Option<Bound<'py, PyTuple>>,
    Option<String>,
    Option<String>,
    Option<&'static str>,
    usize,
    usize,
    String,
);

fn tuple<'py>(py: Python<'py>, numbers: Option<&Vec<u32>>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    numbers.map(|numbers| PyTuple::new(py, numbers)).transpose()
}

#[pymethods]
impl Verdict {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the members")]
    fn new(
        linearizable: Option<bool>,
        order: Option<Vec<u32>>,
        failing: Option<Vec<u32>>,
        reason: Option<String>,
        state: Option<String>,
        limit: Option<&str>,
        decided: usize,
        total: usize,
        text: String,
    ) -> PyResult<Self> {
        let limit = known(limit, LIMITS)?;
        Ok(Self { linearizable, order, failing, reason, state, limit, decided, total, text })
    }

    /// True, False, or None if a limit was reached first.
    #[getter]
    fn linearizable(&self) -> Option<bool> {
        self.linearizable
    }

    /// If the operations are linearizable, their numbers in an order that proves it. Failed operations are left out,
    /// and so are operations without an end that had no effect.
    #[getter]
    fn order<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        tuple(py, self.order.as_ref())
    }

    /// If the operations are not linearizable, the numbers of a few operations that no order explains, whatever the
    /// others did.
    #[getter]
    fn failing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        tuple(py, self.failing.as_ref())
    }

    /// The violation, in one sentence.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The state from which the failing operations start, if it replaces the operations before them.
    #[getter]
    fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The limit, if a limit was reached: "memory", "time" or "concurrency" (more than 65 536 operations open at once).
    #[getter]
    fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    /// The number of operations that the best attempt explained.
    #[getter]
    fn decided(&self) -> usize {
        self.decided
    }

    /// The number of operations to explain.
    #[getter]
    fn total(&self) -> usize {
        self.total
    }

    fn __bool__(&self) -> bool {
        self.linearizable == Some(true)
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Members<'py>> {
        Ok((
            self.linearizable,
            self.order(py)?,
            self.failing(py)?,
            self.reason.clone(),
            self.state.clone(),
            self.limit,
            self.decided,
            self.total,
            self.text.clone(),
        ))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__(py)?)
    }

    fn __repr__(&self) -> String {
        let failing = self.failing.as_ref().map_or_else(|| "None".to_owned(), |failing| format!("{failing:?}"));
        format!(
            "<Verdict linearizable={} failing={failing} decided={} total={}>",
            truth(self.linearizable),
            self.decided,
            self.total
        )
    }
}
