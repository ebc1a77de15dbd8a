//! A stack: last in, first out; bounded or not.

use super::list::List;
use super::{Call, Discipline, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    pub(crate) capacity: Option<u64>,
}

impl Spec for Stack {
    type State = List;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> List {
        List::default()
    }

    fn step(&self, stack: &List, call: &Call<'_>) -> Option<List> {
        match call.op {
            Op::PUSH if self.capacity.is_none_or(|capacity| (stack.len() as u64) < capacity) => {
                call.agrees().then(|| stack.push(call.input))
            }
            Op::PUSH => call.answers(Value::FALSE).then(|| stack.clone()),
            _ => match stack.pop() {
                Some((value, rest)) => call.answers(value).then(|| rest.clone()),
                None => call.answers(Value::NULL).then(|| stack.clone()),
            },
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        match call.op {
            Op::PUSH => call.output == Some(Value::FALSE),
            _ => call.output == Some(Value::NULL),
        }
    }

    /// The operations on a value. If all of them are removed, the remaining operations are still legal.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        match call.op {
            Op::PUSH => Some(call.input),
            _ => call.output,
        }
    }

    /// The answer "full" depends on all values of the stack.
    fn pins(&self, call: &Call<'_>) -> bool {
        self.capacity.is_some() && call.op == Op::PUSH && call.output == Some(Value::FALSE)
    }

    fn discipline(&self) -> Option<Discipline> {
        Some(Discipline::LastInFirstOut)
    }

    fn state_bytes(&self, _: &List) -> usize {
        // A new state adds one node to the state from which it was made.
        size_of::<List>() + List::NODE_BYTES
    }
}
