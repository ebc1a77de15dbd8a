//! Finds the time at which a history that a procedure refused first fails.
//!
//! The procedure's proof does not show that time. A different failure may have been complete long before. And a
//! complete violation may still have an order: a pending removal may have taken the value that is in the way, until it
//! answers that it took another.
//!
//! So two times are known: everything before the first is in order, and by the second the history fails. The history is
//! decided up to times in between, until no return is left there. For a container, a few operations suggest the time,
//! and one look right before it usually suffices.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::{Failure, failure, last_return};
use crate::budget::{Budget, Exhausted};
use crate::history::PENDING;
use crate::monitor::{Decision, Violation};
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// The number of attempts right before the last failure, before bisection takes over. A fault usually shows in several
/// values at once, and each such attempt skips half of the remaining ones; bisection would take twenty passes through
/// the whole history.
const LEAPS: usize = if cfg!(test) { 2 } else { 8 };

/// The maximum number of consecutive failures that are found by a few operations only.
const STEPS: usize = if cfg!(test) { 2 } else { 32 };

/// The number of latest operations that are decided together with the suspects: with their neighbours present, pending
/// operations can excuse less.
const LATEST: usize = if cfg!(test) { 1 } else { 100 };

/// The maximum number of further answers that may turn a complete violation into a failure.
const ANSWERS: usize = if cfg!(test) { 2 } else { 32 };

/// The failure at the earliest time. `violation` is the finding of `decide` in `part`.
///
/// `container` gives the operations that insert and remove the values of a container. Such a history stays in order if
/// all operations of a value are left out. So a few failing operations show that the whole fails.
pub(crate) fn earliest(
    part: &Part<'_>,
    violation: Violation,
    container: Option<(Op, Op)>,
    decide: impl Fn(&Part<'_>, &mut Budget) -> Option<Result<Decision, Exhausted>>,
    budget: &Budget,
) -> Failure {
    let (fails_by, culprit) = last_return(part, part.rows());
    let search = Search { part, container, decide, budget };
    let suspects = violation.operations.clone();
    search.first(Known { in_order_before: violation.in_order_before, fails_by, culprit, violation, suspects })
}

struct Search<'a, D> {
    part: &'a Part<'a>,
    container: Option<(Op, Op)>,
    decide: D,
    budget: &'a Budget,
}

/// The knowledge about the time at which the part first fails.
struct Known {
    in_order_before: u64,
    /// A return by which the part certainly fails.
    fails_by: u64,
    /// The row of that return.
    culprit: u32,
    /// The violation by that time.
    violation: Violation,
    /// The operations of all violations so far, ascending.
    suspects: Vec<u32>,
}

impl Known {
    fn fails(&mut self, part: &Part<'_>, violation: Violation) {
        (self.fails_by, self.culprit) = last_return(part, part.rows());
        self.suspects.extend(&violation.operations);
        self.suspects.sort_unstable();
        self.suspects.dedup();
        self.violation = violation;
    }

    fn failure(self, first: bool) -> Failure {
        let Violation { operations, reason, subject, .. } = self.violation;
        Failure { first, ..failure(operations, reason, subject, self.fails_by, self.culprit) }
    }
}

impl<D: Fn(&Part<'_>, &mut Budget) -> Option<Result<Decision, Exhausted>>> Search<'_, D> {
    fn first(&self, mut known: Known) -> Failure {
        let (mut leaps, mut steps, mut answers) = (0, 0, 1);
        let mut by_few = false;
        loop {
            let between = known.in_order_before..known.fails_by;
            if !(0..self.part.len()).any(|p| between.contains(&self.part.ret(p))) {
                return known.failure(true);
            }
            let (complete, _) = last_return(&self.part.until(known.fails_by), &known.violation.operations);
            if steps < STEPS
                && let Some((ret, violation)) = self.few_fail_soon(&known, complete)
            {
                (steps, by_few) = (steps + 1, true);
                known.fails(&self.part.until(ret), violation);
                continue;
            }
            let last = between.end - 1;
            let until = if by_few {
                last
            } else if complete < between.start {
                // The complete operations are in order, but fail once further operations have answered, which is soon.
                answers *= 2;
                self.nth_return(&between, answers / 2)
            } else if complete < between.end {
                complete
            } else if leaps < LEAPS {
                last
            } else {
                between.start + (last - between.start) / 2
            };
            let part = self.part.until(until);
            match (self.decide)(&part, &mut self.budget.lend()) {
                Some(Ok(Decision::Fails(violation))) => {
                    (leaps, steps, answers, by_few) = (leaps + 1, 0, 1, false);
                    known.in_order_before = known.in_order_before.max(violation.in_order_before);
                    known.fails(&part, violation);
                }
                Some(Ok(Decision::Holds(_))) => known.in_order_before = until + 1,
                None | Some(Err(_)) => return known.failure(false),
            }
        }
    }

    /// The `n`-th smallest of the returns in the range, or the last if there are fewer; at least one exists.
    fn nth_return(&self, between: &Range<u64>, n: usize) -> u64 {
        let returns = (0..self.part.len()).map(|p| self.part.ret(p));
        let mut returns: Vec<u64> = returns.filter(|ret| between.contains(ret)).collect();
        let last = returns.len() - 1;
        *returns.select_nth_unstable(last.min(n - 1)).1
    }

    /// A time before the failure at which the suspects and the latest operations fail by themselves, with their
    /// violation. Looks at the time when the violation is complete, and at each of the next answers.
    fn few_fail_soon(&self, known: &Known, complete: u64) -> Option<(u64, Violation)> {
        let (insert, remove) = self.container?;
        let before = self.part.until(known.fails_by - 1);
        let from = complete.clamp(known.in_order_before, before.cut());
        let mut answers: Vec<u64> =
            (0..before.len()).map(|p| before.ret(p)).filter(|ret| (from + 1..PENDING).contains(ret)).collect();
        if answers.len() > ANSWERS {
            answers.select_nth_unstable(ANSWERS);
            answers.truncate(ANSWERS);
        }
        answers.push(from);
        answers.sort_unstable();
        let at = before.until(from);
        let start = at.call(at.len().checked_sub(1)?.saturating_sub(LATEST));
        let soon = before.until(*answers.last().expect("there is one"));
        // Every operation pending at one of the looks returns after the start, and is included. Of each value all
        // operations are included, or none.
        let value = |p: usize| match soon.op(p) {
            op if op == insert => Some(soon.input(p)),
            op if op == remove => soon.output(p).filter(|value| !value.is_null()),
            _ => None,
        };
        let suspects = known.suspects.iter().filter_map(|row| soon.rows().binary_search(row).ok());
        let late: Vec<usize> = (0..soon.len()).filter(|&p| soon.ret(p) >= start).chain(suspects).collect();
        let values: FxHashSet<Value> = late.iter().filter_map(|&p| value(p)).collect();
        let of_them = (0..soon.len()).filter(|&p| value(p).is_some_and(|value| values.contains(&value)));
        let mut latest: Vec<u32> = of_them.chain(late).map(|p| soon.row(p)).collect();
        latest.sort_unstable();
        latest.dedup();
        let latest = soon.with_rows(latest);
        let fails_by = |ret: u64| match (self.decide)(&latest.until(ret), &mut self.budget.lend()) {
            // That these operations are in order says nothing about the others.
            Some(Ok(Decision::Fails(violation))) => Some((ret, Violation { in_order_before: 0, ..violation })),
            _ => None,
        };
        // A failure by one answer is a failure by each later one.
        let (mut holds, mut fails) = (0, answers.len() - 1);
        let mut found = fails_by(answers[fails])?;
        while holds < fails {
            let middle = (holds + fails) / 2;
            match fails_by(answers[middle]) {
                Some(earlier) => (found, fails) = (earlier, middle),
                None => holds = middle + 1,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::tests::{COUNT, RETURNS, at_once};
    use super::*;
    use crate::budget::Options;

    fn violation(operation: u64, in_order_before: u64) -> Violation {
        Violation { operations: vec![operation as u32], reason: String::new(), subject: None, in_order_before }
    }

    /// The failure found, and the number of attempts, for a history that fails at each return from `first` on; the
    /// procedure reports the violation that `told` makes of the last returned operation.
    fn found(first: u64, told: impl Fn(u64) -> Violation) -> (Failure, usize) {
        let history = at_once();
        let looks = Cell::new(0);
        let last = |part: &Part<'_>| part.cut().min(RETURNS + COUNT - 1) - RETURNS;
        let decide = |part: &Part<'_>, _: &mut Budget| {
            looks.set(looks.get() + 1);
            let failed = part.cut() >= RETURNS + first;
            Some(Ok(if failed { Decision::Fails(told(last(part))) } else { Decision::Holds(Vec::new()) }))
        };
        let whole = Part::whole(&history);
        let failure = earliest(&whole, told(COUNT - 1), None, decide, &Budget::new(&Options::default()));
        (failure, looks.get())
    }

    #[test]
    fn the_first_failure_is_found_whichever_failure_the_procedure_reports() {
        for first in 0..COUNT {
            for told in 0..COUNT {
                let of = |failure: Failure| (failure.time, failure.culprit, failure.first);
                let expected = (RETURNS + first, first as u32, true);
                assert_eq!(of(found(first, |last| violation(told.min(last), 0)).0), expected, "it reports {told}");
                // This violation leads to no earlier one soon.
                assert_eq!(of(found(first, |last| violation(last, 0)).0), expected, "it reports the last");
            }
        }
    }

    #[test]
    fn one_check_suffices_if_the_procedure_reports_the_first_failure() {
        for first in 0..COUNT - 1 {
            assert_eq!(found(first, |_| violation(first, RETURNS + first)).1, 1, "{first}");
            assert_eq!(found(first, |_| violation(first, 0)).1, if first == 0 { 1 } else { 2 }, "{first}");
        }
        assert_eq!(found(COUNT - 1, |_| violation(COUNT - 1, RETURNS + COUNT - 1)).1, 0, "the last return of all");
    }

    #[test]
    fn a_procedure_that_gives_up_has_not_found_the_first() {
        let history = at_once();
        let budget = Budget::new(&Options::default());
        let found = earliest(&Part::whole(&history), violation(7, 0), None, |_, _| None, &budget);
        assert_eq!((found.culprit, found.first), (COUNT as u32 - 1, false), "the failure at the end is certain");
    }
}
