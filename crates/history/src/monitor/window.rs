//! The time around a failure that a procedure found.

use std::ops::RangeInclusive;

use super::life::{Core, Life, Step};
use super::span::Span;

/// The failure of a history whose removals have all returned.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) core: Core,
    /// The time around the failure; unknown if the core is about an empty removal.
    pub(super) window: Option<Window>,
}

impl From<Core> for Failure {
    fn from(core: Core) -> Self {
        Failure { core, window: None }
    }
}

/// Bounds on the time at which a history first fails. They follow from a legal order of its first operations.
#[derive(Debug)]
pub(super) struct Window {
    /// An order of the steps that take effect before `from`: all operations that returned before `from`, and none
    /// called after it.
    pub(super) done: Vec<Step>,
    /// The rank of the call at which the known order ends: see `done`.
    pub(super) from: u32,
    /// The history before the first of these ranks, at which a removal returns, is legal. By the last rank, every
    /// removal that could still make the history legal has returned.
    pub(super) during: RangeInclusive<u32>,
}

/// The removals that return a value, and the empty removals.
pub(super) fn removals(lives: &[Life], empties: &[Span]) -> impl Iterator<Item = (Span, Step)> {
    let removed = (0..).zip(lives).filter(|(_, life)| !life.stays()).map(|(i, life)| (life.remove, Step::Remove(i)));
    removed.chain((0..).zip(empties).map(|(e, &empty)| (empty, Step::Empty(e))))
}

/// The rank by which all removals called at or before `called` have returned.
pub(super) fn answered(lives: &[Life], empties: &[Span], called: u32) -> u32 {
    let returns = removals(lives, empties).filter(|(span, _)| span.call <= called).map(|(span, _)| span.ret);
    returns.max().unwrap_or(called)
}

/// The earliest call of the operations that are open at the rank `at`; `at` if none is open.
pub(super) fn first_call_among_open(lives: &[Life], empties: &[Span], at: u32) -> u32 {
    let spans = lives.iter().flat_map(|life| [life.insert, life.remove]).chain(empties.iter().copied());
    let calls = spans.filter(|span| span.call <= at && at <= span.ret).map(|span| span.call);
    calls.min().unwrap_or(at)
}

/// The steps of an order that take effect before `from`, if each takes effect as early as possible.
pub(super) fn done_before(from: u32, mut steps: Vec<Step>, lives: &[Life], empties: &[Span]) -> Vec<Step> {
    let called = |step: &Step| match *step {
        Step::Insert(i) => lives[i as usize].insert.call,
        Step::Remove(i) => lives[i as usize].remove.call,
        Step::Empty(e) => empties[e as usize].call,
    };
    steps.truncate(steps.iter().take_while(|step| called(step) < from).count());
    steps
}
