//! Sets: each element is in the set or not, and every answer tells which.

use rustc_hash::FxHashMap;

use super::evidence::evidence;
use super::span::{MAX_OPERATIONS, Spans};
use super::switch::{Act, Operation, sweep};
use super::{Attempt, Decision, Undecided, Violation};
use crate::budget::Budget;
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// Decides a history of a set whose operations report the state that they found. Leaves the history open if an
/// operation returned without such a report.
///
/// Elements may be added and removed any number of times.
pub(crate) fn decide(part: &Part<'_>, budget: &mut Budget) -> Attempt {
    if part.len() > MAX_OPERATIONS {
        return Err(Undecided::Open);
    }
    let mut number_of: FxHashMap<u64, u32> = FxHashMap::default();
    let mut operations = Vec::with_capacity(part.len());
    for p in 0..part.len() {
        let count = number_of.len() as u32;
        let element = *number_of.entry(part.input(p).bits()).or_insert(count);
        let answer = match part.output(p) {
            None => None,
            Some(Value::TRUE) => Some(true),
            Some(Value::FALSE) => Some(false),
            Some(_) => return Err(Undecided::Open),
        };
        let act = match (part.op(p), answer) {
            (Op::ADD, None | Some(true)) => Act::Change(true),
            (Op::ADD, Some(false)) => Act::See(true),
            (Op::REMOVE, None | Some(true)) => Act::Change(false),
            (Op::REMOVE, Some(false)) => Act::See(false),
            (Op::CONTAINS, answer) => Act::See(answer.unwrap_or_default()),
            _ => return Err(Undecided::Open),
        };
        operations.push(Operation { element, act });
    }
    budget.look_at_the_clock()?;
    let spans = Spans::of(part);
    budget.look_at_the_clock()?;
    Ok(match sweep(&operations, &spans, number_of.len() as u32) {
        Ok(order) => Decision::Holds(order.into_iter().map(|p| part.row(p as usize)).collect()),
        Err(p) => {
            let reason = match operations[p as usize].act {
                Act::Change(true) => "adds an element that is present already",
                Act::Change(false) => "removes an element that is not present",
                Act::See(true) => "finds an element that is not present",
                _ => "misses an element that is present",
            };
            Decision::Fails(Violation::new(part, evidence(&operations, &spans, p), reason).about(part, p))
        }
    })
}
