//! Sources, which begin loops.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::run::RunError;

use super::{Fused, Stop, past_pauses};

/// The steps of windows and of large values that have not been subtracted from the limit yet.
pub(crate) type UncountedSteps = Rc<Cell<u64>>;

/// The values of an iterator.
pub(crate) struct Iter<I> {
    pub(crate) values: I,
    pub(crate) uncounted: UncountedSteps,
}

impl<I> Fused for Iter<I>
where
    I: Iterator + 'static,
    I::Item: Clone + 'static,
{
    type Value = I::Item;

    // This function is inlined, because the loop's state stays in registers only if the whole loop is one function.
    #[inline(always)]
    fn push(&mut self, steps: &mut u64, mut sink: impl FnMut(&I::Item) -> ControlFlow<Stop>) -> Stop {
        // This copy is a local variable, so it stays in a register no matter what the sink does.
        let mut left = *steps;
        let stop = loop {
            if left == 0 {
                break Stop::Pause;
            }
            left -= 1;
            let Some(value) = self.values.next() else { break Stop::End };
            let sunk = sink(&value);
            left = left.saturating_sub(self.uncounted.take());
            if let ControlFlow::Break(stop) = sunk {
                break stop;
            }
        };
        *steps = left;
        stop
    }

    #[inline(always)]
    fn push_to_the_end(mut self, mut sink: impl FnMut(&I::Item) -> ControlFlow<Stop>) -> Stop {
        // An iterator that consists of several parts, such as a chain, runs its own loop faster than repeated calls of `next`.
        self.values.try_for_each(|value| past_pauses(sink(&value))).break_value().unwrap_or(Stop::End)
    }

    /// Moves the value into the slot, without a clone.
    fn draw(&mut self, steps: &mut u64, slot: &mut Option<I::Item>) -> Stop {
        if *steps == 0 {
            return Stop::Pause;
        }
        *steps = (*steps - 1).saturating_sub(self.uncounted.take());
        let Some(value) = self.values.next() else { return Stop::End };
        *slot = Some(value);
        Stop::Value
    }
}

/// The values that a function writes. Each value overwrites the last one.
pub(crate) struct Read<T, F> {
    pub(crate) value: T,
    pub(crate) read: F,
    pub(crate) uncounted: UncountedSteps,
}

impl<T, F> Fused for Read<T, F>
where
    T: Clone + Default + 'static,
    F: FnMut(&mut T) -> Result<bool, RunError> + 'static,
{
    type Value = T;

    #[inline(always)]
    fn push(&mut self, steps: &mut u64, mut sink: impl FnMut(&T) -> ControlFlow<Stop>) -> Stop {
        let mut left = *steps;
        let stop = loop {
            if left == 0 {
                break Stop::Pause;
            }
            left -= 1;
            match (self.read)(&mut self.value) {
                Ok(true) => {}
                Ok(false) => break Stop::End,
                Err(error) => break error.into(),
            }
            let sunk = sink(&self.value);
            left = left.saturating_sub(self.uncounted.take());
            if let ControlFlow::Break(stop) = sunk {
                break stop;
            }
        };
        *steps = left;
        stop
    }

    #[inline(always)]
    fn push_to_the_end(mut self, mut sink: impl FnMut(&T) -> ControlFlow<Stop>) -> Stop {
        loop {
            match (self.read)(&mut self.value) {
                Ok(true) => {}
                Ok(false) => return Stop::End,
                Err(error) => return error.into(),
            }
            if let ControlFlow::Break(stop) = past_pauses(sink(&self.value)) {
                return stop;
            }
        }
    }

    /// Reads the value into the slot, without a clone.
    fn draw(&mut self, steps: &mut u64, slot: &mut Option<T>) -> Stop {
        if *steps == 0 {
            return Stop::Pause;
        }
        *steps = (*steps - 1).saturating_sub(self.uncounted.take());
        match (self.read)(slot.get_or_insert_with(T::default)) {
            Ok(true) => Stop::Value,
            Ok(false) => Stop::End,
            Err(error) => error.into(),
        }
    }
}
