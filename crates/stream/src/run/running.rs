//! A running program.

use std::ops::ControlFlow;

use crate::check::Proof;
use crate::fuse::{Stop, Whole};

use super::error::RunError;
use super::machine::Machine;
use super::queue::{Shared, assign};

/// The number of values that a run has produced, and the peaks of its queues.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of values produced.
    pub values: u64,
    /// For each queue, the maximum number of values that it has held, in the order of [`Proof::edges`]. It is 0 for a queue
    /// inside a [`Chain`](crate::Chain) or at its end, because values pass through such a queue immediately.
    pub peaks: Vec<u64>,
}

/// The outcome of [`Running::next_within`].
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a, T> {
    /// The next value.
    Value(&'a T),
    /// The limit of steps is reached. The next call continues.
    Pause,
    /// The program has ended.
    End,
}

/// A checked program. The caller pulls its values one by one.
///
/// A value is computed when [`next`](Self::next) asks for it, and the sources are read no further than that value
/// needs. Dropping the program drops its sources.
pub struct Running<T> {
    pub(super) engine: Engine<T>,
    proof: Proof,
    values: u64,
    /// The last value.
    current: Option<T>,
    over: bool,
}

/// The code of a program.
pub(super) enum Engine<T> {
    /// A chain.
    Whole(Box<dyn Whole<T>>),
    /// A net of actors.
    Net {
        machine: Box<Machine>,
        /// The slot of the sink's value. The sink takes each value before the next one is computed.
        out: Shared<T>,
        /// For each queue, whether it is inside a chain.
        in_chain: Vec<bool>,
    },
}

impl<T: Clone> Running<T> {
    pub(crate) fn whole(whole: Box<dyn Whole<T>>, proof: Proof) -> Self {
        Self { engine: Engine::Whole(whole), proof, values: 0, current: None, over: false }
    }

    pub(crate) fn net(machine: Machine, out: Shared<T>, proof: Proof, in_chain: Vec<bool>) -> Self {
        Self {
            engine: Engine::Net { machine: Box::new(machine), out, in_chain },
            proof,
            values: 0,
            current: None,
            over: false,
        }
    }

    /// Returns the next value; `None` at the end, and after an error or a panic of the program's own code.
    ///
    /// # Errors
    /// See [`RunError`].
    #[expect(clippy::should_implement_trait, reason = "the value is borrowed, which an iterator cannot do")]
    pub fn next(&mut self) -> Result<Option<&T>, RunError> {
        Ok(match self.next_within(&mut { u64::MAX })? {
            Part::Value(value) => Some(value),
            Part::Pause | Part::End => None,
        })
    }

    /// Returns the next value, or a pause once `steps` is 0. In a pause, the caller can do other work or give up.
    ///
    /// Each step is subtracted from `steps`. A step computes at most one value of each stream; a window takes as many steps as it
    /// has values. The call never stops within a window, so it may exceed `steps` by the steps of one large window, or by up to
    /// 4,096 steps of small windows.
    ///
    /// ```
    /// use millstream_stream::{Part, Program};
    ///
    /// let sum = Program::new().iter("x", 0..1_000_000_u64).reduce(0, |sum, n| *sum += n);
    /// let mut running = sum.run()?;
    /// let mut pauses = 0;
    /// while matches!(running.next_within(&mut 10_000)?, Part::Pause) {
    ///     pauses += 1;
    /// }
    /// assert!(pauses >= 100);
    /// # Ok::<(), millstream_stream::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn next_within(&mut self, steps: &mut u64) -> Result<Part<'_, T>, RunError> {
        if self.over {
            return Ok(Part::End);
        }
        // This is set before the run, so that it stays `true` if the program's own code panics.
        self.over = true;
        let stop = loop {
            let stop = match &mut self.engine {
                Engine::Whole(whole) => (**whole).draw_one(steps, &mut self.current),
                Engine::Net { machine, out, .. } => {
                    let current = &mut self.current;
                    machine.drive(steps, &mut || {
                        assign(current, given(&out.borrow()));
                        ControlFlow::Break(())
                    })
                }
            };
            match stop {
                Stop::Pause if *steps > 0 => {}
                stop => break stop,
            }
        };
        match stop {
            Stop::Value => {
                self.over = false;
                self.values += 1;
                Ok(self.current.as_ref().map_or(Part::End, Part::Value))
            }
            Stop::Pause => {
                self.over = false;
                Ok(Part::Pause)
            }
            Stop::End => Ok(Part::End),
            Stop::Failed(error) => Err(*error),
        }
    }

    /// Calls `each` with the next values until `each` breaks or `steps` is 0; see [`next_within`](Self::next_within). Returns
    /// whether the program has ended. `each` borrows the values, so none is copied.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn for_each_within(
        &mut self,
        steps: &mut u64,
        mut each: impl FnMut(&T) -> ControlFlow<()>,
    ) -> Result<bool, RunError> {
        if self.over {
            return Ok(true);
        }
        // This is set before the run, so that it stays `true` if the program's own code panics.
        self.over = true;
        let values = &mut self.values;
        let mut each = |value: &T| {
            *values += 1;
            each(value)
        };
        let stop = loop {
            let stop = match &mut self.engine {
                Engine::Whole(whole) => (**whole).push_all(steps, &mut |value| match each(value) {
                    ControlFlow::Continue(()) => ControlFlow::Continue(()),
                    ControlFlow::Break(()) => ControlFlow::Break(Stop::Value),
                }),
                Engine::Net { machine, out, .. } => machine.drive(steps, &mut || each(given(&out.borrow()))),
            };
            match stop {
                Stop::Pause if *steps > 0 => {}
                stop => break stop,
            }
        };
        match stop {
            Stop::Value | Stop::Pause => {
                self.over = false;
                Ok(false)
            }
            Stop::End => Ok(true),
            Stop::Failed(error) => Err(*error),
        }
    }

    /// Runs to the end and calls `each` with every value. For a [`Chain`](crate::Chain) this is one loop, which is
    /// faster than pulling the values one by one; [`Chain::for_each`](crate::Chain::for_each) makes `each` a part of it.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn for_each(mut self, mut each: impl FnMut(&T)) -> Result<Report, RunError> {
        if self.over {
            return Ok(self.report());
        }
        let values = &mut self.values;
        let mut each = |value: &T| {
            *values += 1;
            each(value);
        };
        let peaks = match self.engine {
            Engine::Whole(whole) => {
                let stop = whole.push_rest(&mut |value: &T| {
                    each(value);
                    ControlFlow::Continue(())
                });
                if let Stop::Failed(error) = stop {
                    return Err(*error);
                }
                vec![0; self.proof.edges().len()]
            }
            Engine::Net { mut machine, out, in_chain } => loop {
                let stop = machine.drive(&mut { u64::MAX }, &mut || {
                    each(given(&out.borrow()));
                    ControlFlow::Continue(())
                });
                match stop {
                    Stop::Failed(error) => return Err(*error),
                    Stop::End => break peaks_of(&machine, &in_chain),
                    Stop::Pause | Stop::Value => {}
                }
            },
        };
        Ok(Report { values: self.values, peaks })
    }

    /// Returns an iterator that clones the values.
    pub fn values(self) -> Values<T> {
        Values(self)
    }

    /// Returns the bounds of the queues.
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Returns the report of the run so far.
    pub fn report(&self) -> Report {
        Report { values: self.values, peaks: self.peaks() }
    }

    fn peaks(&self) -> Vec<u64> {
        match &self.engine {
            Engine::Whole(_) => vec![0; self.proof.edges().len()],
            Engine::Net { machine, in_chain, .. } => peaks_of(machine, in_chain),
        }
    }
}

/// Returns the value that has reached the sink.
fn given<T>(slot: &Option<T>) -> &T {
    slot.as_ref().expect("a value was given")
}

/// Returns the peaks of all queues.
fn peaks_of(machine: &Machine, in_chain: &[bool]) -> Vec<u64> {
    // The machine knows only the queues outside of chains; their order is the same.
    let mut others = machine.peaks().into_iter();
    in_chain.iter().map(|inside| if *inside { 0 } else { others.next().unwrap_or(0) }).collect()
}

/// The values of a program; see [`Running::values`].
pub struct Values<T>(Running<T>);

impl<T: Clone> Iterator for Values<T> {
    type Item = Result<T, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Option::<&T>::cloned).transpose()
    }
}
