//! Explains a failure: the earliest among all keys, shown by few operations.

use super::decide::{Deciding, Found, Proof, without_bound};
use crate::budget::Budget;
use crate::explain::{self, Failure};
use crate::history::History;
use crate::model::Model;
use crate::monitor::{self, Violation};
use crate::operation::Status;
use crate::part::Part;
use crate::search::{self, Outcome, Reach};
use crate::spec::{DynSpec, Subject, with_spec};
use crate::split::Split;
use crate::verdict::{Counterexample, Prefix};

/// After a procedure found a failure that does not depend on the bound, the general search looks for one within the
/// bound, if there are at most this many operations. Its result is used only if it is certainly the earliest failure
/// and readable at a glance; otherwise, the failure without the bound is explained.
const MAX_SEARCHED: usize = 10_000;

/// An explanation in progress. Half of its time is for finding the earliest failure, and half for reducing that failure
/// to few operations.
pub(super) struct Explaining<'a, 'h> {
    pub(super) whole: &'a Part<'h>,
    pub(super) subject: Subject<'a>,
    pub(super) keys: &'a Split,
    pub(super) budget: Budget,
}

impl Explaining<'_, '_> {
    /// The failure as it was found, without a search for an earlier one or for fewer operations.
    pub(super) fn as_it_is(&self, found: Found) -> Counterexample {
        let part = self.whole.of_rows(&found.rows, found.cut);
        match found.proof {
            Proof::Search { culprit } => explain::up_to(&part, culprit),
            Proof::Procedure(violation) | Proof::WithoutBound(violation) => explain::as_it_is(&part, violation),
        }
        .example
    }

    /// The earliest failure of all keys. `deciding` has just found the failure `found`, and continues with the keys
    /// that it has not decided yet.
    pub(super) fn earliest(&self, found: Found, mut deciding: Deciding<'_, '_>) -> Counterexample {
        let mut found = found;
        let mut failure = self.locate(&found, &self.budget.lend_share(2));
        // The loop below finds only failures before the located time of this failure. If the true time of this failure
        // may be earlier than its located time, this failure may precede those too, and none of them is certainly the
        // first.
        let mut is_first = failure.first;
        let others = self.budget.lend_share(2);
        loop {
            deciding.only_before(failure.time, others.lend());
            let Some(earlier) = deciding.next_failure() else { break };
            let located = self.locate(&earlier, &others.lend_share(2));
            is_first &= located.first;
            if located.time < failure.time {
                (found, failure) = (earlier, located);
            }
        }
        is_first &= deciding.is_complete();
        let (time, culprit) = (failure.time, failure.culprit);
        let example = self.shrink(&found, failure).example;
        let prefix = is_first.then(|| prefix(self.whole.history(), time, culprit));
        Counterexample { prefix, ..example }
    }

    /// The operations that fail (of one object or of a whole key), and all operations of their key; both up to the cut
    /// of the failure.
    fn parts<'f>(&'f self, found: &'f Found) -> (Part<'f>, Part<'f>) {
        (self.whole.of_rows(&found.rows, found.cut), self.whole.of_rows(self.keys.rows(found.key), found.cut))
    }

    /// The failure at the earliest time at which the part fails.
    fn locate(&self, found: &Found, budget: &Budget) -> Failure {
        let (part, key) = self.parts(found);
        match (&found.proof, self.subject.model()) {
            (Proof::Procedure(violation), Some(model)) => earliest(&part, violation, model, budget),
            (Proof::WithoutBound(violation), Some(model)) => {
                let searched = (part.len() <= MAX_SEARCHED)
                    .then(|| self.subject.with(&key, |spec| within_bound(&part, spec, budget)))
                    .flatten();
                searched.unwrap_or_else(|| {
                    let (accepted, unbounded) = without_bound(&part, model).expect("the proof is without the bound");
                    let failure = earliest(&part.with_rows(accepted), violation, &unbounded, budget);
                    // The operations before this failure may violate the bound, so it is not certainly the first.
                    Failure { first: false, ..failure }
                })
            }
            (&Proof::Search { culprit }, _) => {
                self.subject.with(&key, |spec| explain::locate(&part, spec, culprit, budget))
            }
            (_, None) => unreachable!("only a model has a procedure"),
        }
    }

    /// The failure with as few operations as the remaining time permits.
    fn shrink(&self, found: &Found, failure: Failure) -> Failure {
        let (part, key) = self.parts(found);
        match (&found.proof, self.subject.model()) {
            (Proof::Procedure(_), Some(model)) => self.in_view(&part, model, failure),
            (Proof::WithoutBound(_), Some(model)) => {
                let (accepted, unbounded) = without_bound(&part, model).expect("the proof is without the bound");
                self.in_view(&part.with_rows(accepted), &unbounded, failure)
            }
            _ => self.subject.with(&key, |spec| explain::shrink(&part, spec, failure, &self.budget)),
        }
    }

    /// Reduces the failure that a procedure found if it has too many operations to be readable at a glance.
    fn in_view(&self, part: &Part<'_>, model: &Model, failure: Failure) -> Failure {
        if !explain::is_large(&failure) {
            return failure;
        }
        let decide = |part: &Part<'_>, budget: &mut Budget| monitor::try_decide(part, model, budget);
        let budget = &self.budget;
        let shown = part.with_rows(failure.example.operations.clone());
        let failure = with_spec(model, &shown, |spec| explain::fewer(&shown, failure, spec, decide, budget));
        if !explain::is_large(&failure) {
            return failure;
        }
        // Operations that return after the failure become pending here, for the specification too.
        let shown = shown.until(failure.time);
        with_spec(model, &shown, |spec| explain::latest(&shown, failure, spec, budget))
    }
}

/// The earliest failure according to the model's procedure, which found the violation.
fn earliest(part: &Part<'_>, violation: &Violation, model: &Model, budget: &Budget) -> Failure {
    let decide = |part: &Part<'_>, budget: &mut Budget| monitor::try_decide(part, model, budget);
    explain::earliest(part, violation.clone(), monitor::operations(model.kind), decide, budget)
}

/// The longest legal prefix, given that the event at `time` is the first that makes the history illegal.
fn prefix(history: &History, time: u64, culprit: u32) -> Prefix {
    let rows = 0..history.len();
    let events = rows.clone().flat_map(|row| [history.call(row), history.ret(row)]);
    let until = events.filter(|&event| event < time).max().unwrap_or(0);
    let operations = rows.filter(|&row| history.status(row) == Status::Ok && history.ret(row) < time).count();
    Prefix { until, operations, culprit }
}

/// The failure that the general search finds within the bound. `None` if it finds none in the given time, or if the
/// failure is not certainly the first, or is not readable at a glance.
fn within_bound(part: &Part<'_>, spec: &dyn DynSpec, budget: &Budget) -> Option<Failure> {
    let mut searching = budget.lend_share(2);
    let Ok(Outcome::Fails { culprit }) = search::decide(part, spec, &mut searching, &mut Reach::default()) else {
        return None;
    };
    let failure = explain::locate(part, spec, culprit, budget);
    let failure = explain::shrink(part, spec, failure, budget);
    (failure.first && !explain::is_large(&failure)).then_some(failure)
}
