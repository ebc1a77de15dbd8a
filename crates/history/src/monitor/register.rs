//! Registers: a read returns the value written last.
//!
//! The operations on one value, its write and its reads, are adjacent in any legal order. The register has the value at
//! least from their first return to their last call. So the history is linearizable if and only if no read returns
//! before its value's write is called, and these times of all values can be arranged (see [`zones`](super::zones)).
//!
//! Gibbons and Korach, "Testing shared memories", 1997. O(n log n).

use super::numbers::Numbers;
use super::span::{MAX_OPERATIONS, Span, Spans};
use super::zones::{Zone, arrange};
use super::{Attempt, Decision, Undecided, Violation};
use crate::budget::Budget;
use crate::model::Model;
use crate::operation::Op;
use crate::part::Part;

/// The position of the initial value's write, which is not an operation.
const NONE: u32 = u32::MAX;

/// The number of the value that the register has at first.
const INITIAL: u32 = 0;

/// A value's operations, by position.
#[derive(Clone, Copy)]
struct Held {
    write: u32,
    /// The operation that returns first.
    returned_first: u32,
    /// The operation that is called last.
    called_last: u32,
    is_read: bool,
}

impl Held {
    /// The operations that show when the register had the value.
    fn evidence(&self) -> impl Iterator<Item = u32> {
        [self.write, self.returned_first, self.called_last].into_iter().filter(|&p| p != NONE)
    }
}

/// Decides a history of reads and of writes of distinct values. Leaves any other history open.
pub(crate) fn decide(part: &Part<'_>, model: &Model, budget: &mut Budget) -> Attempt {
    if part.len() > MAX_OPERATIONS {
        return Err(Undecided::Open);
    }
    // The initial value was written at rank 0, before the first event, so the ranks of events are increased by one
    // here.
    let mut written = Numbers::of((0..part.len()).filter(|&p| part.op(p) == Op::WRITE).map(|p| part.input(p)));
    let mut helds = vec![Held { write: NONE, returned_first: NONE, called_last: NONE, is_read: false }];
    for p in 0..part.len() {
        if part.op(p) == Op::WRITE {
            if part.input(p) == model.initial || !written.insert(part.input(p), helds.len() as u32) {
                return Err(Undecided::Open);
            }
            let p = p as u32;
            helds.push(Held { write: p, returned_first: p, called_last: p, is_read: false });
        } else if part.op(p) != Op::READ {
            return Err(Undecided::Open);
        }
    }
    budget.look_at_the_clock()?;
    let Spans { spans, .. } = Spans::of(part);
    budget.look_at_the_clock()?;
    let ranked = |p: u32| Span { call: spans[p as usize].call + 1, ret: spans[p as usize].ret + 1 };
    let zone = |held: &Held| match held.write {
        NONE => Zone { first_return: 0, last_call: 0 },
        write => Zone { first_return: ranked(write).ret, last_call: ranked(write).call },
    };
    let mut zones: Vec<Zone> = helds.iter().map(zone).collect();
    let mut value_at = vec![NONE; part.len()];
    for held in 1..helds.len() {
        value_at[helds[held].write as usize] = held as u32;
    }
    for p in (0..part.len() as u32).filter(|&p| part.op(p as usize) == Op::READ) {
        let Some(output) = part.output(p as usize) else { continue };
        let value = if output == model.initial { Some(INITIAL) } else { written.get(output) };
        let Some(value) = value else {
            return fails(part, [p], "reads a value that was never written", Some(p));
        };
        value_at[p as usize] = value;
        let (held, zone) = (&mut helds[value as usize], &mut zones[value as usize]);
        held.is_read = true;
        let Span { call, ret } = ranked(p);
        if held.write != NONE && ret < ranked(held.write).call {
            return fails(part, [held.write, p], "reads a value before its write began", Some(p));
        }
        if ret < zone.first_return {
            (zone.first_return, held.returned_first) = (ret, p);
        }
        if zone.last_call < call {
            (zone.last_call, held.called_last) = (call, p);
        }
    }

    budget.look_at_the_clock()?;
    // A pending write of a value that is never read is left out.
    let returned = |write: u32| write != NONE && part.output(write as usize).is_some();
    let happened = |&value: &u32| helds[value as usize].is_read || returned(helds[value as usize].write);
    match arrange(&zones, (0..zones.len() as u32).filter(happened)) {
        Ok(turns) => Ok(Decision::Holds(order(part, &helds, &value_at, &turns))),
        Err((a, b)) => {
            let evidence = helds[a as usize].evidence().chain(helds[b as usize].evidence());
            let reason = match zones[b as usize].is_forward() {
                true => "two values are each in the register before the other is gone",
                false => "a value is written and read, although another one was in the register all the while",
            };
            fails(part, evidence, reason, None)
        }
    }
}

fn fails(part: &Part<'_>, positions: impl IntoIterator<Item = u32>, reason: &str, subject: Option<u32>) -> Attempt {
    Ok(Decision::Fails(Violation::new(part, positions, reason).about(part, subject)))
}

/// The rows of the values in the order `turns`: for each value its write, and then its reads in order of call.
fn order(part: &Part<'_>, helds: &[Held], value_at: &[u32], turns: &[u32]) -> Vec<u32> {
    let mut count = vec![0; helds.len()];
    for &value in value_at.iter().filter(|&&value| value != NONE) {
        count[value as usize] += 1;
    }
    // The index of a value's next row in the result; [`NONE`] for a value whose write has no effect.
    let mut next = vec![NONE; helds.len()];
    let mut rows = 0;
    for &value in turns {
        next[value as usize] = rows;
        rows += count[value as usize];
    }
    let mut order = vec![0; rows as usize];
    let mut put = |value: u32, p: u32| {
        if next[value as usize] != NONE {
            order[next[value as usize] as usize] = part.row(p as usize);
            next[value as usize] += 1;
        }
    };
    for (value, held) in (0..).zip(helds).filter(|(_, held)| held.write != NONE) {
        put(value, held.write);
    }
    for (p, &value) in (0..).zip(value_at).filter(|&(p, &value)| value != NONE && helds[value as usize].write != p) {
        put(value, p);
    }
    order
}
