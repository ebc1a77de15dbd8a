//! A semaphore: permits are acquired if enough are available, and released.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The permits. A process may release permits that it has not acquired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Semaphore {
    pub(crate) permits: u64,
}

impl Spec for Semaphore {
    /// The number of available permits.
    type State = i128;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> i128 {
        i128::from(self.permits)
    }

    fn step(&self, &permits: &i128, call: &Call<'_>) -> Option<i128> {
        match call.op {
            Op::ACQUIRE if call.amount() <= permits => call.agrees().then(|| permits - call.amount()),
            Op::ACQUIRE => call.answers(Value::FALSE).then_some(permits),
            _ => Some(permits + call.amount()),
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::ACQUIRE && call.output == Some(Value::FALSE)
    }
}
