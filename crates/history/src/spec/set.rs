//! A set: each element is in it at most once. Elements are independent, so each is a separate object.

use super::{Call, Object, Spec};
use crate::operation::Op;
use crate::value::{Value, Values};

/// One element of the set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set;

impl Spec for Set {
    /// Whether the element is in the set.
    type State = bool;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &inside: &bool, call: &Call<'_>) -> Option<bool> {
        let (answer, after) = match call.op {
            Op::ADD => (!inside, true),
            Op::REMOVE => (inside, false),
            _ => (inside, inside),
        };
        (call.answers(answer.into()) || call.output == Some(Value::NULL)).then_some(after)
    }

    fn object(&self, call: &Call<'_>) -> Object {
        [call.key, Some(call.input)]
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::CONTAINS || call.output == Some(Value::FALSE)
    }

    fn describe(&self, state: &bool, _: &Values) -> String {
        if *state { "in the set" } else { "not in the set" }.into()
    }
}
