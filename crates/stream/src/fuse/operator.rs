//! Operators that take one value at a time.

use std::ops::ControlFlow;

use crate::run::RunError;

use super::{Fused, Stop};

/// An operator: for each value, computes its results and pushes them into the sink.
pub(crate) trait Step<T>: 'static {
    type Out: Clone + 'static;

    fn step(&mut self, value: &T, sink: &mut impl FnMut(&Self::Out) -> ControlFlow<Stop>) -> ControlFlow<Stop>;

    /// Returns the number of steps since the last call, without the steps of the source.
    fn steps(&mut self) -> u64 {
        0
    }
}

/// A loop with one more operator.
pub(crate) struct Then<C, S> {
    pub(crate) before: C,
    pub(crate) step: S,
}

impl<C: Fused, S: Step<C::Value>> Fused for Then<C, S> {
    type Value = S::Out;

    #[inline(always)]
    fn push(&mut self, steps: &mut u64, mut sink: impl FnMut(&S::Out) -> ControlFlow<Stop>) -> Stop {
        let step = &mut self.step;
        let stop = self.before.push(steps, |value| step.step(value, &mut sink));
        *steps = steps.saturating_sub(step.steps());
        stop
    }

    #[inline(always)]
    fn push_to_the_end(self, mut sink: impl FnMut(&S::Out) -> ControlFlow<Stop>) -> Stop {
        let mut step = self.step;
        self.before.push_to_the_end(|value| step.step(value, &mut sink))
    }
}

/// Computes a value.
pub(crate) struct Map<F>(pub(crate) F);

impl<T, U: Clone + 'static, F: FnMut(&T) -> U + 'static> Step<T> for Map<F> {
    type Out = U;

    #[inline]
    fn step(&mut self, value: &T, sink: &mut impl FnMut(&U) -> ControlFlow<Stop>) -> ControlFlow<Stop> {
        sink(&(self.0)(value))
    }
}

/// Computes a value and overwrites the last result.
pub(crate) struct Each<U, F> {
    pub(crate) result: Option<U>,
    pub(crate) compute: F,
}

impl<T, U, F> Step<T> for Each<U, F>
where
    U: Clone + 'static,
    F: FnMut(&T, &mut Option<U>) -> Result<(), RunError> + 'static,
{
    type Out = U;

    #[inline]
    fn step(&mut self, value: &T, sink: &mut impl FnMut(&U) -> ControlFlow<Stop>) -> ControlFlow<Stop> {
        match (self.compute)(value, &mut self.result) {
            Ok(()) => sink(self.result.as_ref().expect("a value was computed")),
            Err(error) => ControlFlow::Break(error.into()),
        }
    }
}

/// Passes or drops each value.
pub(crate) struct Filter<F>(pub(crate) F);

impl<T: Clone + 'static, F: FnMut(&T) -> Result<bool, RunError> + 'static> Step<T> for Filter<F> {
    type Out = T;

    #[inline]
    fn step(&mut self, value: &T, sink: &mut impl FnMut(&T) -> ControlFlow<Stop>) -> ControlFlow<Stop> {
        match (self.0)(value) {
            Ok(true) => sink(value),
            Ok(false) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error.into()),
        }
    }
}

/// Takes all values of a loop, and produces one value at the end.
pub(crate) struct Reduce<C, S, F> {
    pub(crate) before: C,
    pub(crate) state: S,
    pub(crate) step: F,
    pub(crate) is_over: bool,
}

impl<C, S, F> Fused for Reduce<C, S, F>
where
    C: Fused,
    S: Clone + 'static,
    F: FnMut(&mut S, &C::Value) -> Result<(), RunError> + 'static,
{
    type Value = S;

    fn push(&mut self, steps: &mut u64, mut sink: impl FnMut(&S) -> ControlFlow<Stop>) -> Stop {
        if !self.is_over {
            let Self { before, state, step, .. } = self;
            let stop = before.push(steps, |value| match step(state, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error.into()),
            });
            let Stop::End = stop else { return stop };
            self.is_over = true;
            if let ControlFlow::Break(stop) = sink(&self.state) {
                return stop;
            }
        }
        Stop::End
    }

    #[inline(always)]
    fn push_to_the_end(self, mut sink: impl FnMut(&S) -> ControlFlow<Stop>) -> Stop {
        let Self { before, mut state, mut step, is_over } = self;
        if is_over {
            return Stop::End;
        }
        let stop = before.push_to_the_end(|value| match step(&mut state, value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error.into()),
        });
        let Stop::End = stop else { return stop };
        sink(&state).break_value().unwrap_or(Stop::End)
    }
}
