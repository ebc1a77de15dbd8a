//! A running program.

use std::cell::RefCell;
use std::rc::Rc;

use crate::check::Proof;

use super::error::RunError;
use super::machine::Machine;
use super::queue::{Queue, assign};

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of values produced.
    pub values: u64,
    /// The most values that each queue has held, in the order of [`Proof::edges`].
    pub peaks: Vec<u64>,
}

/// A checked program whose values the caller pulls one by one.
///
/// A value is computed when [`next`](Self::next) asks for it, and the sources are read no further than that value
/// needs. Dropping the program drops its sources.
pub struct Running<T> {
    machine: Machine,
    out: Rc<RefCell<Queue<T>>>,
    proof: Proof,
    values: u64,
    /// The last value.
    current: Option<T>,
    over: bool,
}

impl<T: Clone> Running<T> {
    pub(crate) fn new(machine: Machine, out: Rc<RefCell<Queue<T>>>, proof: Proof) -> Self {
        Self { machine, out, proof, values: 0, current: None, over: false }
    }

    /// Returns the next value; `None` at the end, and after an error or a panic of the program's own code.
    ///
    /// # Errors
    /// See [`RunError`].
    #[expect(clippy::should_implement_trait, reason = "the value is lent, which an iterator cannot do")]
    pub fn next(&mut self) -> Result<Option<&T>, RunError> {
        if self.over {
            return Ok(None);
        }
        // This stays `true` if the program's own code panics.
        self.over = true;
        if !self.machine.drive()? {
            return Ok(None);
        }
        self.over = false;
        self.values += 1;
        let mut out = self.out.borrow_mut();
        assign(&mut self.current, out.front());
        if let Err(error) = out.leave() {
            self.over = true;
            return Err(error);
        }
        Ok(self.current.as_ref())
    }

    /// Runs to the end and calls `each` with every value.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn for_each(mut self, mut each: impl FnMut(&T)) -> Result<Report, RunError> {
        while let Some(value) = self.next()? {
            each(value);
        }
        Ok(self.report())
    }

    /// Returns an iterator that clones the values.
    pub fn values(self) -> Values<T> {
        Values(self)
    }

    /// Returns the bounds of the queues.
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Returns the figures so far.
    pub fn report(&self) -> Report {
        Report { values: self.values, peaks: self.machine.peaks().to_vec() }
    }
}

/// The values of a program; see [`Running::values`].
pub struct Values<T>(Running<T>);

impl<T: Clone> Iterator for Values<T> {
    type Item = Result<T, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Option::<&T>::cloned).transpose()
    }
}
