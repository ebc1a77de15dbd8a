//! Fusion: a source and its operators become one loop.
//!
//! The source of a chain pushes each value through the operators into a *sink*, a closure. The compiler knows the types of the
//! source, the operators and the sink, so the chain becomes one loop without calls, and the values stay in registers. The sink
//! stops the loop when it needs no more values, so the source is read no further than necessary. A stop loses nothing: the next
//! call continues with the next value of the source.
//!
//! [`Whole`] hides the types behind one call for each value that leaves the chain.

mod operator;
mod source;
mod window;

use std::ops::ControlFlow;

use crate::run::{RunError, assign};

pub(crate) use self::operator::{Each, Filter, Map, Reduce, Then};
pub(crate) use self::source::{Iter, Read, UncountedSteps};
pub(crate) use self::window::{ArrayWindows, Windows};

/// The reason why a loop stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stop {
    /// The sink has received the value that it needs.
    Value,
    /// The limit of steps is reached, or the caller has to subtract the steps of windows. The loop can be continued.
    Pause,
    /// The source has ended.
    End,
    /// A value could not be read or computed.
    Failed(Box<RunError>),
}

impl From<Box<RunError>> for Stop {
    #[cold]
    fn from(error: Box<RunError>) -> Self {
        Self::Failed(error)
    }
}

impl From<RunError> for Stop {
    #[cold]
    fn from(error: RunError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Makes the loop continue after a pause.
#[inline(always)]
fn past_pauses(flow: ControlFlow<Stop>) -> ControlFlow<Stop> {
    match flow {
        ControlFlow::Break(Stop::Pause) => ControlFlow::Continue(()),
        other => other,
    }
}

/// The loop of a [`Chain`](crate::Chain). Only this crate implements it.
pub trait Fused: Sized + 'static {
    /// The type of the values that leave the loop.
    type Value: Clone + 'static;

    /// Pushes values into `sink` until `sink` stops the loop, the source ends, or the loop pauses. The loop pauses after
    /// `steps` values of the source, or sooner. Each step is subtracted from `steps`.
    #[doc(hidden)]
    fn push(&mut self, steps: &mut u64, sink: impl FnMut(&Self::Value) -> ControlFlow<Stop>) -> Stop;

    /// Pushes all values into `sink`, without counting steps or pausing. The loop is passed by value, so the compiler can keep
    /// its state in registers.
    #[doc(hidden)]
    fn push_to_the_end(self, sink: impl FnMut(&Self::Value) -> ControlFlow<Stop>) -> Stop;

    /// Computes the next value and writes it to `slot`.
    #[doc(hidden)]
    fn draw(&mut self, steps: &mut u64, slot: &mut Option<Self::Value>) -> Stop {
        self.push(steps, |value| {
            assign(slot, value);
            ControlFlow::Break(Stop::Value)
        })
    }
}

/// A loop whose types are hidden.
pub(crate) trait Whole<T> {
    /// See [`Fused::push`].
    fn push_all(&mut self, steps: &mut u64, sink: &mut dyn FnMut(&T) -> ControlFlow<Stop>) -> Stop;

    /// See [`Fused::push_to_the_end`].
    fn push_rest(self: Box<Self>, sink: &mut dyn FnMut(&T) -> ControlFlow<Stop>) -> Stop;

    /// See [`Fused::draw`].
    fn draw_one(&mut self, steps: &mut u64, slot: &mut Option<T>) -> Stop;
}

impl<C: Fused> Whole<C::Value> for C {
    fn push_all(&mut self, steps: &mut u64, sink: &mut dyn FnMut(&C::Value) -> ControlFlow<Stop>) -> Stop {
        self.push(steps, sink)
    }

    fn push_rest(self: Box<Self>, sink: &mut dyn FnMut(&C::Value) -> ControlFlow<Stop>) -> Stop {
        (*self).push_to_the_end(sink)
    }

    fn draw_one(&mut self, steps: &mut u64, slot: &mut Option<C::Value>) -> Stop {
        self.draw(steps, slot)
    }
}

impl<T: Clone + 'static> Fused for Box<dyn Whole<T>> {
    type Value = T;

    fn push(&mut self, steps: &mut u64, mut sink: impl FnMut(&T) -> ControlFlow<Stop>) -> Stop {
        (**self).push_all(steps, &mut sink)
    }

    fn push_to_the_end(self, mut sink: impl FnMut(&T) -> ControlFlow<Stop>) -> Stop {
        self.push_rest(&mut sink)
    }

    fn draw(&mut self, steps: &mut u64, slot: &mut Option<T>) -> Stop {
        (**self).draw_one(steps, slot)
    }
}
