//! An event count: a number that increases. Processes wait until it differs from the value that they read (Reed and
//! Kanodia 1979).

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The count. A wait that returns `false` has timed out, which is legal at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventCount {
    pub(crate) initial: i128,
}

impl Spec for EventCount {
    type State = i128;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> i128 {
        self.initial
    }

    fn step(&self, &count: &i128, call: &Call<'_>) -> Option<i128> {
        match call.op {
            Op::READ => call.answers_int(count).then_some(count),
            Op::ADVANCE => Some(count + call.amount()),
            _ if call.output == Some(Value::FALSE) => Some(count),
            _ => (call.amount() != count).then_some(count),
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        matches!(call.op, Op::READ | Op::WAIT)
    }
}
