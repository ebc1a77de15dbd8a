//! Zips and merges.

use std::cell::RefCell;
use std::rc::Rc;

use crate::graph::Operator;
use crate::run::{Inlet, Queue, Shared, Turn, Work};

use super::draft::queue;
use super::stream::{Stream, take};

impl<T: Clone + 'static> Stream<T> {
    /// Pairs the values of this stream with those of another; the result ends with the shorter stream.
    #[must_use]
    pub fn zip<U: Clone + 'static>(&self, other: &Stream<U>) -> Stream<(T, U)> {
        self.zip_with(other, |value, other| (value.clone(), other.clone()))
    }

    /// Computes a value from each pair of values of this stream and another; the result ends with the shorter stream.
    pub fn zip_with<U: Clone + 'static, V: Clone + 'static>(
        &self,
        other: &Stream<U>,
        mut join: impl FnMut(&T, &U) -> V + 'static,
    ) -> Stream<V> {
        assert!(self.program.is(&other.program), "streams of two programs cannot be zipped");
        let ((left, any_left), (right, any_right)) = (queue(self), queue(other));
        let slot: Shared<V> = Rc::new(RefCell::new(None));
        let into = Rc::clone(&slot);
        let actor = Box::new(move |_: &Turn| {
            let (mut left, mut right) = (left.borrow_mut(), right.borrow_mut());
            *into.borrow_mut() = Some(join(left.front(), right.front()));
            left.leave()?;
            right.leave()?;
            Ok(())
        });
        let work = Work::Actor(actor, vec![any_left, any_right]);
        let node = self.program.add(Operator::Zip, &[self.node, other.node], "zip", size_of::<V>(), work);
        Stream::new(&self.program, node, slot)
    }

    /// Computes a value from one value of every stream. `join` overwrites its last result. The result ends with the shortest
    /// stream. `join` may swap an input value with another value, whose memory the queue then reuses.
    ///
    /// # Panics
    /// Panics if there are no streams, or if they belong to different programs.
    pub fn zip_all<U: Clone + Default + 'static>(
        streams: &[Self],
        mut join: impl FnMut(usize, &mut T, &mut U) + 'static,
    ) -> Stream<U> {
        let (program, inputs, queues, any) = inputs(streams);
        let slot: Shared<U> = Rc::new(RefCell::new(None));
        let into = Rc::clone(&slot);
        let actor = Box::new(move |_: &Turn| {
            let mut into = into.borrow_mut();
            let into = into.get_or_insert_with(U::default);
            for (input, queue) in queues.iter().enumerate() {
                let mut queue = queue.borrow_mut();
                join(input, queue.front_mut(), into);
                queue.leave()?;
            }
            Ok(())
        });
        let work = Work::Actor(actor, any);
        let node = program.add(Operator::Zip, &inputs, "zip", size_of::<U>(), work);
        Stream::new(&program, node, slot)
    }

    /// Alternates between the values of this stream and those of another. The result ends when the next value would come
    /// from a stream that has ended.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self::merge_by(&[self.clone(), other.clone()], &[0, 1])
    }

    /// Takes one value at a time from the streams in the order of `turns`, which repeats forever. The result ends when the
    /// next value would come from a stream that has ended.
    ///
    /// # Panics
    /// Panics if there are no streams, if they belong to different programs, or if `turns` leaves out a stream or has a
    /// number without a stream.
    #[must_use]
    pub fn merge_by(streams: &[Self], turns: &[usize]) -> Self {
        let (program, inputs, queues, any) = inputs(streams);
        let slot: Shared<T> = Rc::new(RefCell::new(None));
        let into = Rc::clone(&slot);
        let actor = Box::new(move |turn: &Turn| {
            let port = turn.port.expect("a merge takes from one input at a time");
            take(&mut queues[port].borrow_mut(), &into)?;
            Ok(())
        });
        let work = Work::Actor(actor, any);
        let node = program.add(Operator::Merge(turns.to_vec()), &inputs, "merge", size_of::<T>(), work);
        Self::new(&program, node, slot)
    }
}

type Inputs<T> = (super::Program, Vec<usize>, Vec<Rc<RefCell<Queue<T>>>>, Vec<Inlet>);

fn inputs<T: Clone + 'static>(streams: &[Stream<T>]) -> Inputs<T> {
    let program = streams.first().expect("a join has inputs").program.clone();
    assert!(streams.iter().all(|stream| program.is(&stream.program)), "streams of two programs cannot be joined");
    let (queues, any) = streams.iter().map(queue).unzip();
    (program, streams.iter().map(|stream| stream.node).collect(), queues, any)
}
