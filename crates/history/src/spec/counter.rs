//! A number with addition. `get` and `read` return the number, and `fetch_add` returns its previous value.

use super::{Call, Spec};
use crate::operation::Op;

/// The number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub(crate) initial: i128,
}

impl Spec for Counter {
    type State = i128;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> i128 {
        self.initial
    }

    fn step(&self, &count: &i128, call: &Call<'_>) -> Option<i128> {
        match call.op {
            Op::ADD => Some(count + call.amount()),
            Op::FETCH_ADD => call.answers_int(count).then(|| count + call.amount()),
            _ => call.answers_int(count).then_some(count),
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        matches!(call.op, Op::GET | Op::READ)
    }
}
