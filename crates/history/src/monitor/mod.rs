//! Decision procedures for unambiguous histories: exact, near-linear, without search.
//!
//! A history is unambiguous if each answer identifies its cause: no value is inserted twice, or written twice. Tests
//! that use distinct values record such histories. The general problem is intractable; for unambiguous histories, a few
//! sorts solve it.
//!
//! | file | objects | idea |
//! | --- | --- | --- |
//! | [`register`] | registers | a value's write and reads form a zone of time; see [`zones`] |
//! | [`queue`] | queues | no two values overtake each other |
//! | [`stack`] | stacks | decomposed from the outside, by values that can lie at the bottom |
//! | [`priority`] | priority queues | each removal needs a moment without smaller values |
//! | [`set`], [`allocator`] | sets, allocators | each element is switched on and off; see [`switch`] |
//! | [`mutex`] | mutexes | the times between acquisition and release are zones too |
//!
//! The procedures share [`span`] (time as ranks), [`numbers`] (values as numbers), [`life`] (a value from insertion to
//! removal), [`cover`] (the times at which some value is certainly present), [`evidence`] and [`shrink`] (smaller
//! counter-examples). The procedures for queues, stacks and priority queues assume that the removal of every value is
//! known. [`paired`] converts the operations of such a container into lives and back, and [`pending`] chooses values
//! for the removals that have not returned.
//!
//! Each procedure returns a legal order of the history, or a few operations that have none. Tests compare it with an
//! exhaustive search on all small histories and on many random ones (see `agreement`).

mod allocator;
mod container;
mod cover;
mod evidence;
mod free;
mod life;
mod mutex;
mod numbers;
mod paired;
mod pending;
mod priority;
mod queue;
mod register;
mod set;
mod shrink;
mod span;
mod stack;
mod stretch;
mod switch;
mod window;
mod zones;

#[cfg(test)]
mod agreement;

use container::Container;

use crate::budget::{Budget, Exhausted};
use crate::model::{Kind, Model};
use crate::operation::Op;
use crate::part::Part;

/// The result of a procedure.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// Rows in a legal order.
    Holds(Vec<u32>),
    /// Rows without a legal order.
    Fails(Violation),
}

/// A few operations without a legal order, whatever the other operations did.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// The rows, ascending.
    pub(crate) operations: Vec<u32>,
    /// The violation, in one sentence.
    pub(crate) reason: String,
    /// The row that the reason is about, if it is about a single row.
    pub(crate) subject: Option<u32>,
    /// The history before this time has a legal order; 0 if no such time is known.
    pub(crate) in_order_before: u64,
}

impl Violation {
    /// The violation by the operations at these positions.
    fn new(part: &Part<'_>, positions: impl IntoIterator<Item = u32>, reason: &str) -> Self {
        let mut operations: Vec<u32> = positions.into_iter().map(|p| part.row(p as usize)).collect();
        operations.sort_unstable();
        operations.dedup();
        Violation { operations, reason: reason.to_owned(), subject: None, in_order_before: 0 }
    }

    /// The same violation, with its subject: the operation at `position`, if any.
    fn about(self, part: &Part<'_>, position: impl Into<Option<u32>>) -> Self {
        Violation { subject: position.into().map(|p| part.row(p as usize)), ..self }
    }
}

/// The reason why a procedure has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The history is ambiguous, or the procedure cannot decide it: it goes to the general search.
    Open,
    /// A limit was hit.
    Exhausted(Exhausted),
}

impl From<Exhausted> for Undecided {
    fn from(exhausted: Exhausted) -> Self {
        Undecided::Exhausted(exhausted)
    }
}

/// The answer of a procedure.
type Attempt = Result<Decision, Undecided>;

/// The maximum memory of a procedure for each operation.
const BYTES_PER_OPERATION: usize = 96;

/// The operations that insert and remove a container's values; `None` for other kinds.
pub(crate) fn operations(kind: Kind) -> Option<(Op, Op)> {
    let container = match kind {
        Kind::Queue => Container::Queue,
        Kind::Stack => Container::Stack,
        Kind::PriorityQueue => Container::PriorityQueue,
        _ => return None,
    };
    Some(container.operations())
}

/// Decides the part, if a procedure can: `None` if the history is ambiguous, or of another kind.
///
/// Takes O(n log n) time, and at most [`BYTES_PER_OPERATION`] of memory for each operation, charged to the budget. Each
/// step of a procedure sorts the operations or passes over them once, which takes about 50 ms for a million. The clock
/// is read between steps.
pub(crate) fn try_decide(part: &Part<'_>, model: &Model, budget: &mut Budget) -> Option<Result<Decision, Exhausted>> {
    let procedure: fn(&Part<'_>, &Model, &mut Budget) -> Attempt = match (model.kind, model.capacity) {
        (Kind::Queue, None) => |part, _, budget| paired::decide(Container::Queue, part, budget),
        (Kind::Stack, None) => |part, _, budget| paired::decide(Container::Stack, part, budget),
        (Kind::PriorityQueue, None) => |part, _, budget| paired::decide(Container::PriorityQueue, part, budget),
        (Kind::Register | Kind::CasRegister | Kind::KeyValue, _) => register::decide,
        (Kind::Set, _) => |part, _, budget| set::decide(part, budget),
        (Kind::Allocator, _) => allocator::decide,
        (Kind::Mutex, _) => |part, _, budget| mutex::decide(part, budget),
        _ => return None,
    };
    let bytes = part.len() * BYTES_PER_OPERATION;
    if let Err(exhausted) = budget.charge(bytes) {
        return Some(Err(exhausted));
    }
    let attempt = procedure(part, model, budget);
    budget.release(bytes);
    match attempt {
        Ok(decision) => Some(Ok(decision)),
        Err(Undecided::Open) => None,
        Err(Undecided::Exhausted(exhausted)) => Some(Err(exhausted)),
    }
}
