//! A broadcast ring: every consumer sees every event, in the order of publication.
//!
//! All events that no consumer will see are represented in the same way. Otherwise every order of such publications
//! would lead to its own state.

use rustc_hash::FxHashMap;

use super::list::List;
use super::{Call, Discipline, Spec};
use crate::operation::Op;
use crate::part::Part;
use crate::value::{Value, Values};

/// Rings by key, with their consumers. All consumers exist from the start.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    capacity: Option<u64>,
    /// Pairs of key and consumer, ascending.
    consumers: Vec<(Option<Value>, Value)>,
    /// For each key, the largest number of events that one consumer may see in the history.
    longest: FxHashMap<Option<Value>, u32>,
}

/// The progress of publication and of all consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Progress {
    /// The published events that some consumer has not yet seen, with null for each event that no consumer will see.
    unseen: List,
    /// For each consumer, the number of published events that it has not yet seen; empty at first.
    behind: Vec<u32>,
    /// The number of published events that some consumer may see.
    published: u32,
}

impl Ring {
    pub(crate) fn new(capacity: Option<u64>, part: &Part<'_>) -> Self {
        let mut seen: FxHashMap<(Option<Value>, Value), u32> = FxHashMap::default();
        for call in (0..part.len()).map(|p| part.call_at(p)).filter(|call| call.op == Op::CONSUME) {
            *seen.entry((call.key, consumer(&call))).or_default() += u32::from(call.output != Some(Value::NULL));
        }
        let mut longest = FxHashMap::default();
        for (&(key, _), &seen) in &seen {
            let longest = longest.entry(key).or_insert(0);
            *longest = seen.max(*longest);
        }
        let mut consumers: Vec<_> = seen.into_keys().collect();
        consumers.sort_unstable();
        Ring { capacity, consumers, longest }
    }

    /// The consumers of a key's ring.
    fn of(&self, key: Option<Value>) -> &[(Option<Value>, Value)] {
        let start = self.consumers.partition_point(|&(k, _)| k < key);
        let end = self.consumers.partition_point(|&(k, _)| k <= key);
        &self.consumers[start..end]
    }
}

/// The consumer in the input, or the process if the input is null.
fn consumer(call: &Call<'_>) -> Value {
    if call.input.is_null() { call.process.into() } else { call.input }
}

impl Progress {
    /// The first `len` events of a list in which the newest is first.
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
            let is_seen = self.longest.get(&call.key).is_some_and(|&longest| state.published < longest);
            let event = if is_seen { call.input } else { Value::NULL };
            let unseen = if behind.is_empty() { List::default() } else { unseen.push(event) };
            behind.iter_mut().for_each(|lag| *lag += 1);
            return call.agrees().then_some(Progress {
                unseen,
                behind,
                published: state.published + u32::from(is_seen),
            });
        }
        let place = consumers.binary_search(&(call.key, consumer(call))).ok()?;
        let event = (behind[place] as usize).checked_sub(1).and_then(|last| unseen.iter().nth(last));
        let Some(event) = event else { return call.answers(Value::NULL).then(|| state.clone()) };
        // A null event was published but is never seen, so no answer is right here, not even "empty".
        if event.is_null() || !call.answers(event) {
            return None;
        }
        behind[place] -= 1;
        let most = behind.iter().max().map_or(0, |&most| most as usize);
        Some(Progress { unseen: Progress::newest(unseen, most), behind, published: state.published })
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        match call.op {
            Op::PUBLISH => call.output == Some(Value::FALSE),
            _ => call.output == Some(Value::NULL),
        }
    }

    /// The operations on an event: its publication, and every consumer's operation that took it. Without them, each
    /// consumer sees the other events in their order.
    fn group(&self, call: &Call<'_>) -> Option<Value> {
        if call.op == Op::PUBLISH { Some(call.input) } else { call.output }
    }

    /// The answer "full" depends on all events of the ring.
    fn pins(&self, call: &Call<'_>) -> bool {
        call.op == Op::PUBLISH && call.output == Some(Value::FALSE)
    }

    fn discipline(&self) -> Option<Discipline> {
        Some(Discipline::Broadcast)
    }

    fn consumer(&self, call: &Call<'_>) -> Option<Value> {
        (call.op == Op::CONSUME).then(|| consumer(call))
    }

    fn state_bytes(&self, state: &Progress) -> usize {
        size_of::<Progress>() + size_of_val(state.behind.as_slice()) + List::NODE_BYTES
    }
    fn describe(&self, state: &Progress, values: &Values) -> String {
        let event = |event: Value| if event.is_null() { "?".to_owned() } else { values.show(event).to_string() };
        let unseen: Vec<String> = state.unseen.oldest_first().into_iter().map(event).collect();
        // Before the first operation, every consumer has seen all events.
        let lags = state.behind.iter().copied().chain(std::iter::repeat(0));
        let lag = |(&(_, consumer), lag): (&(_, Value), u32)| format!("{} lacks {lag}", values.show(consumer));
        let lags: Vec<String> = self.consumers.iter().zip(lags).map(lag).collect();
        format!("unseen [{}], of which consumer {}", unseen.join(", "), lags.join(", consumer "))
    }
}
