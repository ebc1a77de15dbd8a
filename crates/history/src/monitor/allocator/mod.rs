//! Allocators: only a free object is allocated, and only an allocated object is freed.
//!
//! Each object alternates between allocated and free (see [`switch`](super::switch)). A pending allocation may have
//! taken any object. If the number of objects is known, an allocation that finds no free object needs a moment at which
//! all objects are allocated (see [`exhaustion`]).

mod exhaustion;

use rustc_hash::FxHashMap;

use super::evidence::evidence;
use super::span::{MAX_OPERATIONS, Spans};
use super::switch::{Act, Operation, sweep};
use super::{Attempt, Decision, Undecided, Violation};
use crate::budget::Budget;
use crate::model::Model;
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;
use exhaustion::Exhaustion;

/// Decides a history of an allocator.
///
/// If the model limits the number of objects, the history may be left open:
/// - The operations name more objects than the limit, and either an allocation found no free object, or the order that
///   was found has more objects allocated at once than the limit.
/// - An allocation found no free object, and whether that is legal depends on the order of overlapping changes of one
///   object, or on which object a pending allocation took.
pub(crate) fn decide(part: &Part<'_>, model: &Model, budget: &mut Budget) -> Attempt {
    if part.len() > MAX_OPERATIONS {
        return Err(Undecided::Open);
    }
    let mut number_of: FxHashMap<u64, u32> = FxHashMap::default();
    number_of.insert(Value::NULL.bits(), 0);
    let mut operations = Vec::with_capacity(part.len());
    let mut refused = Vec::new();
    for p in 0..part.len() {
        // An allocation without an object counts as an observation of a special object that is always free.
        let (object, act) = match (part.op(p), part.output(p)) {
            (Op::ALLOC, Some(Value::NULL)) => (Value::NULL, Act::See(false)),
            (Op::ALLOC, Some(object)) => (object, Act::Change(true)),
            (Op::ALLOC, None) => (Value::NULL, Act::SomeOn),
            (Op::FREE, _) => (part.input(p), Act::Change(false)),
            _ => return Err(Undecided::Open),
        };
        if act == Act::See(false) {
            refused.push(p as u32);
        }
        let count = number_of.len() as u32;
        operations.push(Operation { element: *number_of.entry(object.bits()).or_insert(count), act });
    }
    let objects = number_of.len() as u32 - 1;
    budget.look_at_the_clock()?;
    let spans = Spans::of(part);
    budget.look_at_the_clock()?;
    let order = match sweep(&operations, &spans, objects + 1) {
        Ok(order) => order,
        Err(p) => {
            let reason = match operations[p as usize].act {
                Act::Change(true) => "gives an object that is allocated already",
                _ => "frees an object that is not allocated",
            };
            return Ok(Decision::Fails(Violation::new(part, evidence(&operations, &spans, p), reason).about(part, p)));
        }
    };
    budget.look_at_the_clock()?;
    let holds = |order: Vec<u32>| Ok(Decision::Holds(order.into_iter().map(|p| part.row(p as usize)).collect()));
    let Some(capacity) = model.capacity else { return holds(order) };
    let Some(unseen) = capacity.checked_sub(u64::from(objects)) else {
        let all_had_room = refused.is_empty() && most_allocated(&operations, &order) <= capacity;
        return if all_had_room { holds(order) } else { Err(Undecided::Open) };
    };
    if refused.is_empty() {
        return holds(order);
    }
    if order.iter().any(|&p| operations[p as usize].act == Act::SomeOn) {
        return Err(Undecided::Open);
    }
    let exhaustion = Exhaustion { operations: &operations, spans: &spans, refused: &refused, objects, unseen };
    match exhaustion.place(&order) {
        Ok(order) => holds(order),
        Err(p) => {
            let reason = "finds nothing, although some object was free at every moment";
            let shown = exhaustion.certainly_free(p).ok_or(Undecided::Open)?;
            Ok(Decision::Fails(Violation::new(part, shown, reason).about(part, p)))
        }
    }
}

/// The maximum number of objects allocated at once in this order.
fn most_allocated(operations: &[Operation], order: &[u32]) -> u64 {
    let mut allocated = 0u64;
    let mut most = 0;
    for &p in order {
        match operations[p as usize].act {
            Act::Change(true) | Act::SomeOn => allocated += 1,
            Act::Change(false) => allocated -= 1,
            Act::See(_) => {}
        }
        most = allocated.max(most);
    }
    most
}
