//! Sources: streams of values from outside the program.

use std::rc::Rc;

use crate::fuse::{Fused, Iter, Read};
use crate::graph::Operator;
use crate::run::{RunError, Work};

use super::chain::Chain;
use super::draft::Program;

impl Program {
    /// Creates a stream of an iterator's values.
    ///
    /// The receiver of a channel is an iterator, so threads, rings and flows can be sources: see the example
    /// `sources` of the crate `millstream`.
    pub fn iter<I>(&self, label: &str, values: I) -> Chain<impl Fused<Value = I::Item> + use<I>>
    where
        I: IntoIterator,
        I::IntoIter: 'static,
        I::Item: Clone + 'static,
    {
        self.source::<I::Item, _>(label, Iter { values: values.into_iter(), uncounted: Rc::clone(&self.steps) })
    }

    /// Creates a stream of the values that `read` writes, until `read` returns `false`. Each call of `read` overwrites the last
    /// value. If the value can reuse its memory, as a line can, no read needs an allocation.
    pub fn read<T, E, F>(&self, label: &str, mut read: F) -> Chain<impl Fused<Value = T> + use<T, E, F>>
    where
        T: Clone + Default + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
        F: FnMut(&mut T) -> Result<bool, E> + 'static,
    {
        let name = label.to_owned();
        let read = move |value: &mut T| {
            read(value).map_err(|error| RunError::Source { label: name.clone(), error: error.into() })
        };
        self.source(label, Read { value: T::default(), read, uncounted: Rc::clone(&self.steps) })
    }

    fn source<T, C: Fused<Value = T>>(&self, label: &str, code: C) -> Chain<C> {
        let node = self.add(Operator::Source, &[], label, size_of::<T>(), Work::Fused);
        Chain::new(self, node, code)
    }
}
