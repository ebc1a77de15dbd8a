//! Decides every key, and stops at the first failure found.
//!
//! If the history of a key is unambiguous, a procedure decides it without a search. Objects that no procedure decides
//! go to the general search, one at a time. So that one hard object does not block the others, the search of each
//! object is first limited to a short turn. The objects still undecided then get further turns, each longer by a
//! constant factor. Every turn searches from the start. This costs a seventh more steps than one long search, but needs
//! no memory between turns.

use std::collections::VecDeque;

use crate::budget::{Budget, Exhausted};
use crate::model::Model;
use crate::monitor::{self, Decision, Violation};
use crate::part::Part;
use crate::search::{self, Outcome, Reach};
use crate::spec::{DynSpec, Subject};
use crate::split::{Split, merge};
use crate::value::Value;
use crate::verdict::{Limit, Progress, Verdict, Witness};

/// The steps of an object's first turn.
const FIRST_TURN: u64 = 1 << 12;

/// The length of each turn relative to the previous turn.
const GROWTH: u64 = 8;

/// Operations that have no legal order, and the proof.
pub(super) struct Found {
    /// The number of the operations' key.
    pub(super) key: usize,
    /// The operations' rows; if a procedure found the failure, all rows of the key.
    pub(super) rows: Vec<u32>,
    /// The cut at which the operations were examined.
    pub(super) cut: u64,
    pub(super) proof: Proof,
}

/// The proof that operations have no legal order.
pub(super) enum Proof {
    /// The general search tried all orders. `culprit` is the row of the first return that no order explains; `None` if
    /// the search does not know it.
    Search { culprit: Option<u32> },
    /// A procedure found a violation.
    Procedure(Violation),
    /// A procedure found a violation that does not depend on the bound of a container: the operations that the
    /// container accepted have no legal order even without the bound.
    WithoutBound(Violation),
}

/// An object that the search has not decided yet.
struct Open {
    key: usize,
    rows: Vec<u32>,
    /// The number of returns that the best attempt explained.
    passed: usize,
}

/// The state of a check: the keys decided so far, and the undecided objects.
pub(super) struct Deciding<'a, 'h> {
    whole: &'a Part<'h>,
    subject: Subject<'a>,
    keys: &'a Split,
    budget: Budget,
    /// Later events are ignored.
    cut: u64,
    next_key: usize,
    open: VecDeque<Open>,
    /// The orders of the decided keys, until a failure is found.
    orders: Option<Vec<Vec<u32>>>,
    exhausted: Option<Exhausted>,
    progress: Progress,
}

impl<'a, 'h> Deciding<'a, 'h> {
    pub(super) fn new(whole: &'a Part<'h>, subject: Subject<'a>, keys: &'a Split, budget: Budget) -> Self {
        Deciding {
            whole,
            subject,
            keys,
            budget,
            cut: whole.cut(),
            next_key: 0,
            open: VecDeque::new(),
            orders: Some(Vec::new()),
            exhausted: None,
            progress: Progress { limit: Limit::Time, decided: 0, total: returned(whole), configurations: 0 },
        }
    }

    /// From now on, only failures before `time` count, and `budget` limits the check.
    pub(super) fn only_before(&mut self, time: u64, budget: Budget) {
        self.cut = time.saturating_sub(1);
        self.budget = budget;
    }

    /// Whether every key so far was decided.
    pub(super) fn is_complete(&self) -> bool {
        self.exhausted.is_none()
    }

    /// The verdict of a history without a failure.
    pub(super) fn verdict(self) -> Verdict {
        match self.exhausted {
            Some(Exhausted(limit)) => Verdict::Unknown(Progress { limit, ..self.progress }),
            None => {
                let order = merge(self.whole.history(), self.orders.unwrap_or_default());
                Verdict::Holds(Witness { order })
            }
        }
    }

    /// Continues until a failure is found or all keys are decided.
    pub(super) fn next_failure(&mut self) -> Option<Found> {
        let found = loop {
            if self.next_key == self.keys.len() {
                break self.take_turns();
            }
            self.next_key += 1;
            if let Some(found) = self.key(self.next_key - 1) {
                break Some(found);
            }
        };
        if found.is_some() {
            self.orders = None;
        }
        found
    }

    /// Decides the key, except for hard objects, which it adds to the open ones.
    fn key(&mut self, key: usize) -> Option<Found> {
        let part = self.whole.of_rows(self.keys.rows(key), self.cut);
        let (proof, rows) = match self.procedure(&part) {
            None => return self.subject.with(&part, |spec| self.objects(&part, key, spec)),
            Some(Ok(Decided::Holds(order))) => {
                self.holds(&part, order);
                return None;
            }
            Some(Ok(Decided::Fails(proof))) => (proof, part.rows().to_vec()),
            Some(Err(exhausted)) => {
                self.gave_up(exhausted, 0);
                return None;
            }
        };
        Some(Found { key, rows, cut: self.cut, proof })
    }

    /// Runs the first turn of each object of a key.
    fn objects(&mut self, part: &Part<'_>, key: usize, spec: &dyn DynSpec) -> Option<Found> {
        let split = match Split::new(part, |call| spec.object(call), &mut self.budget) {
            Ok(split) => split,
            Err(exhausted) => {
                self.gave_up(exhausted, 0);
                return None;
            }
        };
        let mut objects = (0..split.len()).map(|number| Open { key, rows: split.rows(number).to_vec(), passed: 0 });
        let found = objects.find_map(|open| self.search(spec, open, FIRST_TURN));
        if found.is_some() {
            self.open.extend(objects);
        }
        found
    }

    /// The decision of a procedure, if one applies.
    fn procedure(&self, part: &Part<'_>) -> Option<Result<Decided, Exhausted>> {
        let model = self.subject.model()?;
        if let Some(decision) = monitor::try_decide(part, model, &mut self.budget.lend()) {
            return Some(decision.map(|decision| match decision {
                Decision::Holds(order) => Decided::Holds(order),
                Decision::Fails(violation) => Decided::Fails(Proof::Procedure(violation)),
            }));
        }
        let (accepted, unbounded) = without_bound(part, model)?;
        match monitor::try_decide(&part.with_rows(accepted), &unbounded, &mut self.budget.lend())? {
            Ok(Decision::Fails(violation)) => Some(Ok(Decided::Fails(Proof::WithoutBound(violation)))),
            _ => None,
        }
    }

    /// Searches the open objects in turns.
    fn take_turns(&mut self) -> Option<Found> {
        let mut ticks = FIRST_TURN;
        while !self.open.is_empty() {
            ticks = ticks.saturating_mul(GROWTH);
            for _ in 0..self.open.len() {
                // If only one object is left, no other waits for its turn to end, so the turn is unlimited.
                let ticks = if self.open.len() == 1 { u64::MAX } else { ticks };
                let open = self.open.pop_front()?;
                let part = self.whole.of_rows(self.keys.rows(open.key), self.cut);
                if let Some(found) = self.subject.with(&part, |spec| self.search(spec, open, ticks)) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// A turn of the general search.
    fn search(&mut self, spec: &dyn DynSpec, open: Open, ticks: u64) -> Option<Found> {
        let part = self.whole.of_rows(&open.rows, self.cut);
        let mut reach = Reach::default();
        let outcome = search::decide(&part, spec, &mut self.budget.lend_turn(ticks), &mut reach);
        self.progress.configurations += reach.configurations;
        let passed = open.passed.max(reach.passed);
        match outcome {
            Ok(Outcome::Holds(order)) => self.holds(&part, order),
            Ok(Outcome::Fails { culprit }) => {
                let rows = part.rows().to_vec();
                return Some(Found { key: open.key, rows, cut: self.cut, proof: Proof::Search { culprit } });
            }
            Err(Exhausted(Limit::Time)) if self.budget.look_at_the_clock().is_ok() => {
                self.open.push_back(Open { passed, ..open });
            }
            Err(exhausted) => self.gave_up(exhausted, passed),
        }
        None
    }

    fn holds(&mut self, part: &Part<'_>, order: Vec<u32>) {
        let Some(orders) = &mut self.orders else { return };
        self.progress.decided += returned(part);
        let bytes = order.len() * (size_of::<u32>() + size_of::<(u64, u32)>());
        orders.push(order);
        if let Err(exhausted) = self.budget.charge(bytes) {
            self.gave_up(exhausted, 0);
        }
    }

    fn gave_up(&mut self, exhausted: Exhausted, passed: usize) {
        self.progress.decided += passed;
        self.exhausted.get_or_insert(exhausted);
    }
}

/// A procedure's decision.
enum Decided {
    Holds(Vec<u32>),
    Fails(Proof),
}

/// The operations that a bounded container did not refuse, and its model without the bound. If these operations violate
/// the unbounded model, all operations violate the bounded one.
pub(super) fn without_bound(part: &Part<'_>, model: &Model) -> Option<(Vec<u32>, Model)> {
    let (insert, _) = monitor::operations(model.kind).filter(|_| model.capacity.is_some())?;
    let refused = |p: usize| part.op(p) == insert && part.output(p) == Some(Value::FALSE);
    let accepted = (0..part.len()).filter(|&p| !refused(p)).map(|p| part.row(p)).collect();
    Some((accepted, Model { capacity: None, ..*model }))
}

/// The number of the part's operations that returned.
pub(super) fn returned(part: &Part<'_>) -> usize {
    (0..part.len()).filter(|&p| part.output(p).is_some()).count()
}
