//! A queue: first in, first out; bounded or not.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::list::{BASE, List, mix};
use super::{Call, Discipline, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) capacity: Option<u64>,
}

/// The values in the queue: a list from the front, and a list from the back.
///
/// The hash is a polynomial of the contents, so it does not depend on where the two lists meet.
#[derive(Clone, Default)]
pub(crate) struct Line {
    front: List,
    back: List,
    hash: u64,
}

impl Line {
    fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    fn enqueue(&self, value: Value) -> Line {
        let hash = self.hash.wrapping_mul(BASE).wrapping_add(mix(value));
        if self.front.is_empty() {
            return Line { front: self.front.push(value), back: List::default(), hash };
        }
        Line { front: self.front.clone(), back: self.back.push(value), hash }
    }

    /// The front value, and the line without it.
    fn dequeue(&self) -> Option<(Value, Line)> {
        let (value, rest) = self.front.pop()?;
        let power = BASE.wrapping_pow(self.len() as u32 - 1);
        let hash = self.hash.wrapping_sub(mix(value).wrapping_mul(power));
        let line = match rest.is_empty() {
            true => Line { front: self.back.reversed(), back: List::default(), hash },
            false => Line { front: rest.clone(), back: self.back.clone(), hash },
        };
        Some((value, line))
    }

    fn iter(&self) -> impl Iterator<Item = Value> {
        self.front.iter().chain(self.back.oldest_first())
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        if (self.hash, self.len()) != (other.hash, other.len()) {
            return false;
        }
        if self.front.len() == other.front.len() {
            return self.front == other.front && self.back == other.back;
        }
        self.iter().eq(other.iter())
    }
}

impl Eq for Line {}

impl Hash for Line {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Spec for Queue {
    type State = Line;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Line {
        Line::default()
    }

    fn step(&self, line: &Line, call: &Call<'_>) -> Option<Line> {
        match call.op {
            Op::ENQUEUE if self.capacity.is_none_or(|capacity| (line.len() as u64) < capacity) => {
                call.agrees().then(|| line.enqueue(call.input))
            }
            Op::ENQUEUE => call.answers(Value::FALSE).then(|| line.clone()),
            _ => match line.dequeue() {
                Some((value, rest)) => call.answers(value).then_some(rest),
                None => call.answers(Value::NULL).then(|| line.clone()),
            },
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        match call.op {
            Op::ENQUEUE => call.output == Some(Value::FALSE),
            _ => call.output == Some(Value::NULL),
        }
    }

    /// The operations on a value. If all of them are removed, the remaining operations are still legal.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        match call.op {
            Op::ENQUEUE => Some(call.input),
            _ => call.output,
        }
    }

    /// The answer "full" depends on all values of the queue.
    fn pins(&self, call: &Call<'_>) -> bool {
        self.capacity.is_some() && call.op == Op::ENQUEUE && call.output == Some(Value::FALSE)
    }

    fn discipline(&self) -> Option<Discipline> {
        Some(Discipline::FirstInFirstOut)
    }

    fn state_bytes(&self, _: &Line) -> usize {
        // A new state adds one node to the state from which it was made.
        size_of::<Line>() + List::NODE_BYTES
    }
}
