//! Explains a failure: finds the earliest event that no order explains, and a few operations that show the failure.
//! [`first`] does so for a failure that a procedure found.
//!
//! Each step has a budget. When the budget is used up, the step ends with its result so far, which is always a set of
//! operations that fails.

mod first;

use std::collections::{BTreeMap, HashMap};

use crate::budget::{Budget, Exhausted};
use crate::history::PENDING;
use crate::monitor::{Decision, Violation};
use crate::part::Part;
use crate::search::{Entered, Entry, Outcome, Reach, decide, entries};
use crate::spec::DynSpec;
use crate::verdict::Counterexample;

pub(crate) use first::earliest;

/// Each attempt to shrink a procedure's finding gets this fraction (one part in `VIEWING`) of the remaining time:
/// little, because the finding is already a proof.
const VIEWING: u32 = 10;

/// The maximum size of a counter-example that is readable at a glance.
const AT_A_GLANCE: usize = 10;

/// The maximum number of start states listed for a counter-example; more would explain nothing.
const STARTS: usize = 4;

/// Operations that fail, and the time of the first failure, as far as it is known.
pub(crate) struct Failure {
    pub(crate) example: Counterexample,
    /// The time of the first event that no order explains.
    pub(crate) time: u64,
    /// The row of that event.
    pub(crate) culprit: u32,
    /// Whether this is certainly the first such event.
    pub(crate) first: bool,
}

impl Failure {
    /// The same failure, shown by `operations` from the state `start`.
    fn shown_by(self, operations: Vec<u32>, start: Option<String>) -> Self {
        let subject = self.example.subject.filter(|subject| operations.contains(subject));
        Failure { example: Counterexample { operations, subject, start, ..self.example }, ..self }
    }
}

/// The failure that a procedure found, without a search for an earlier one.
pub(crate) fn as_it_is(part: &Part<'_>, violation: Violation) -> Failure {
    let (time, culprit) = last_return(part, &violation.operations);
    failure(violation.operations, violation.reason, violation.subject, time, culprit)
}

/// All operations up to the culprit's return.
pub(crate) fn up_to(part: &Part<'_>, culprit: Option<u32>) -> Failure {
    let (time, culprit) = culprit
        .map_or_else(|| last_return(part, part.rows()), |culprit| (part.history().ret(culprit as usize), culprit));
    failure(part.until(time).rows().to_vec(), reason(part, culprit), Some(culprit), time, culprit)
}

fn failure(mut operations: Vec<u32>, reason: String, subject: Option<u32>, time: u64, culprit: u32) -> Failure {
    operations.sort_unstable();
    Failure {
        example: Counterexample { operations, reason, subject, start: None, prefix: None },
        time,
        culprit,
        first: true,
    }
}

fn reason(part: &Part<'_>, culprit: u32) -> String {
    let history = part.history();
    let (process, shown) = (history.process(culprit as usize), history.show(culprit as usize));
    format!("process {process}: {shown} fits into no order of what happened by then")
}

/// The latest return of the rows within the part, and its row.
fn last_return(part: &Part<'_>, rows: &[u32]) -> (u64, u32) {
    let history = part.history();
    let returned = rows.iter().filter(|&&row| history.ret(row as usize) <= part.cut());
    let last = returned.map(|&row| (history.ret(row as usize), row)).max();
    last.unwrap_or((part.cut(), rows.last().copied().unwrap_or_default()))
}

/// The first return that no order explains, and all operations up to it. `culprit` is the row whose return the search
/// did not pass, if the search reported one.
pub(crate) fn locate(part: &Part<'_>, spec: &dyn DynSpec, culprit: Option<u32>, budget: &Budget) -> Failure {
    let history = part.history();
    let decide = |part: &Part<'_>, budget: &mut Budget| decide(part, spec, budget, &mut Reach::default());
    let mut budget = budget.lend();
    // The search also used answers that came after the culprit's return. Without those answers, the operations up to
    // the return may have an order.
    let fails_by_then = |culprit: &u32, budget: &mut Budget| {
        matches!(decide(&part.until(history.ret(*culprit as usize)), budget), Ok(Outcome::Fails { .. }))
    };
    let (culprit, first) = match culprit.filter(|culprit| fails_by_then(culprit, &mut budget)) {
        Some(culprit) => (culprit, true),
        None => first_failure(part, &mut budget, decide),
    };
    Failure { first, ..up_to(part, Some(culprit)) }
}

/// Reduces a failure that contains all operations up to its time.
pub(crate) fn shrink(part: &Part<'_>, spec: &dyn DynSpec, failure: Failure, budget: &Budget) -> Failure {
    let decide = |part: &Part<'_>, budget: &mut Budget| decide(part, spec, budget, &mut Reach::default());
    let part = part.until(failure.time);
    let rows = reduce(&part, spec, budget.lend_share(2), decide);
    let windowed = (rows.len() > AT_A_GLANCE).then(|| window(&part.with_rows(&rows[..]), spec, budget)).flatten();
    let (operations, start) = windowed.map_or((rows, None), |(rows, start)| (rows, Some(start)));
    failure.shown_by(operations, start)
}

/// The row of the earliest return by which the part fails, and whether it is certainly the earliest.
fn first_failure(
    part: &Part<'_>,
    budget: &mut Budget,
    decide: impl Fn(&Part<'_>, &mut Budget) -> Result<Outcome, Exhausted>,
) -> (u32, bool) {
    let returned = (0..part.len()).filter(|&p| part.ret(p) != PENDING);
    let mut returns: Vec<(u64, u32)> = returned.map(|p| (part.ret(p), part.row(p))).collect();
    returns.sort_unstable();
    let (mut holds, mut fails) = (0, returns.len() - 1);
    while holds < fails {
        let middle = (holds + fails) / 2;
        match budget.look_at_the_clock().and_then(|()| decide(&part.until(returns[middle].0), budget)) {
            Ok(Outcome::Fails { .. }) => fails = middle,
            Ok(Outcome::Holds(_)) => holds = middle + 1,
            Err(_) => return (returns[fails].1, false),
        }
    }
    (returns[fails].1, true)
}

/// Removes superfluous operations: single ones that change no state, and whole groups (see
/// [`Spec::group`](crate::Spec::group)).
///
/// The remaining operations fail, which proves that the part fails: a legal order of the part would contain a legal
/// order of them. Groups are removed first, because they are large. They are tried once more at the end, because an
/// operation that [pinned](crate::Spec::pins) all groups may have been removed by then.
pub(crate) fn reduce(
    part: &Part<'_>,
    spec: &dyn DynSpec,
    mut budget: Budget,
    decide: impl Fn(&Part<'_>, &mut Budget) -> Result<Outcome, Exhausted>,
) -> Vec<u32> {
    let mut fails = |mut rows: Vec<u32>| {
        rows.sort_unstable();
        let decided = budget.look_at_the_clock().and_then(|()| decide(&part.with_rows(rows), &mut budget));
        matches!(decided, Ok(Outcome::Fails { .. }))
    };
    let rows = without_groups(part, spec, part.rows().to_vec(), &mut fails);
    let (idle, changing): (Vec<u32>, Vec<u32>) = rows.into_iter().partition(|&row| spec.pure(&part.call_of(row)));
    let idle = fewest(idle.into_iter().map(|row| vec![row]).collect(), |idle| {
        fails(idle.iter().flatten().chain(&changing).copied().collect())
    });
    let rows = idle.into_iter().flatten().chain(changing).collect();
    let mut rows = without_groups(part, spec, rows, &mut fails);
    rows.sort_unstable();
    rows
}

/// The rows without superfluous groups; all rows if an operation pins all groups.
fn without_groups(
    part: &Part<'_>,
    spec: &dyn DynSpec,
    rows: Vec<u32>,
    fails: &mut impl FnMut(Vec<u32>) -> bool,
) -> Vec<u32> {
    if rows.iter().any(|&row| spec.pins(&part.call_of(row))) {
        return rows;
    }
    let mut groups = BTreeMap::new();
    let mut kept: Vec<u32> = Vec::new();
    for row in rows {
        let call = part.call_of(row);
        match spec.group(&call).filter(|_| !spec.pure(&call)) {
            Some(group) => groups.entry((spec.object(&call), group)).or_insert_with(Vec::new).push(row),
            None => kept.push(row),
        }
    }
    let groups =
        fewest(groups.into_values().collect(), |groups| fails(groups.iter().flatten().chain(&kept).copied().collect()));
    groups.into_iter().flatten().chain(kept).collect()
}

/// Removes units, many at a time and then one at a time, while the remaining units satisfy `fails`.
fn fewest(mut units: Vec<Vec<u32>>, mut fails: impl FnMut(&[Vec<u32>]) -> bool) -> Vec<Vec<u32>> {
    let mut chunk = units.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < units.len() {
            let end = (start + chunk).min(units.len());
            let fewer = [&units[..start], &units[end..]].concat();
            if fails(&fewer) { units = fewer } else { start = end }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    units
}

/// Whether a failure has too many operations to be readable at a glance.
pub(crate) fn is_large(failure: &Failure) -> bool {
    failure.example.operations.len() > AT_A_GLANCE
}

/// Reduces a failure to fewer operations, if possible.
///
/// `part` has the failure's rows with their final outcomes, because a later answer may show that its operation is
/// unrelated. But the remaining operations must fail by the time of the failure, without the later answers. Otherwise a
/// later answer with a value that no remaining operation inserted would itself count as the failure.
pub(crate) fn fewer(
    part: &Part<'_>,
    failure: Failure,
    spec: &dyn DynSpec,
    procedure: impl Fn(&Part<'_>, &mut Budget) -> Option<Result<Decision, Exhausted>>,
    budget: &Budget,
) -> Failure {
    // If the procedure cannot decide the remaining operations of an attempt, they count as legal, and the attempt's
    // removal is undone. A search for each such attempt would take too long.
    let decide = |part: &Part<'_>, budget: &mut Budget| match procedure(part, budget) {
        Some(Err(exhausted)) => Err(exhausted),
        Some(Ok(Decision::Fails(_))) => Ok(Outcome::Fails { culprit: None }),
        Some(Ok(Decision::Holds(_))) | None => Ok(Outcome::Holds(Vec::new())),
    };
    let fails_by_then = |rows: &[u32]| {
        let rows = part.with_rows(rows);
        matches!(decide(&rows.until(failure.time), &mut budget.lend_share(VIEWING)), Ok(Outcome::Fails { .. }))
    };
    let mut operations = reduce(part, spec, budget.lend_share(VIEWING), decide);
    if !fails_by_then(&operations) {
        let rows = without_strangers(part, failure.time);
        if !fails_by_then(&rows) {
            return failure;
        }
        operations = reduce(&part.with_rows(rows).until(failure.time), spec, budget.lend_share(VIEWING), decide);
    }
    failure.shown_by(operations, None)
}

/// The rows without strangers. A stranger is an operation that had not answered by `time` and later returned a value
/// that no other row has, so it did not touch the other rows' values.
fn without_strangers(part: &Part<'_>, time: u64) -> Vec<u32> {
    let mut known = HashMap::new();
    for p in 0..part.len() {
        for value in [Some(part.input(p)), part.output(p)].into_iter().flatten() {
            *known.entry(value).or_insert(0) += 1;
        }
    }
    let is_stranger = |p: usize| {
        let gave = part.output(p).filter(|value| !value.is_null() && part.ret(p) > time && part.input(p).is_null());
        gave.is_some_and(|value| known[&value] == 1)
    };
    (0..part.len()).filter(|&p| !is_stranger(p)).map(|p| part.row(p)).collect()
}

/// Reduces a failure to its last operations, if possible. `part` ends with the failure.
pub(crate) fn latest(part: &Part<'_>, failure: Failure, spec: &dyn DynSpec, budget: &Budget) -> Failure {
    match window(part, spec, budget) {
        Some((operations, start)) => failure.shown_by(operations, Some(start)),
        None => failure,
    }
}

/// The last operations of the part, and their start states: all states to which the earlier operations can lead.
fn window(part: &Part<'_>, spec: &dyn DynSpec, budget: &Budget) -> Option<(Vec<u32>, String)> {
    let entered = entries(part, spec, &mut budget.lend()).ok()?;
    let best = entered.levels.iter().enumerate().filter_map(|(passed, entries)| {
        let rows = rows_from(part, passed);
        let fits = !entries.is_empty() && rows.len() <= AT_A_GLANCE;
        fits.then_some((entries.len(), rows.len(), passed, rows))
    });
    let (_, _, passed, rows) = best.min()?;
    Some((rows, describe(part, &entered, passed)))
}

/// The rows that have not returned when `passed` operations have returned.
fn rows_from(part: &Part<'_>, passed: usize) -> Vec<u32> {
    let mut returned: Vec<usize> = (0..part.len()).filter(|&p| part.ret(p) != PENDING).collect();
    returned.sort_by_key(|&p| part.ret(p));
    let mut gone = vec![false; part.len()];
    returned[..passed].iter().for_each(|&p| gone[p] = true);
    (0..part.len()).filter(|&p| !gone[p]).map(|p| part.row(p)).collect()
}

/// Describes the configurations after `passed` returns.
fn describe(part: &Part<'_>, entered: &Entered<'_>, passed: usize) -> String {
    let history = part.history();
    let starts = entered.levels[passed].iter().map(|Entry { state, done }| {
        let state = entered.states.describe(*state, history.values());
        let done: Vec<String> = done.iter().map(|&row| history.show(row as usize).to_string()).collect();
        if done.is_empty() { state } else { format!("{state}, with {} done", done.join(" and ")) }
    });
    let mut starts: Vec<String> = starts.collect();
    starts.sort_unstable();
    starts.dedup();
    let untold = starts.len().saturating_sub(STARTS);
    starts.truncate(STARTS);
    if untold > 0 {
        starts.push(format!("one of {untold} others"));
    }
    starts.join("; or ")
}

#[cfg(test)]
mod tests {
    use super::first_failure;
    use crate::budget::{Budget, Options};
    use crate::builder::Builder;
    use crate::history::History;
    use crate::operation::{Op, Operation};
    use crate::part::Part;
    use crate::search::Outcome;
    use crate::value::Value;

    pub(super) const COUNT: u64 = 40;
    pub(super) const RETURNS: u64 = 100;

    /// Operations that are all called before any returns; row `n` returns at `RETURNS + n`.
    pub(super) fn at_once() -> History {
        let mut builder = Builder::new();
        for row in 0..COUNT {
            let operation = Operation::new(row as u32, Op::WRITE, Value::NULL);
            builder.push(Operation { call: row, ret: Some(RETURNS + row), ..operation }).expect("a process each");
        }
        builder.finish().expect("a process each")
    }

    #[test]
    fn bisection_finds_the_first_failure_wherever_it_is() {
        let history = at_once();
        for first in 0..COUNT {
            let fails = |part: &Part<'_>, _: &mut Budget| {
                let failed = part.cut() >= RETURNS + first;
                Ok(if failed { Outcome::Fails { culprit: None } } else { Outcome::Holds(Vec::new()) })
            };
            let found = first_failure(&Part::whole(&history), &mut Budget::new(&Options::default()), fails);
            assert_eq!(found, (first as u32, true));
        }
    }
}
