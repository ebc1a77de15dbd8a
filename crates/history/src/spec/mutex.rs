//! A mutual-exclusion lock: at most one process holds it, and only that process releases it.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::{Value, Values};

/// The lock. If a process dies while it holds the lock, the lock is never released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutex;

impl Spec for Mutex {
    /// The holder.
    type State = Option<u32>;

    fn initial(&self) -> Option<u32> {
        None
    }

    fn step(&self, &holder: &Option<u32>, call: &Call<'_>) -> Option<Option<u32>> {
        match (call.op, holder) {
            (Op::ACQUIRE, None) => call.agrees().then_some(Some(call.process)),
            (Op::ACQUIRE, Some(_)) => call.answers(Value::FALSE).then_some(holder),
            _ => (holder == Some(call.process)).then_some(None),
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::ACQUIRE && call.output == Some(Value::FALSE)
    }

    fn describe(&self, state: &Option<u32>, _: &Values) -> String {
        state.map_or_else(|| "free".into(), |holder| format!("held by process {holder}"))
    }
}
