//! The operations of each built-in specification, and the types of their inputs and outputs.

use thiserror::Error;

use super::transaction::access;
use crate::model::Kind;
use crate::operation::{Op, Operation, Status};
use crate::value::{Datum, Value, Values};

/// The specification does not have the operation, or not with these values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The specification has no operation of this name.
    #[error("the specification {kind} has no operation `{name}`; it has {known}{}", elsewhere(.name))]
    Operation {
        /// The specification.
        kind: Kind,
        /// The name of the operation.
        name: String,
        /// The names that it has.
        known: String,
    },
    /// The input is not of the type that the operation takes.
    #[error("the input of `{name}` must be {expected}, but is {found}")]
    Input {
        /// The name of the operation.
        name: String,
        /// The expected input.
        expected: &'static str,
        /// The input found.
        found: String,
    },
    /// The output is not of the type that the operation returns.
    #[error("the output of `{name}` must be {expected}, but is {found}")]
    Output {
        /// The name of the operation.
        name: String,
        /// The expected output.
        expected: &'static str,
        /// The output found.
        found: String,
    },
}

/// The specifications that have this operation.
fn elsewhere(name: &str) -> String {
    let has = |kind: &&Kind| kind.operations().iter().any(|op| Op::NAMES[usize::from(op.0)] == name);
    let kinds: Vec<&str> = Kind::ALL.iter().filter(has).map(|kind| kind.name()).collect();
    if kinds.is_empty() { String::new() } else { format!(" (`{name}` is one of {})", kinds.join(", ")) }
}

/// A set of permitted values.
#[derive(Clone, Copy)]
enum Shape {
    Any,
    Nothing,
    Something,
    Bool,
    BoolOrNull,
    Int,
    IntOrNull,
    IntOrBoolOrNull,
    Text,
    List,
    Pair,
    Steps,
    StepsOrNull,
}

impl Shape {
    fn expected(self) -> &'static str {
        match self {
            Shape::Any => "anything",
            Shape::Nothing => "null, for it takes none",
            Shape::Something => "a value other than null",
            Shape::Bool => "true or false",
            Shape::BoolOrNull => "true, false or null",
            Shape::Int => "an integer",
            Shape::IntOrNull => "an integer or null",
            Shape::IntOrBoolOrNull => "an integer, true, false or null",
            Shape::Text => "a text",
            Shape::List => "a list",
            Shape::Pair => "a list of two: what is expected and what is to be written",
            Shape::Steps => "a list of [\"read\", key, value] and [\"write\", key, value]",
            Shape::StepsOrNull => "null, or the list of the input with the values that were read",
        }
    }

    fn fits(self, value: Value, values: &Values) -> bool {
        match (self, values.get(value)) {
            (Shape::Any, _)
            | (Shape::Bool | Shape::BoolOrNull | Shape::IntOrBoolOrNull, Datum::Bool(_))
            | (Shape::Int | Shape::IntOrNull | Shape::IntOrBoolOrNull, Datum::Int(_))
            | (Shape::Text, Datum::Text(_))
            | (Shape::List, Datum::List(_))
            | (Shape::Pair, Datum::List([_, _])) => true,
            (Shape::Something, datum) => datum != Datum::Null,
            (Shape::Steps | Shape::StepsOrNull, Datum::List(steps)) => {
                steps.iter().all(|&step| access(step, values).is_some())
            }
            (
                Shape::Nothing | Shape::BoolOrNull | Shape::IntOrNull | Shape::IntOrBoolOrNull | Shape::StepsOrNull,
                Datum::Null,
            ) => true,
            _ => false,
        }
    }
}

/// The shapes of the input and the output.
fn shapes(kind: Kind, op: Op, input: Value) -> (Shape, Shape) {
    match (kind, op) {
        (Kind::Log, Op::READ) if input.is_null() => (Shape::Any, Shape::List),
        (Kind::Log, Op::READ) => (Shape::Int, Shape::Any),
        (Kind::Log, Op::APPEND) => (Shape::Something, Shape::IntOrNull),
        (Kind::KeyValue, Op::APPEND) => (Shape::Text, Shape::Any),
        (Kind::EventCount | Kind::FetchAdd, Op::READ) => (Shape::Nothing, Shape::Int),
        (_, Op::CAS) => (Shape::Pair, Shape::Bool),
        (_, Op::TXN) => (Shape::Steps, Shape::StepsOrNull),
        (Kind::Counter, Op::ADD) => (Shape::IntOrNull, Shape::Any),
        (_, Op::GET) => (Shape::Nothing, Shape::Int),
        (_, Op::READ | Op::DEQUEUE | Op::POP | Op::DELETE_MIN) => (Shape::Nothing, Shape::Any),
        (_, Op::FETCH_ADD) => (Shape::IntOrNull, Shape::Int),
        (_, Op::ADVANCE) => (Shape::IntOrNull, Shape::Any),
        (_, Op::WAIT) => (Shape::Int, Shape::IntOrBoolOrNull),
        (Kind::Semaphore, Op::ACQUIRE) => (Shape::IntOrNull, Shape::BoolOrNull),
        (Kind::Semaphore, Op::RELEASE) => (Shape::IntOrNull, Shape::Any),
        (_, Op::ACQUIRE | Op::ACQUIRE_READ) => (Shape::Any, Shape::BoolOrNull),
        (_, Op::ENQUEUE | Op::PUSH | Op::INSERT | Op::PUBLISH) => (Shape::Something, Shape::BoolOrNull),
        (Kind::Set, Op::ADD | Op::REMOVE) => (Shape::Something, Shape::BoolOrNull),
        (_, Op::CONTAINS) => (Shape::Something, Shape::Bool),
        (_, Op::FREE) => (Shape::Something, Shape::Any),
        _ => (Shape::Any, Shape::Any),
    }
}

/// Whether the operation has no input.
#[cfg(feature = "formats")]
pub(crate) fn takes_nothing(kind: Kind, op: Op) -> bool {
    matches!(shapes(kind, op, Value::NULL).0, Shape::Nothing)
}

/// Whether the specification has the operation, with this input and output.
pub(crate) fn accept(kind: Kind, operation: &Operation, name: &str, values: &Values) -> Result<(), Misuse> {
    if !kind.operations().contains(&operation.op) {
        let known: Vec<_> = kind.operations().iter().map(|op| Op::NAMES[usize::from(op.0)]).collect();
        return Err(Misuse::Operation { kind, name: name.to_owned(), known: known.join(", ") });
    }
    let (input, output) = shapes(kind, operation.op, operation.input);
    let show = |value| values.show(value).to_string();
    if !input.fits(operation.input, values) {
        let found = show(operation.input);
        return Err(Misuse::Input { name: name.to_owned(), expected: input.expected(), found });
    }
    let answered = operation.status == Status::Ok && operation.ret.is_some();
    if answered && !output.fits(operation.output, values) {
        let found = show(operation.output);
        return Err(Misuse::Output { name: name.to_owned(), expected: output.expected(), found });
    }
    Ok(())
}
