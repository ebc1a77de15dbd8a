//! Containers: the answers of removals constrain the order of insertions.
//!
//! An operation *brings* a value in or *takes* a value out. The takes of a value bound the moments at which it comes
//! out. The value cannot come out for the `n`-th time before the `n`-th smallest call of its takes, and it must have
//! come out `n` times by their `n`-th smallest return. This has three uses:
//! - if a value is taken for the `n`-th time before it can be brought for the `n`-th time, the history fails in every
//!   order;
//! - in a queue, a value cannot go in now if it certainly comes out before a value that is already in: the search turns
//!   back at the enqueue instead of failing at the dequeue, many choices later;
//! - of two overlapping insertions, the one whose value came out first was probably first in a queue, and last in a
//!   stack: the search tries that order first.

use rustc_hash::FxHashMap;

use crate::budget::{Budget, Exhausted};
use crate::history::PENDING;
use crate::part::Part;
use crate::spec::Discipline;
use crate::value::Value;

/// The operations that bring each value, and the moments at which each value is brought and taken.
pub(in crate::search) struct Container {
    discipline: Discipline,
    /// For each position that brings a value, the value's number.
    brings: Vec<u32>,
    values: Vec<Moments>,
}

/// The moments at which a value is brought and taken, in ascending lists.
#[derive(Default)]
struct Moments {
    brought: Vec<u64>,
    /// The calls of takes, including those of pending takes with an unknown value.
    take_calls: Vec<u64>,
    take_returns: Vec<u64>,
}

const NOTHING: u32 = u32::MAX;

/// The maximum number of entries for takes of unknown values, which count for every value. Beyond it, the search runs
/// without foresight.
const MAX_UNKNOWN: usize = 1 << 20;

impl Container {
    pub(super) fn new(part: &Part<'_>, discipline: Discipline, budget: &mut Budget) -> Result<Option<Self>, Exhausted> {
        budget.charge(part.len() * (size_of::<u32>() + 3 * size_of::<(Value, Moments)>()))?;
        let mut numbers: FxHashMap<Value, u32> = FxHashMap::default();
        let mut foresight = Container { discipline, brings: vec![NOTHING; part.len()], values: Vec::new() };
        let mut unknown = Vec::new();
        for position in 0..part.len() {
            let (input, output) = (part.input(position), part.output(position));
            let value = match (input, output) {
                // The container refused the value.
                (_, Some(Value::FALSE)) if !input.is_null() => continue,
                (Value::NULL, None) => {
                    unknown.push(part.call(position));
                    continue;
                }
                (Value::NULL, Some(Value::NULL)) => continue,
                (Value::NULL, Some(taken)) => taken,
                (brought, _) => brought,
            };
            let number = *numbers.entry(value).or_insert(foresight.values.len() as u32);
            if number as usize == foresight.values.len() {
                foresight.values.push(Moments::default());
            }
            let moments = &mut foresight.values[number as usize];
            if input.is_null() {
                moments.take_calls.push(part.call(position));
                moments.take_returns.push(part.ret(position));
            } else {
                foresight.brings[position] = number;
                moments.brought.push(part.call(position));
            }
        }
        let entries = foresight.values.len() * unknown.len();
        if entries > MAX_UNKNOWN {
            return Ok(None);
        }
        budget.charge(entries * size_of::<u64>())?;
        for moments in &mut foresight.values {
            // A pending take may have taken any value, so its call counts for all values.
            moments.take_calls.extend(&unknown);
            moments.take_calls.sort_unstable();
            moments.take_returns.sort_unstable();
        }
        Ok(Some(foresight))
    }

    /// Whether some take returns a value before any operation can have brought it.
    pub(super) fn contradicts(&self) -> bool {
        self.values.iter().any(|moments| {
            let brought = moments.brought.iter().copied().map(Some).chain(std::iter::repeat(None));
            moments.take_returns.iter().zip(brought).any(|(returned, brought)| brought.is_none_or(|b| b > *returned))
        })
    }

    /// Whether the search may turn back before the first event that has no explanation.
    pub(super) fn turns_back(&self) -> bool {
        self.discipline == Discipline::FirstInFirstOut
    }

    /// The number of the value that the position brings.
    #[inline]
    pub(super) fn brings(&self, position: u32) -> Option<usize> {
        let number = self.brings[position as usize];
        (number != NOTHING).then_some(number as usize)
    }

    pub(super) fn values(&self) -> usize {
        self.values.len()
    }

    /// The new `latest` after an operation brings the value. `count` earlier operations brought the same value.
    /// `latest` is a lower bound: the last of the values brought so far comes out at `latest` or later. `None` if the
    /// new value must come out before `latest`, which a queue does not permit.
    pub(super) fn bring(&self, value: usize, count: u32, latest: u64) -> Option<u64> {
        if self.discipline != Discipline::FirstInFirstOut {
            return Some(latest);
        }
        let moments = &self.values[value];
        let count = count as usize;
        // Equal values come out in the order in which they went in, so this one is number `count` (from 0) to come out.
        let out_by = moments.take_returns.get(count).copied().unwrap_or(PENDING);
        let out_from = moments.take_calls.get(count).copied().unwrap_or(PENDING);
        // In a queue the earlier values come out first. If an earlier value cannot have come out by the time at which
        // this value must, the order is impossible.
        (out_by >= latest).then(|| latest.max(out_from))
    }

    /// The keys by which the positions are ranked, the lowest first.
    pub(super) fn keys(&self, part: &Part<'_>) -> Vec<u64> {
        let mut counts = vec![0; self.values.len()];
        let key = |position: usize| {
            let returned = part.ret(position);
            let Some(value) = self.brings(position as u32) else { return returned };
            let out = self.values[value].take_returns.get(counts[value]).copied().unwrap_or(PENDING);
            counts[value] += 1;
            match self.discipline {
                Discipline::FirstInFirstOut => out,
                Discipline::LastInFirstOut => PENDING - out,
                Discipline::ByValue | Discipline::Broadcast => returned,
            }
        };
        (0..part.len()).map(key).collect()
    }
}
