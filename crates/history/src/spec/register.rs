//! A register, with or without compare-and-set: a read returns the value written last.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::{Value, Values};

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    pub(crate) initial: Value,
    /// Whether it has compare-and-set.
    pub(crate) cas: bool,
}

impl Spec for Register {
    type State = Value;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Value {
        self.initial
    }

    fn step(&self, &held: &Value, call: &Call<'_>) -> Option<Value> {
        match call.op {
            Op::READ => call.answers(held).then_some(held),
            Op::WRITE => Some(call.input),
            _ => {
                let [old, new] = call.values.as_pair(call.input)?;
                let done = held == old;
                call.answers(done.into()).then_some(if done { new } else { held })
            }
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::READ || call.op == Op::CAS && call.output == Some(Value::FALSE)
    }

    /// The writes and reads of a value. Without them, the other reads still return the value written last. With
    /// compare-and-set there are no groups, because a compare-and-set depends on the previous value.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        match call.op {
            _ if self.cas => None,
            Op::READ => call.output,
            _ => Some(call.input),
        }
    }

    fn describe(&self, state: &Value, values: &Values) -> String {
        values.show(*state).to_string()
    }
}
