//! Streams, and the operators that take one value at a time.

use std::cell::RefCell;
use std::fmt::Debug;
use std::hash::Hash;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use crate::clock::{Pass, WordError};
use crate::graph::{NodeId, Operator};
use crate::run::{Disk, MakeDisk, RunError, Shared, SpillQueue, Stored, Turn, Work, assign};

use super::chain::Held;
use super::draft::{Program, queue};

/// A stream of values of a [`Program`].
///
/// Every method derives a stream from this one. A stream forks if two methods are called on it; both results then get all of its
/// values. A stream with one reader is faster as a [`Chain`](crate::Chain).
///
/// | method | clock: values out for each value in |
/// | --- | --- |
/// | [`map`](Self::map), [`scan`](Self::scan), [`fold_by_key`](Self::fold_by_key) | one |
/// | [`every`](Self::every), [`skip`](Self::skip), [`keep`](Self::keep), [`windows`](Self::windows) | set by the arguments |
/// | [`filter`](Self::filter), [`split`](Self::split) | decided by the data |
/// | [`repeat`](Self::repeat), [`prefix`](Self::prefix) | several; some before the first |
/// | [`zip`](Self::zip), [`merge`](Self::merge) | these take from several streams |
/// | [`hold`](Self::hold), [`align`](Self::align) | the clock of another stream |
/// | [`reduce`](Self::reduce) | one at the end |
/// | [`buffer`](Self::buffer), [`spill`](Self::spill) | one |
///
/// Methods panic if they join streams of two programs, or if a number is out of the range that
/// [`Graph::add`](crate::graph::Graph::add) accepts.
#[derive(Clone)]
pub struct Stream<T> {
    pub(super) program: Program,
    pub(super) node: NodeId,
    pub(super) slot: Shared<T>,
    /// Creates a queue on disk; `None` unless this stream spills its values.
    pub(super) spill: Option<MakeDisk<T>>,
    /// The loop of a chain, if this stream is the chain itself, with no operator after it. The program owns the loop.
    pub(super) whole: Weak<Held<T>>,
}

impl<T: Clone + 'static> Stream<T> {
    pub(super) fn new(program: &Program, node: NodeId, slot: Shared<T>) -> Self {
        Self { program: program.clone(), node, slot, spill: None, whole: Weak::new() }
    }

    pub(super) fn of_chain(program: &Program, node: NodeId, slot: Shared<T>, whole: Weak<Held<T>>) -> Self {
        Self { whole, ..Self::new(program, node, slot) }
    }

    /// Returns the number of the stream's node in its graph.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Adds an operator that computes a value from each value, and overwrites its last result.
    pub(super) fn each<U: Clone + 'static>(
        &self,
        label: &str,
        size: usize,
        mut compute: impl FnMut(&T, &mut Option<U>) -> Result<(), RunError> + 'static,
    ) -> Stream<U> {
        let slot: Shared<U> = Rc::new(RefCell::new(None));
        let (from, into) = (Rc::clone(&self.slot), Rc::clone(&slot));
        let step = Box::new(move || {
            let from = from.borrow();
            compute(from.as_ref().expect("a value was given"), &mut into.borrow_mut())?;
            Ok(true)
        });
        let node = self.program.add(Operator::Each, &[self.node], label, size, Work::Branch(step));
        Stream::new(&self.program, node, slot)
    }

    /// Adds an operator that passes or drops each value.
    pub(super) fn through(&self, operator: Operator, label: &str, work: Work) -> Self {
        let node = self.program.add(operator, &[self.node], label, size_of::<T>(), work);
        Self { node, whole: Weak::new(), ..self.clone() }
    }

    /// Computes a value from each value.
    pub fn map<U: Clone + 'static>(&self, mut map: impl FnMut(&T) -> U + 'static) -> Stream<U> {
        self.each("map", size_of::<U>(), move |value, into| {
            *into = Some(map(value));
            Ok(())
        })
    }

    /// Computes a value from each value. `map` overwrites its last result, and may fail.
    ///
    /// A result that reuses its memory, such as a `String`, costs no allocation.
    pub fn map_into<U: Clone + Default + 'static>(
        &self,
        label: &str,
        mut map: impl FnMut(&T, &mut U) -> Result<(), String> + 'static,
    ) -> Stream<U> {
        let name = label.to_owned();
        self.each(label, size_of::<U>(), move |value, into| {
            map(value, into.get_or_insert_with(U::default)).map_err(|message| result_of(&name, message))
        })
    }

    /// Produces the state after each value.
    pub fn scan<S: Clone + 'static>(&self, first: S, step: impl FnMut(&mut S, &T) + 'static) -> Stream<S> {
        self.each("scan", size_of::<S>(), scanned(first, step))
    }

    /// For each value, updates the state of the value's key, and produces the key and the state.
    ///
    /// There are at most `max_keys` keys. At a further key, the run fails with [`RunError::TooManyKeys`].
    pub fn fold_by_key<K: Hash + Eq + Clone + 'static, S: Clone + 'static>(
        &self,
        max_keys: usize,
        key: impl FnMut(&T) -> K + 'static,
        first: S,
        step: impl FnMut(&mut S, &T) + 'static,
    ) -> Stream<(K, S)> {
        self.each("fold_by_key", size_of::<(K, S)>(), fold(max_keys, key, first, step))
    }

    /// Keeps the values for which `keep` returns `true`.
    pub fn filter(&self, mut keep: impl FnMut(&T) -> bool + 'static) -> Self {
        let from = Rc::clone(&self.slot);
        let step = move || Ok(keep(from.borrow().as_ref().expect("a value was given")));
        self.through(Operator::Pass(Pass::Data), "filter", Work::Branch(Box::new(step)))
    }

    /// Keeps the values for which `keep` returns `true`. `keep` may fail.
    pub fn try_filter(&self, label: &str, mut keep: impl FnMut(&T) -> Result<bool, String> + 'static) -> Self {
        let (from, name) = (Rc::clone(&self.slot), label.to_owned());
        let step = move || {
            keep(from.borrow().as_ref().expect("a value was given"))
                .map_err(|message| Box::new(result_of(&name, message)))
        };
        self.through(Operator::Pass(Pass::Data), label, Work::Branch(Box::new(step)))
    }

    /// Splits the stream into the values for which `choose` returns `true` and those for which it returns `false`.
    #[must_use]
    pub fn split(&self, choose: impl Fn(&T) -> bool + Clone + 'static) -> (Self, Self) {
        let other = choose.clone();
        (self.filter(move |value| choose(value)), self.filter(move |value| !other(value)))
    }

    /// Keeps the first of every `n` values.
    #[must_use]
    pub fn every(&self, n: u64) -> Self {
        self.every_from(n, 0)
    }

    /// Keeps one of every `n` values, beginning with number `offset`, counted from 0.
    #[must_use]
    pub fn every_from(&self, n: u64, offset: u64) -> Self {
        let label = format!("every({n})");
        self.through(Operator::Pass(Pass::Every { first: offset, step: n }), &label, Work::Pass)
    }

    /// Drops the first `n` values.
    #[must_use]
    pub fn skip(&self, n: u64) -> Self {
        self.through(Operator::Pass(Pass::Every { first: n, step: 1 }), &format!("skip({n})"), Work::Pass)
    }

    /// Keeps the values whose positions have a 1 in a word, such as `0(110)`. The part in parentheses repeats forever.
    ///
    /// # Errors
    /// Returns an error if the text is not such a word.
    pub fn keep(&self, word: &str) -> Result<Self, WordError> {
        let pass = Pass::word(word)?;
        Ok(self.through(Operator::Pass(pass), &format!("keep({word})"), Work::Pass))
    }

    /// Produces each value `n` times.
    #[must_use]
    pub fn repeat(&self, n: u64) -> Self {
        let (input, any) = queue(self);
        let slot: Shared<T> = Rc::new(RefCell::new(None));
        let into = Rc::clone(&slot);
        let actor = Box::new(move |turn: &Turn| {
            if turn.phase == 0 {
                take(&mut input.borrow_mut(), &into)?;
            }
            Ok(())
        });
        let work = Work::Actor(actor, vec![any]);
        let node = self.program.add(Operator::Repeat(n), &[self.node], &format!("repeat({n})"), size_of::<T>(), work);
        Self::new(&self.program, node, slot)
    }

    /// Produces the given values first, then the values of the stream.
    #[must_use]
    pub fn prefix(&self, values: Vec<T>) -> Self {
        let (input, any) = queue(self);
        let slot: Shared<T> = Rc::new(RefCell::new(None));
        let (into, count) = (Rc::clone(&slot), values.len() as u64);
        let actor = Box::new(move |turn: &Turn| {
            match values.get(turn.phase as usize) {
                Some(value) => assign(&mut into.borrow_mut(), value),
                None => take(&mut input.borrow_mut(), &into)?,
            }
            Ok(())
        });
        let work = Work::Actor(actor, vec![any]);
        let label = format!("prefix({count})");
        let node = self.program.add(Operator::Prefix(count), &[self.node], &label, size_of::<T>(), work);
        Self::new(&self.program, node, slot)
    }

    /// Produces the final state, at the end of the stream.
    pub fn reduce<S: Clone + 'static>(&self, first: S, mut step: impl FnMut(&mut S, &T) + 'static) -> Stream<S> {
        self.try_reduce("reduce", first, move |state, value| {
            step(state, value);
            Ok(())
        })
    }

    /// Produces the final state, at the end of the stream. `step` may fail.
    pub fn try_reduce<S: Clone + 'static>(
        &self,
        label: &str,
        first: S,
        mut step: impl FnMut(&mut S, &T) -> Result<(), String> + 'static,
    ) -> Stream<S> {
        let name = label.to_owned();
        let (input, any) = queue(self);
        let slot: Shared<S> = Rc::new(RefCell::new(Some(first)));
        let into = Rc::clone(&slot);
        let actor = Box::new(move |turn: &Turn| {
            if !turn.gives {
                let mut input = input.borrow_mut();
                let mut state = into.borrow_mut();
                step(state.as_mut().expect("the state is there"), input.front())
                    .map_err(|message| result_of(&name, message))?;
                input.leave()?;
            }
            Ok(())
        });
        let work = Work::Actor(actor, vec![any]);
        let node = self.program.add(Operator::Reduce, &[self.node], label, size_of::<S>(), work);
        Stream::new(&self.program, node, slot)
    }

    /// Lets up to `values` values wait in front of the next join. There is no proof that this room is enough; if it is not, the
    /// run fails with [`RunError::BufferFull`].
    ///
    /// Operators between a buffer and its join may drop values but not change them.
    #[must_use]
    pub fn buffer(&self, values: u64) -> Self {
        let label = format!("buffer({values})");
        self.through(Operator::Buffer(values), &label, Work::Pass)
    }

    /// Lets values wait in unnamed files in `folder` until the next join takes them.
    ///
    /// Operators between a spill and its join may drop values but not change them.
    #[must_use]
    pub fn spill(&self, folder: impl Into<PathBuf>) -> Self
    where
        T: Stored + Debug,
    {
        let folder = folder.into();
        let label = format!("spill({folder:?})");
        let spilled = self.through(Operator::Spill, &label, Work::Pass);
        let make = move || -> Box<dyn Disk<T>> { Box::new(SpillQueue::<T>::new(&label, &folder)) };
        Self { spill: Some(Rc::new(make)), ..spilled }
    }
}

/// Returns the error of a value that could not be computed.
#[cold]
pub(super) fn result_of(label: &str, message: String) -> RunError {
    RunError::Value { label: label.to_owned(), message }
}

/// Computes the states of a scan. Each state overwrites the last one.
pub(super) fn scanned<T, S>(
    first: S,
    mut step: impl FnMut(&mut S, &T),
) -> impl FnMut(&T, &mut Option<S>) -> Result<(), RunError> {
    let mut first = Some(first);
    move |value, state| {
        let state = match (&mut *state, first.take()) {
            (state, Some(first)) => state.insert(first),
            (state, None) => state.as_mut().expect("the first state is there"),
        };
        step(state, value);
        Ok(())
    }
}

/// Computes the states of keys. Each result overwrites the last one.
pub(super) fn fold<T, K: Hash + Eq + Clone, S: Clone>(
    max_keys: usize,
    mut key: impl FnMut(&T) -> K,
    first: S,
    mut step: impl FnMut(&mut S, &T),
) -> impl FnMut(&T, &mut Option<(K, S)>) -> Result<(), RunError> {
    let mut states = std::collections::HashMap::new();
    move |value, into| {
        let key = key(value);
        if states.len() >= max_keys && !states.contains_key(&key) {
            return Err(RunError::TooManyKeys { label: "fold_by_key".to_owned(), limit: max_keys });
        }
        let state = states.entry(key.clone()).or_insert_with(|| first.clone());
        step(state, value);
        *into = Some((key, state.clone()));
        Ok(())
    }
}

/// Moves the oldest value of a queue into `into`.
pub(super) fn take<T: Clone>(queue: &mut crate::run::Queue<T>, into: &Shared<T>) -> Result<(), RunError> {
    queue.take(&mut into.borrow_mut())
}
