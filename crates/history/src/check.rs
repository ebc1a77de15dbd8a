//! The way of a check: validate, part, decide, explain.

use std::time::Duration;

use thiserror::Error;

use crate::budget::{Budget, Exhausted, Options};
use crate::explain;
use crate::history::History;
use crate::model::{Kind, Model};
use crate::monitor::{self, Decision, Violation};
use crate::operation::Status;
use crate::part::Part;
use crate::search::{self, Outcome, Reach};
use crate::spec::{self, Misuse, Spec, Task, with_spec};
use crate::split::{Split, merge};
use crate::value::Value;
use crate::verdict::{Counterexample, Limit, Prefix, Progress, Verdict, Witness};

/// A history that a specification says nothing about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("operation {row}: {misuse}")]
pub struct CheckError {
    /// The row of the operation.
    pub row: u32,
    /// What is wrong with it.
    #[source]
    pub misuse: Misuse,
}

/// Decides whether the history is linearizable: whether each operation can have happened at one moment between its call and
/// its return, so that together they do what the model says.
///
/// Histories of distinct values are decided in near-linear time where there is a procedure (see the crate's table), all
/// others by the general search, whose time is exponential in the worst case. The limits are in `options`.
///
/// # Errors
/// If the model has no such operations.
///
/// ```
/// use millstream_history::{Builder, Kind, Op, Operation, Options, Value, check};
///
/// let mut builder = Builder::new();
/// let enqueue = Operation::new(0, Op::ENQUEUE, Value::int(1));
/// let dequeue = Operation::new(1, Op::DEQUEUE, Value::NULL);
/// builder.push(Operation { call: 0, ret: Some(10), ..enqueue })?;
/// builder.push(Operation { call: 20, ret: Some(30), output: Value::NULL, ..dequeue })?;
/// let history = builder.finish()?;
/// let verdict = check(&history, &Kind::Queue.into(), &Options::default())?;
/// assert_eq!(verdict.holds(), Some(false), "it found the queue empty, and there was a value in it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check(history: &History, model: &Model, options: &Options) -> Result<Verdict, CheckError> {
    validate(history, model.kind)?;
    let whole = Part::whole(history);
    let mut check = Check::new(options, &whole);
    let parted = match Split::new(&whole, |call| [call.key, None], &mut check.budget) {
        Ok(parted) => parted,
        Err(exhausted) => return Ok(check.unknown(exhausted)),
    };
    for rows in parted.groups() {
        let part = whole.with_rows(rows);
        if check.part(&part, model) == Next::Stop {
            break;
        }
    }
    Ok(check.verdict())
}

/// Decides whether the history is linearizable by a specification of your own: see [`spec`](crate::spec).
pub fn check_spec<S: Spec>(history: &History, spec: &S, options: &Options) -> Verdict {
    let whole = Part::whole(history);
    let mut check = Check::new(options, &whole);
    check.objects(&whole, spec);
    check.verdict()
}

/// Whether the kind has the history's operations.
pub(crate) fn validate(history: &History, kind: Kind) -> Result<(), CheckError> {
    for row in 0..history.len() {
        let operation = history.get(row);
        spec::accept(kind, &operation, history.op_name(operation.op), history.values())
            .map_err(|misuse| CheckError { row: row as u32, misuse })?;
    }
    Ok(())
}

/// What is known to fail, and has no more operations than this, is searched for so much processor time; if that finds
/// the failure, where it fails first is looked for as in any other.
const SEARCHING: Duration = Duration::from_millis(200);
const SEARCHED_MOST: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// A part that fails, as far as it is known.
pub(crate) struct Failure {
    pub(crate) example: Counterexample,
    /// When the first event that cannot be explained happens.
    pub(crate) time: u64,
    /// The row whose event it is.
    pub(crate) culprit: u32,
    /// Whether it is the first that fails.
    pub(crate) first: bool,
}

/// A check under way.
struct Check<'h> {
    history: &'h History,
    budget: Budget,
    explain: bool,
    orders: Vec<Vec<u32>>,
    failure: Option<Failure>,
    exhausted: Option<Exhausted>,
    progress: Progress,
}

impl<'h> Check<'h> {
    fn new(options: &Options, whole: &Part<'h>) -> Self {
        let total = (0..whole.len()).filter(|&p| whole.output(p).is_some()).count();
        Check {
            history: whole.history(),
            budget: Budget::new(options),
            explain: options.explain,
            orders: Vec::new(),
            failure: None,
            exhausted: None,
            progress: Progress { limit: Limit::Time, decided: 0, total, configurations: 0 },
        }
    }

    fn unknown(self, Exhausted(limit): Exhausted) -> Verdict {
        Verdict::Unknown(Progress { limit, ..self.progress })
    }

    fn verdict(self) -> Verdict {
        match (self.failure, self.exhausted) {
            (Some(Failure { example, time, culprit, first }), _) => {
                // What was not decided may fail earlier.
                let prefix =
                    (self.explain && first && self.exhausted.is_none()).then(|| prefix(self.history, time, culprit));
                Verdict::Fails(Counterexample { prefix, ..example })
            }
            (None, Some(Exhausted(limit))) => Verdict::Unknown(Progress { limit, ..self.progress }),
            (None, None) => Verdict::Holds(Witness { order: merge(self.history, self.orders) }),
        }
    }

    /// One key's history.
    fn part(&mut self, part: &Part<'_>, model: &Model) -> Next {
        let part = &self.before_failure(part);
        if let Some(decided) = self.unambiguous(part, model) {
            return decided;
        }
        if let Some(fails) = self.without_bound(part, model) {
            return fails;
        }
        with_spec(model, part, Objects { check: self, part })
    }

    /// The answer of a procedure for unambiguous histories, if there is one.
    fn unambiguous(&mut self, part: &Part<'_>, model: &Model) -> Option<Next> {
        Some(match monitor::try_decide(part, model, &mut self.budget.lend())? {
            Ok(Decision::Holds(order)) => self.holds(part, order),
            Ok(Decision::Fails(violation)) => self.violated(part, model, violation, true),
            Err(exhausted) => self.gave_up(exhausted, Reach::default()),
        })
    }

    /// A bounded container whose accepted operations no unbounded one can have given fails; nothing else is said. When it failed
    /// the search can tell, if it gets that far.
    fn without_bound(&mut self, part: &Part<'_>, model: &Model) -> Option<Next> {
        let unbounded = Model { capacity: None, ..*model };
        let (insert, _) = monitor::operations(model.kind).filter(|_| model.capacity.is_some())?;
        let refused = |&p: &usize| part.op(p) == insert && part.output(p) == Some(Value::FALSE);
        let accepted = (0..part.len()).filter(|p| !refused(p));
        let accepted: Vec<u32> = accepted.map(|p| part.row(p)).collect();
        let accepted = &part.with_rows(accepted);
        match monitor::try_decide(accepted, &unbounded, &mut self.budget.lend())? {
            Ok(Decision::Fails(violation)) => {
                let searched = (self.explain && part.len() <= SEARCHED_MOST)
                    .then(|| with_spec(model, part, First { part, budget: &self.budget }));
                Some(match searched.flatten() {
                    Some(failure) => self.fails(failure),
                    // That what came before has an order does not say that it has one within the bound.
                    None => self.violated(accepted, &unbounded, violation, false),
                })
            }
            _ => None,
        }
    }

    /// A procedure's violation. `all` says that the part and the model are all there is to look at.
    fn violated(&mut self, part: &Part<'_>, model: &Model, violation: Violation, all: bool) -> Next {
        let decide = |part: &Part<'_>, budget: &mut Budget| monitor::try_decide(part, model, budget);
        let failure = match self.explain {
            true => {
                let failure = explain::earliest(part, violation, monitor::operations(model.kind), decide, &self.budget);
                self.in_view(part, model, failure, decide)
            }
            false => explain::as_it_is(part, violation),
        };
        self.fails(Failure { first: failure.first && all, ..failure })
    }

    /// A failure that can be taken in at a glance, if there is one.
    fn in_view(
        &self,
        part: &Part<'_>,
        model: &Model,
        failure: Failure,
        decide: impl Fn(&Part<'_>, &mut Budget) -> Option<Result<Decision, Exhausted>>,
    ) -> Failure {
        if !explain::is_large(&failure) {
            return failure;
        }
        let budget = &self.budget;
        let shown = part.with_rows(failure.example.operations.clone());
        let failure = with_spec(model, &shown, Fewer { part: &shown, failure, decide, budget });
        if !explain::is_large(&failure) {
            return failure;
        }
        // What was not known by then is unknown to the specification, too.
        let shown = shown.until(failure.time);
        with_spec(model, &shown, Latest { part: &shown, failure, budget })
    }

    /// The history of several objects that the specification tells apart.
    fn objects<S: Spec>(&mut self, part: &Part<'_>, spec: &S) -> Next {
        let split = match Split::new(part, |call| spec.object(call), &mut self.budget) {
            Ok(split) => split,
            Err(exhausted) => return self.gave_up(exhausted, Reach::default()),
        };
        for rows in split.groups() {
            let part = part.with_rows(rows);
            if self.object(&self.before_failure(&part), spec) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::GoOn
    }

    /// One object's history, by the general search.
    fn object<S: Spec>(&mut self, part: &Part<'_>, spec: &S) -> Next {
        let mut reach = Reach::default();
        match search::decide(part, spec, &mut self.budget, &mut reach) {
            Ok(Outcome::Holds(order)) => {
                self.progress.configurations += reach.configurations;
                self.holds(part, order)
            }
            Ok(Outcome::Fails { culprit }) => {
                let failure = match self.explain {
                    true => explain::shrink(part, spec, culprit, &self.budget),
                    false => explain::up_to(part, culprit),
                };
                self.fails(failure)
            }
            Err(exhausted) => self.gave_up(exhausted, reach),
        }
    }

    /// What happened before the earliest failure known: an earlier one is a better explanation, a later one is of no use.
    fn before_failure<'p>(&self, part: &'p Part<'_>) -> Part<'p> {
        match &self.failure {
            Some(failure) => part.until(failure.time.saturating_sub(1)),
            None => part.with_rows(part.rows()),
        }
    }

    fn holds(&mut self, part: &Part<'_>, order: Vec<u32>) -> Next {
        self.progress.decided += (0..part.len()).filter(|&p| part.output(p).is_some()).count();
        let bytes = order.len() * (size_of::<u32>() + size_of::<(u64, u32)>());
        if self.failure.is_none() {
            self.orders.push(order);
            if let Err(exhausted) = self.budget.charge(bytes) {
                return self.gave_up(exhausted, Reach::default());
            }
        }
        Next::GoOn
    }

    fn fails(&mut self, failure: Failure) -> Next {
        // One that may fail earlier than is known may do so before all that is found later.
        let certain = self.failure.as_ref().is_none_or(|known| known.first);
        if self.failure.as_ref().is_none_or(|known| failure.time < known.time) {
            self.failure = Some(Failure { first: failure.first && certain, ..failure });
        }
        if self.explain { Next::GoOn } else { Next::Stop }
    }

    fn gave_up(&mut self, exhausted: Exhausted, reach: Reach) -> Next {
        self.progress.decided += reach.passed;
        self.progress.configurations += reach.configurations;
        self.exhausted.get_or_insert(exhausted);
        Next::GoOn
    }
}

struct Objects<'c, 'h, 'p> {
    check: &'c mut Check<'h>,
    part: &'c Part<'p>,
}

impl Task for Objects<'_, '_, '_> {
    type Output = Next;

    fn run<S: Spec>(self, spec: &S) -> Next {
        self.check.objects(self.part, spec)
    }
}

/// The failure that the general search finds, if it finds one soon.
struct First<'c, 'p> {
    part: &'c Part<'p>,
    budget: &'c Budget,
}

impl Task for First<'_, '_> {
    type Output = Option<Failure>;

    fn run<S: Spec>(self, spec: &S) -> Option<Failure> {
        match search::decide(self.part, spec, &mut self.budget.lend_for(SEARCHING), &mut Reach::default()) {
            Ok(Outcome::Fails { culprit }) => {
                let failure = explain::shrink(self.part, spec, culprit, self.budget);
                (failure.first && !explain::is_large(&failure)).then_some(failure)
            }
            _ => None,
        }
    }
}

struct Fewer<'c, 'p, D> {
    part: &'c Part<'p>,
    failure: Failure,
    decide: D,
    budget: &'c Budget,
}

impl<D: Fn(&Part<'_>, &mut Budget) -> Option<Result<Decision, Exhausted>>> Task for Fewer<'_, '_, D> {
    type Output = Failure;

    fn run<S: Spec>(self, spec: &S) -> Failure {
        explain::fewer(self.part, self.failure, spec, self.decide, self.budget)
    }
}

struct Latest<'c, 'p> {
    part: &'c Part<'p>,
    failure: Failure,
    budget: &'c Budget,
}

impl Task for Latest<'_, '_> {
    type Output = Failure;

    fn run<S: Spec>(self, spec: &S) -> Failure {
        explain::latest(self.part, self.failure, spec, self.budget)
    }
}

/// The longest prefix in order, when the event at `time` is the first that is not.
fn prefix(history: &History, time: u64, culprit: u32) -> Prefix {
    let rows = 0..history.len();
    let events = rows.clone().flat_map(|row| [history.call(row), history.ret(row)]);
    let until = events.filter(|&event| event < time).max().unwrap_or(0);
    let operations = rows.filter(|&row| history.status(row) == Status::Ok && history.ret(row) < time).count();
    Prefix { until, operations, culprit }
}
