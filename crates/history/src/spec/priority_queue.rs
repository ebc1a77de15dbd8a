//! A priority queue: the smallest comes out first.

use super::{Call, Discipline, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriorityQueue {
    pub(crate) capacity: Option<u64>,
}

impl Spec for PriorityQueue {
    /// The priorities, largest first.
    type State = Vec<Value>;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Vec<Value> {
        Vec::new()
    }

    fn step(&self, heap: &Vec<Value>, call: &Call<'_>) -> Option<Vec<Value>> {
        match call.op {
            Op::INSERT if self.capacity.is_none_or(|capacity| (heap.len() as u64) < capacity) => {
                call.agrees().then(|| {
                    let place = heap.partition_point(|&held| call.values.compare(held, call.input).is_gt());
                    let mut heap = heap.clone();
                    heap.insert(place, call.input);
                    heap
                })
            }
            Op::INSERT => call.answers(Value::FALSE).then(|| heap.clone()),
            _ => match heap.split_last() {
                Some((&smallest, rest)) => call.answers(smallest).then(|| rest.to_vec()),
                None => call.answers(Value::NULL).then(|| heap.clone()),
            },
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        match call.op {
            Op::INSERT => call.output == Some(Value::FALSE),
            _ => call.output == Some(Value::NULL),
        }
    }

    /// The operations on a priority. If all of them are removed, the remaining operations are still legal.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        match call.op {
            Op::INSERT => Some(call.input),
            _ => call.output,
        }
    }

    /// The answer "full" depends on all values of the queue.
    fn pins(&self, call: &Call<'_>) -> bool {
        self.capacity.is_some() && call.op == Op::INSERT && call.output == Some(Value::FALSE)
    }

    fn discipline(&self) -> Option<Discipline> {
        Some(Discipline::ByValue)
    }

    fn state_bytes(&self, state: &Vec<Value>) -> usize {
        size_of_val(state) + size_of_val(state.as_slice())
    }
}
