//! Finds the time at which a history first fails, given that a procedure found it illegal.
//!
//! The procedure's proof does not show this time, for two reasons. A different failure may be complete long before. And
//! the history may still be legal when all operations of the proof have returned: until a pending removal answers that
//! it took another value, it may have taken the value that causes the violation.
//!
//! So the search narrows an interval between two times: the history before the first is legal, and by the second it
//! fails. The procedure decides prefixes that end in between, until the interval contains no return. For a container, a
//! few operations usually suggest the right time, and the decision of a single prefix confirms it.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::{Failure, failure, last_return};
use crate::budget::{Budget, Exhausted};
use crate::history::PENDING;
use crate::monitor::{Decision, Violation};
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// The number of failures after which the interval is bisected. Until then, the search decides the prefix that ends
/// right before the earliest failure known so far. A fault usually affects several values, and each such attempt skips,
/// on average, half of the values that fail earlier. Bisection takes about twenty passes over the whole history.
const LEAPS: usize = if cfg!(test) { 2 } else { 8 };

/// The maximum number of times in a row that a few operations prove an earlier failure; then a whole prefix is decided.
const STEPS: usize = if cfg!(test) { 2 } else { 32 };

/// About this many of the last operations are decided together with the suspects. The more operations are present, the
/// fewer values a pending removal can have taken.
const LATEST: usize = if cfg!(test) { 1 } else { 100 };

/// The maximum number of later returns that are tried as the time of a failure: when all operations of a violation have
/// returned, the history may still be legal.
const ANSWERS: usize = if cfg!(test) { 2 } else { 32 };

/// The failure at the earliest time. `violation` is the violation that `decide` found in `part`.
///
/// For a container, `container` has the operations that insert and remove values. A legal history of a container
/// remains legal when all operations of a value are removed, so a few failing operations prove that the part fails.
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

/// Bounds on the time at which the part first fails.
struct Known {
    in_order_before: u64,
    /// A return by which the part certainly fails.
    fails_by: u64,
    /// The row of that return.
    culprit: u32,
    /// The violation in the prefix that ends at `fails_by`.
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
                // The history up to `complete` is legal, although all operations of the violation have returned by
                // then. It fails when some pending removals have returned too. A few further returns usually suffice,
                // so their number begins at one and doubles.
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

    /// The `n`-th return in the range, or the last if there are fewer. The range must contain a return.
    fn nth_return(&self, between: &Range<u64>, n: usize) -> u64 {
        let returns = (0..self.part.len()).map(|p| self.part.ret(p));
        let mut returns: Vec<u64> = returns.filter(|ret| between.contains(ret)).collect();
        let last = returns.len() - 1;
        *returns.select_nth_unstable(last.min(n - 1)).1
    }

    /// A time before the known failure at which the suspects and the latest operations alone fail, and their violation.
    /// Tries the time `complete`, when all operations of the violation have returned, and the times of the next
    /// answers.
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
        // An operation that is pending at a tried time returns after `start`, so it is included. For each value, all
        // operations are included or none.
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
            // `in_order_before` applies to these operations only, not to the whole history.
            Some(Ok(Decision::Fails(violation))) => Some((ret, Violation { in_order_before: 0, ..violation })),
            _ => None,
        };
        // If the operations fail by the time of an answer, they also fail by the time of every later answer.
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

    /// The failure found and the number of attempts, for a history that fails at each return from `first` on. `told(n)`
    /// is the violation that the procedure reports if operation `n` was the last to return.
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
                // The violation names the operation that returned last, so each attempt finds a failure that is only
                // slightly earlier.
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
