//! Sequential specifications: the behaviour of an object without concurrency.
//!
//! A [`Model`](crate::Model) selects a built-in one. A custom specification is a type that implements [`Spec`], passed
//! to [`check_spec`](crate::check_spec):
//!
//! ```
//! use millstream_history::{Builder, Call, Op, Operation, Options, Spec, Value, check_spec};
//!
//! /// A flag that `set` raises, returning whether it was up before.
//! struct TestAndSet;
//!
//! impl Spec for TestAndSet {
//!     type State = bool;
//!
//!     fn initial(&self) -> bool {
//!         false
//!     }
//!
//!     fn step(&self, up: &bool, call: &Call<'_>) -> Option<bool> {
//!         call.answers(Value::from(*up)).then_some(true)
//!     }
//! }
//!
//! let mut builder = Builder::new();
//! let set = builder.op("set");
//! for (process, was_up) in [(0, false), (1, false)] {
//!     builder.push(Operation { output: was_up.into(), ret: Some(1), ..Operation::new(process, set, Value::NULL) })?;
//! }
//! let verdict = check_spec(&builder.finish()?, &TestAndSet, &Options::default());
//! assert_eq!(verdict.holds(), Some(false), "both found the flag down");
//! # Ok::<(), millstream_history::Contradiction>(())
//! ```

mod allocator;
mod choose;
mod counter;
mod event_count;
mod key_value;
mod list;
mod log;
mod mutex;
mod numbered;
mod priority_queue;
mod product;
mod queue;
mod register;
mod ring;
mod rw_lock;
mod semaphore;
mod set;
mod shape;
mod stack;
mod transaction;

use std::fmt::Debug;
use std::hash::Hash;

use crate::operation::Op;
use crate::value::{Datum, Value, Values};

pub(crate) use allocator::Allocator;
pub(crate) use choose::{Subject, with_spec};
pub(crate) use counter::Counter;
pub(crate) use event_count::EventCount;
pub(crate) use key_value::KeyValue;
pub(crate) use log::Log;
pub(crate) use mutex::Mutex;
pub(crate) use numbered::{DynSpec, States};
pub(crate) use priority_queue::PriorityQueue;
use product::Product;
pub(crate) use queue::Queue;
pub(crate) use register::Register;
pub(crate) use ring::Ring;
pub(crate) use rw_lock::RwLock;
pub(crate) use semaphore::Semaphore;
pub(crate) use set::Set;
pub use shape::Misuse;
pub(crate) use shape::accept;
#[cfg(feature = "formats")]
pub(crate) use shape::takes_nothing;
pub(crate) use stack::Stack;
pub(crate) use transaction::MultiRegister;

/// One operation, as a specification sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The process that called it.
    pub process: u32,
    /// The name of the operation.
    pub op: Op,
    /// The object, in a history of several objects.
    pub key: Option<Value>,
    /// The input.
    pub input: Value,
    /// The answer. `None` if the answer is unknown: then any answer is possible.
    pub output: Option<Value>,
    /// The table of the history's values.
    pub values: &'a Values,
}

impl Call<'_> {
    /// Whether the operation may have returned this value.
    pub fn answers(&self, output: Value) -> bool {
        self.output.is_none_or(|known| known == output)
    }

    /// Whether the operation may have returned true. A null answer means true as well.
    pub(crate) fn agrees(&self) -> bool {
        self.output != Some(Value::FALSE)
    }

    /// Whether the operation may have returned this integer.
    pub(crate) fn answers_int(&self, output: i128) -> bool {
        self.output.is_none_or(|known| self.values.get(known) == Datum::Int(output))
    }

    /// The integer input; 1 if there is none.
    pub(crate) fn amount(&self) -> i128 {
        match self.values.get(self.input) {
            Datum::Int(amount) => amount,
            _ => 1,
        }
    }
}

/// The identity of an independent object: see [`Spec::object`].
pub(crate) type Object = [Option<Value>; 2];

/// The order in which values come out of a container: see [`Spec::discipline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// The order in which they went in, as in a queue.
    FirstInFirstOut,
    /// The reverse order, as in a stack.
    LastInFirstOut,
    /// An order that depends only on the values, as in a priority queue.
    ByValue,
    /// The order in which they went in, for each consumer separately: every consumer takes all values, from the first
    /// on. See [`Spec::consumer`].
    Broadcast,
}

/// A sequential specification: the states of an object, and the effect of each operation on them.
pub trait Spec {
    /// The object's state. The check clones, compares and hashes states often: keep them small.
    type State: Clone + Eq + Hash + Debug;

    /// Whether [`step`](Self::step) depends on [`Call::process`]. If not, the check is faster, because it treats calls
    /// of different processes as equal.
    const SEES_PROCESS: bool = true;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after the operation; `None` if the operation cannot return its answer in this state.
    fn step(&self, state: &Self::State, call: &Call<'_>) -> Option<Self::State>;

    /// Calls `next` with each state to which the operation can lead; by default, with the result of
    /// [`step`](Self::step).
    ///
    /// Few specifications have a choice that the answer does not show. An allocator has one when an allocation is
    /// pending: the object that it took is unknown.
    fn successors(&self, state: &Self::State, call: &Call<'_>, next: &mut dyn FnMut(Self::State)) {
        if let Some(state) = self.step(state, call) {
            next(state);
        }
    }

    /// The identity of the operation's object: by default, the key. Objects share no state, and each is checked alone.
    fn object(&self, call: &Call<'_>) -> [Option<Value>; 2] {
        [call.key, None]
    }

    /// Whether the operation, with its answer, never changes the state. If the answer is unknown, this must be true of
    /// every answer. A pure operation is checked faster, and can be left out of a counter-example.
    fn pure(&self, call: &Call<'_>) -> bool {
        let _ = call;
        false
    }

    /// The group of the operation; by default none.
    ///
    /// If a whole group is removed from a legal history, the remaining operations must still be legal. For a queue, a
    /// group consists of the operations on one value. A counter-example leaves out whole groups only.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        let _ = call;
        None
    }

    /// Whether the operation depends on the whole contents of the object, as one with the answer "full" does. While
    /// such an operation remains, no group can be left out.
    fn pins(&self, call: &Call<'_>) -> bool {
        let _ = call;
        false
    }

    /// The discipline, if the object is a container. It lets the search look ahead.
    ///
    /// An operation with an input inserts this value, unless it returns `false`. An operation without an input removes
    /// the value that it returns, unless it returns null. No other operation may change the contents. In a broadcast,
    /// [`consumer`](Self::consumer) distinguishes the two kinds of operation instead.
    fn discipline(&self) -> Option<Discipline> {
        None
    }

    /// For a [`Broadcast`](Discipline::Broadcast), the consumer that takes the operation's output (nothing, if the
    /// output is null). `None` if the operation publishes a value.
    fn consumer(&self, call: &Call<'_>) -> Option<Value> {
        let _ = call;
        None
    }

    /// The approximate size of a state in bytes, for the memory limit; by default the size of the type itself.
    fn state_bytes(&self, state: &Self::State) -> usize {
        size_of_val(state)
    }

    /// The state as text, for a counter-example that starts from it; by default the output of `Debug`.
    fn describe(&self, state: &Self::State, values: &Values) -> String {
        let _ = values;
        format!("{state:?}")
    }
}
