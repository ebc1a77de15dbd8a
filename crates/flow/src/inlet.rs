//! The inlet of a stage.

use std::fmt;
use std::marker::PhantomData;

/// The inlet of a stage that takes `T`. [`FlowBuilder::inlet`](crate::FlowBuilder::inlet) declares it before the stage
/// is defined, so a stage can lead to any other stage, even to an earlier one. Copies refer to the same stage.
pub struct Inlet<T> {
    pub(crate) index: u16,
    pub(crate) flow: u64,
    pub(crate) takes: PhantomData<fn(T)>,
}

impl<T> Clone for Inlet<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Inlet<T> {}

impl<T> fmt::Debug for Inlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inlet({})", self.index)
    }
}
