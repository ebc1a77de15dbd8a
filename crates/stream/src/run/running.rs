//! A running program.

use std::cell::RefCell;
use std::rc::Rc;

use crate::check::Proof;

use super::error::RunError;
use super::machine::{Machine, Progress};
use super::queue::Queue;

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of values produced.
    pub values: u64,
    /// The most values that each queue has held, in the order of [`Proof::edges`].
    pub peaks: Vec<u64>,
}

/// The outcome of a part of a run; see [`Running::next_within`].
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a, T> {
    /// The next value.
    Value(&'a T),
    /// The steps are over, and the next call goes on.
    Pause,
    /// The program is at its end.
    End,
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
        Ok(match self.next_within(u64::MAX)? {
            Part::Value(value) => Some(value),
            Part::Pause | Part::End => None,
        })
    }

    /// Returns the next value, or a pause after `steps` steps of work without one: a caller that may have to give up, or
    /// has other work, looks after that in the pause. A step computes at most one value of each stream.
    ///
    /// ```
    /// use millstream_stream::{Part, Program};
    ///
    /// let sum = Program::new().iter("x", 0..1_000_000_u64).reduce(0, |sum, n| *sum += n);
    /// let mut running = sum.run()?;
    /// let mut pauses = 0;
    /// while matches!(running.next_within(10_000)?, Part::Pause) {
    ///     pauses += 1;
    /// }
    /// assert!(pauses >= 100);
    /// # Ok::<(), millstream_stream::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn next_within(&mut self, steps: u64) -> Result<Part<'_, T>, RunError> {
        if self.over {
            return Ok(Part::End);
        }
        // This stays `true` if the program's own code panics.
        self.over = true;
        let progress = self.machine.drive(steps)?;
        if progress == Progress::End {
            return Ok(Part::End);
        }
        self.over = false;
        if progress == Progress::Pause {
            return Ok(Part::Pause);
        }
        self.values += 1;
        if let Err(error) = self.out.borrow_mut().take(&mut self.current) {
            self.over = true;
            return Err(error);
        }
        Ok(self.current.as_ref().map_or(Part::End, Part::Value))
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
