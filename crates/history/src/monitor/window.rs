//! The time around a failure, as the procedure that found it sees it.

use std::ops::RangeInclusive;

use super::life::{Core, Life, Step};
use super::span::Span;

/// A history without a legal order, all of whose removals have returned.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) core: Core,
    /// The time around it; unknown if the core is about a removal that found nothing.
    pub(super) window: Option<Window>,
}

impl From<Core> for Failure {
    fn from(core: Core) -> Self {
        Failure { core, window: None }
    }
}

/// The time at which a history first fails, as far as an order of its beginning tells.
#[derive(Debug)]
pub(super) struct Window {
    /// An order of the steps that take effect before `from`: it has all operations that returned before it, and none
    /// called later.
    pub(super) done: Vec<Step>,
    /// The rank of a call.
    pub(super) from: u32,
    /// The history is in order before the first of these ranks, at which a removal returns. By the last, every removal
    /// that may excuse the failure has returned.
    pub(super) during: RangeInclusive<u32>,
}

/// The removals that return, and those that found nothing.
pub(super) fn removals(lives: &[Life], empties: &[Span]) -> impl Iterator<Item = (Span, Step)> {
    let removed = (0..).zip(lives).filter(|(_, life)| !life.stays()).map(|(i, life)| (life.remove, Step::Remove(i)));
    removed.chain((0..).zip(empties).map(|(e, &empty)| (empty, Step::Empty(e))))
}

/// The time at which all removals called by the time `called` have returned.
pub(super) fn answered(lives: &[Life], empties: &[Span], called: u32) -> u32 {
    let returns = removals(lives, empties).filter(|(span, _)| span.call <= called).map(|(span, _)| span.ret);
    returns.max().unwrap_or(called)
}

/// The first call among the operations open at the time of a call.
pub(super) fn first_call_among_open(lives: &[Life], empties: &[Span], at: u32) -> u32 {
    let spans = lives.iter().flat_map(|life| [life.insert, life.remove]).chain(empties.iter().copied());
    let calls = spans.filter(|span| span.call <= at && at <= span.ret).map(|span| span.call);
    calls.min().unwrap_or(at)
}

/// The steps of an order that take effect before the rank of a call, if each does as soon as it can.
pub(super) fn done_before(from: u32, mut steps: Vec<Step>, lives: &[Life], empties: &[Span]) -> Vec<Step> {
    let called = |step: &Step| match *step {
        Step::Insert(i) => lives[i as usize].insert.call,
        Step::Remove(i) => lives[i as usize].remove.call,
        Step::Empty(e) => empties[e as usize].call,
    };
    steps.truncate(steps.iter().take_while(|step| called(step) < from).count());
    steps
}
