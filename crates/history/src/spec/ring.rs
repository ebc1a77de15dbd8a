//! A broadcast ring: every consumer sees every event, in the order of publication.

use super::list::List;
use super::{Call, Spec};
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// Rings by key, with their consumers, all of which are there from the start.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    capacity: Option<u64>,
    /// By key, ascending.
    consumers: Vec<(Option<Value>, Value)>,
}

/// Where everybody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Progress {
    /// What was published and some consumer has not seen.
    unseen: List,
    /// How many of these each consumer has still to see; empty at first.
    behind: Vec<u32>,
}

impl Ring {
    pub(crate) fn new(capacity: Option<u64>, part: &Part<'_>) -> Self {
        let consume = (0..part.len()).map(|p| part.call_at(p)).filter(|call| call.op == Op::CONSUME);
        let mut consumers: Vec<_> = consume.map(|call| (call.key, consumer(&call))).collect();
        consumers.sort_unstable();
        consumers.dedup();
        Ring { capacity, consumers }
    }

    /// The consumers of a key's ring.
    fn of(&self, key: Option<Value>) -> &[(Option<Value>, Value)] {
        let start = self.consumers.partition_point(|&(k, _)| k < key);
        let end = self.consumers.partition_point(|&(k, _)| k <= key);
        &self.consumers[start..end]
    }
}

/// The input names the consumer; without, the process is it.
fn consumer(call: &Call<'_>) -> Value {
    if call.input.is_null() { call.process.into() } else { call.input }
}

impl Progress {
    /// The first `len` of a list whose newest come first.
    fn newest(unseen: &List, len: usize) -> List {
        if unseen.len() == len {
            return unseen.clone();
        }
        let newest: Vec<Value> = unseen.iter().take(len).collect();
        newest.iter().rev().fold(List::default(), |list, &event| list.push(event))
    }
}

impl Spec for Ring {
    type State = Progress;

    fn initial(&self) -> Progress {
        Progress::default()
    }

    fn step(&self, state: &Progress, call: &Call<'_>) -> Option<Progress> {
        let unseen = &state.unseen;
        let consumers = self.of(call.key);
        let mut behind = state.behind.clone();
        behind.resize(consumers.len(), 0);
        if call.op == Op::PUBLISH {
            if self.capacity.is_some_and(|capacity| unseen.len() as u64 >= capacity) {
                return call.answers(Value::FALSE).then(|| state.clone());
            }
            let unseen = if behind.is_empty() { List::default() } else { unseen.push(call.input) };
            behind.iter_mut().for_each(|lag| *lag += 1);
            return call.agrees().then_some(Progress { unseen, behind });
        }
        let place = consumers.binary_search(&(call.key, consumer(call))).ok()?;
        let event = (behind[place] as usize).checked_sub(1).and_then(|last| unseen.iter().nth(last));
        let Some(event) = event else { return call.answers(Value::NULL).then(|| state.clone()) };
        if !call.answers(event) {
            return None;
        }
        behind[place] -= 1;
        let most = behind.iter().max().map_or(0, |&most| most as usize);
        Some(Progress { unseen: Progress::newest(unseen, most), behind })
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        match call.op {
            Op::PUBLISH => call.output == Some(Value::FALSE),
            _ => call.output == Some(Value::NULL),
        }
    }

    /// An event, with what every consumer got of it: without, each sees the others in their order.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        if call.op == Op::PUBLISH { Some(call.input) } else { call.output }
    }

    /// The ring was full, which it may only be with all of its events.
    fn pins(&self, call: &Call<'_>) -> bool {
        call.op == Op::PUBLISH && call.output == Some(Value::FALSE)
    }

    fn state_bytes(&self, state: &Progress) -> usize {
        size_of::<Progress>() + size_of_val(state.behind.as_slice()) + List::NODE_BYTES
    }
}
