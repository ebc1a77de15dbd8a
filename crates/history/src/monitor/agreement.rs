//! Compares every procedure with an exhaustive search: on all small histories, and on many random ones.
//!
//! `MILLSTREAM_STRESS=n` makes the random runs n times as long and the exhaustive ones one operation longer.

mod bounds;
mod oracle;
mod random;
mod small;
mod ties;

use super::{Decision, try_decide};
use crate::budget::{Budget, Options};
use crate::builder::Builder;
use crate::check::{check, check_spec};
use crate::history::History;
use crate::model::{Kind, Model};
use crate::operation::{Op, Operation};
use crate::part::Part;
use crate::spec::{Spec, Task, with_spec};
use crate::value::Value;
use oracle::Oracle;

/// An operation of a test history; each has a process of its own unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Act {
    op: Op,
    input: Option<i64>,
    /// Its answer if it returns.
    output: Answer,
    call: u64,
    ret: Option<u64>,
    process: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Null,
    Bool(bool),
    Int(i64),
}

impl Answer {
    fn value(self) -> Value {
        match self {
            Answer::Null => Value::NULL,
            Answer::Bool(bool) => Value::from(bool),
            Answer::Int(int) => Value::int(int),
        }
    }
}

fn history(acts: &[Act]) -> History {
    let mut builder = Builder::new();
    for act in acts {
        let operation = Operation {
            input: act.input.map_or(Value::NULL, Value::int),
            output: if act.ret.is_some() { act.output.value() } else { Value::NULL },
            call: act.call,
            ret: act.ret,
            ..Operation::new(act.process, act.op, Value::NULL)
        };
        builder.push(operation).expect("a process a call");
    }
    builder.finish().expect("no contradiction")
}

/// Counts of the cases seen, so that a test can assert that it saw enough.
#[derive(Debug, Default)]
struct Seen {
    held: u64,
    failed: u64,
    open: u64,
    largest_core: usize,
}

impl Seen {
    /// Compares the procedure's answer for `acts`, which ascend in their calls, with the oracle's.
    fn compare(&mut self, model: &Model, acts: &[Act]) {
        self.compare_part(model, acts, &Part::whole(&history(acts)));
    }

    /// The same, and compares the general search's answer as well.
    fn compare_both(&mut self, model: &Model, acts: &[Act]) {
        self.compare(model, acts);
        let history = history(acts);
        let expected = Oracle::new(model, acts).explains(&(0..acts.len()).collect::<Vec<_>>());
        let found = with_spec(model, &Part::whole(&history), Search(&history));
        assert_eq!(found, Some(expected), "the search: {model} {acts:?}");
    }

    /// Compares as [`compare`](Self::compare) does, for the prefix of the whole until `cut`.
    fn compare_prefix(&mut self, model: &Model, acts: &[Act], cut: u64) {
        self.compare_part(model, &until(acts, cut), &Part::whole(&history(acts)).until(cut));
    }

    fn compare_part(&mut self, model: &Model, acts: &[Act], part: &Part<'_>) {
        let oracle = Oracle::new(model, acts);
        let expected = oracle.explains(&(0..acts.len()).collect::<Vec<_>>());
        let mut budget = Budget::new(&Options::default());
        let answer = try_decide(part, model, &mut budget).map(|answer| answer.expect("there is memory"));
        match answer {
            None => self.open += 1,
            Some(Decision::Holds(order)) => {
                self.held += 1;
                assert!(expected, "held without a legal order: {model} {acts:?}");
                let order: Vec<usize> = order.into_iter().map(|row| row as usize).collect();
                oracle.check_order(&order);
            }
            Some(Decision::Fails(violation)) => {
                self.failed += 1;
                assert!(!expected, "failed with {violation:?}, but has a legal order: {model} {acts:?}");
                let rows: Vec<usize> = violation.operations.iter().map(|&row| row as usize).collect();
                assert!(rows.is_sorted_by(|a, b| a < b), "{violation:?}");
                self.largest_core = self.largest_core.max(rows.len());
                assert!(!oracle.explains(&rows), "{violation:?} can be explained alone: {model} {acts:?}");
                if let Some(cut) = violation.in_order_before.checked_sub(1) {
                    let before = until(acts, cut);
                    let explained = Oracle::new(model, &before).explains(&(0..before.len()).collect::<Vec<_>>());
                    assert!(explained, "the prefix is not in order, {violation:?}: {model} {acts:?}");
                }
            }
        }
    }
}

/// Compares the time at which an explanation says that the history fails with the oracle's.
fn compare_first(model: &Model, acts: &[Act]) {
    let history = history(acts);
    let verdict = check(&history, model, &Options::default()).expect("the model's operations");
    let crate::verdict::Verdict::Fails(example) = verdict else { return };
    let Some(prefix) = example.prefix else { return };
    let explained = |cut: u64| {
        let acts = until(acts, cut);
        Oracle::new(model, &acts).explains(&(0..acts.len()).collect::<Vec<_>>())
    };
    let time = history.ret(prefix.culprit as usize);
    assert!(time > prefix.until, "{prefix:?}: {model} {acts:?}");
    assert!(explained(time - 1), "it fails before {time}, {prefix:?}: {model} {acts:?}");
    assert!(!explained(time), "it has an order until {time}, {prefix:?}: {model} {acts:?}");
}

/// The prefix until `cut`.
fn until(acts: &[Act], cut: u64) -> Vec<Act> {
    let called = acts.iter().take_while(|act| act.call <= cut);
    called.map(|act| Act { ret: act.ret.filter(|&ret| ret <= cut), ..*act }).collect()
}

/// Whether the general search finds an order of the history.
struct Search<'a>(&'a History);

impl Task for Search<'_> {
    type Output = Option<bool>;

    fn run<S: Spec>(self, spec: &S) -> Option<bool> {
        check_spec(self.0, spec, &Options { explain: false, ..Options::default() }).holds()
    }
}

/// The value of `MILLSTREAM_STRESS`, or one.
fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

const CONTAINERS: [(Kind, Op, Op); 3] = [
    (Kind::Queue, Op::ENQUEUE, Op::DEQUEUE),
    (Kind::Stack, Op::PUSH, Op::POP),
    (Kind::PriorityQueue, Op::INSERT, Op::DELETE_MIN),
];
