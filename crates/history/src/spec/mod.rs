//! Sequential specifications: what an object does when nobody interferes.
//!
//! The built-in ones are chosen with a [`Model`](crate::Model). One of your own is a type that implements [`Spec`] and goes
//! to [`check_spec`](crate::check_spec):
//!
//! ```
//! use millstream_history::{Builder, Call, Op, Operation, Options, Spec, Value, check_spec};
//!
//! /// A flag that `set` raises, and tells whether it was up before.
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
pub(crate) use choose::{Own, Subject, Task, with_spec};
pub(crate) use counter::Counter;
pub(crate) use event_count::EventCount;
pub(crate) use key_value::KeyValue;
pub(crate) use log::Log;
pub(crate) use mutex::Mutex;
pub(crate) use priority_queue::PriorityQueue;
pub(crate) use product::Product;
pub(crate) use queue::Queue;
pub(crate) use register::Register;
pub(crate) use ring::Ring;
pub(crate) use rw_lock::RwLock;
pub(crate) use semaphore::Semaphore;
pub(crate) use set::Set;
pub use shape::Misuse;
pub(crate) use shape::{accept, takes_nothing};
pub(crate) use stack::Stack;
pub(crate) use transaction::MultiRegister;

/// One operation, as a specification sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Who asked.
    pub process: u32,
    /// What for.
    pub op: Op,
    /// The object, where the history is of several.
    pub key: Option<Value>,
    /// With what.
    pub input: Value,
    /// The answer; `None` if it is not known, and then any will do.
    pub output: Option<Value>,
    /// What the values mean.
    pub values: &'a Values,
}

impl Call<'_> {
    /// Whether the operation may have answered this.
    pub fn answers(&self, output: Value) -> bool {
        self.output.is_none_or(|known| known == output)
    }

    /// Whether it may have answered yes, where no answer means yes, too.
    pub(crate) fn agrees(&self) -> bool {
        self.output != Some(Value::FALSE)
    }

    /// Whether the operation may have answered this integer.
    pub(crate) fn answers_int(&self, output: i128) -> bool {
        self.output.is_none_or(|known| self.values.get(known) == Datum::Int(output))
    }

    /// The integer that went in, one if nothing did.
    pub(crate) fn amount(&self) -> i128 {
        match self.values.get(self.input) {
            Datum::Int(amount) => amount,
            _ => 1,
        }
    }
}

/// What tells independent objects from each other: see [`Spec::object`].
pub type Object = [Option<Value>; 2];

/// How the order of coming out follows from that of going in: see [`Spec::discipline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// A queue's.
    FirstInFirstOut,
    /// A stack's.
    LastInFirstOut,
    /// Another that has only to do with the values: a priority queue's.
    ByValue,
    /// A broadcast's: each consumer takes everything from the first on, in the order in which it was brought. See
    /// [`Spec::consumer`].
    Broadcast,
}

/// A sequential specification: the states of an object, and what each operation does to them.
pub trait Spec {
    /// The object's state. It is cloned, compared and hashed much: keep it small.
    type State: Clone + Eq + Hash + Debug;

    /// Whether [`step`](Self::step) looks at [`Call::process`]. Operations that differ in nothing else are checked faster
    /// if it does not.
    const SEES_PROCESS: bool = true;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after the operation, `None` if it cannot answer what it answered in this state.
    fn step(&self, state: &Self::State, call: &Call<'_>) -> Option<Self::State>;

    /// All states that the operation can lead to; [`step`](Self::step)'s unless you say otherwise.
    ///
    /// Few specifications have a choice that the answer does not show. That of an allocator has, when an allocation is
    /// pending and nobody knows which object it took.
    fn successors(&self, state: &Self::State, call: &Call<'_>, next: &mut dyn FnMut(Self::State)) {
        if let Some(state) = self.step(state, call) {
            next(state);
        }
    }

    /// The object that the operation is on. Objects share nothing, each is checked alone: the key tells them apart unless
    /// you say otherwise.
    fn object(&self, call: &Call<'_>) -> Object {
        [call.key, None]
    }

    /// Whether the operation, with this answer (with any, if it is not known), leaves every state as it is. Such an operation
    /// is checked faster, and can be left out of a counter-example.
    fn pure(&self, call: &Call<'_>) -> bool {
        let _ = call;
        false
    }

    /// The operations that stand and fall together: without all of a group, the others are as legal as before. For a queue,
    /// those on one value. A counter-example leaves groups out whole; by default, no operation is in any.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        let _ = call;
        None
    }

    /// Whether the operation tells of everything in the object, so that beside it no group can be left out: an answer "full".
    fn pins(&self, call: &Call<'_>) -> bool {
        let _ = call;
        false
    }

    /// That the object is a container, and in which order values come out: the search then foresees much. Operations with an
    /// input bring it, unless they answer `false`, and those without take their output, unless it is null; nothing else changes
    /// what is in it. In a broadcast, [`consumer`](Self::consumer) tells the two apart.
    fn discipline(&self) -> Option<Discipline> {
        None
    }

    /// Of a [`Broadcast`](Discipline::Broadcast), the consumer that takes with this operation: its output, unless that is null.
    /// `None` if the operation brings.
    fn consumer(&self, call: &Call<'_>) -> Option<Value> {
        let _ = call;
        None
    }

    /// About how many bytes a state takes, so that the limit of memory is kept; its own size unless you say otherwise.
    fn state_bytes(&self, state: &Self::State) -> usize {
        size_of_val(state)
    }

    /// The state in words, for a counter-example that starts from it; what `Debug` makes of it unless you say otherwise.
    fn describe(&self, state: &Self::State, values: &Values) -> String {
        let _ = values;
        format!("{state:?}")
    }
}
