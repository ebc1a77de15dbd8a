//! Sources: streams of values from outside the program.

use std::cell::RefCell;
use std::rc::Rc;

use crate::graph::Operator;
use crate::run::{RunError, Work};

use super::draft::Program;
use super::stream::Stream;

impl Program {
    /// Creates a stream of an iterator's values.
    ///
    /// The receiver of a channel is an iterator, so threads, rings and flows can be sources: see the example
    /// `sources` of the crate `millstream`.
    pub fn iter<I>(&self, label: &str, values: I) -> Stream<I::Item>
    where
        I: IntoIterator,
        I::IntoIter: 'static,
        I::Item: Clone + 'static,
    {
        let place = Rc::new(RefCell::new(None));
        let (mut values, into) = (values.into_iter(), Rc::clone(&place));
        let actor = Box::new(move |_| {
            let Some(value) = values.next() else { return Ok(false) };
            *into.borrow_mut() = Some(value);
            Ok(true)
        });
        let size = size_of::<I::Item>();
        let node = self.add(Operator::Source, &[], label, size, Work::Actor(actor, Vec::new()));
        Stream::new(self, node, place)
    }

    /// Creates a stream of the values that `read` writes, each in place of the last, until `read` returns `false`. A
    /// value that reuses its memory, such as a line, is read without an allocation.
    pub fn read<T, E>(&self, label: &str, mut read: impl FnMut(&mut T) -> Result<bool, E> + 'static) -> Stream<T>
    where
        T: Clone + Default + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let place = Rc::new(RefCell::new(None));
        let (into, name) = (Rc::clone(&place), label.to_owned());
        let actor = Box::new(move |_| {
            let mut value = into.borrow_mut();
            read(value.get_or_insert_with(T::default))
                .map_err(|error| RunError::Source { label: name.clone(), error: error.into() })
        });
        let node = self.add(Operator::Source, &[], label, size_of::<T>(), Work::Actor(actor, Vec::new()));
        Stream::new(self, node, place)
    }
}
