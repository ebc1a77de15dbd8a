//! Compares every procedure with an exhaustive search, on all small histories and on many random ones.
//!
//! `MILLSTREAM_STRESS=n` makes the random runs n times as long and the exhaustive ones one operation longer.

mod bounds;
mod random;
mod small;
mod ties;

#[path = "../../tests/checker/support/object.rs"]
mod object;
#[path = "../../tests/checker/support/oracle.rs"]
#[expect(dead_code, reason = "only the public checker decides sequential consistency")]
mod oracle;

use super::{Decision, try_decide};
use crate::budget::{Budget, Options};
use crate::builder::Builder;
use crate::check::{check, run};
use crate::history::History;
use crate::model::{Kind, Model};
use crate::operation::{Op, Operation};
use crate::part::Part;
use crate::spec::{DynSpec, Subject, with_spec};
use crate::value::Value;
use oracle::{Condition, all, confirm};

/// An operation of a test history. Most tests give each operation a process of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Act {
    op: Op,
    input: Option<i64>,
    /// The answer if the operation returns.
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

/// Counts of the cases, so that a test can assert that it covered enough.
#[derive(Debug, Default)]
struct Seen {
    held: u64,
    failed: u64,
    open: u64,
    largest_core: usize,
}

impl Seen {
    /// Compares the procedure's answer for `acts`, which are in order of their calls, with the oracle's.
    fn compare(&mut self, model: &Model, acts: &[Act]) {
        let history = history(acts);
        self.compare_part(model, &history, &Part::whole(&history));
    }

    /// Like [`compare`](Self::compare), and compares the general search's answer as well.
    fn compare_both(&mut self, model: &Model, acts: &[Act]) {
        self.compare(model, acts);
        let history = history(acts);
        let whole = Part::whole(&history);
        let options = Options { explain: false, ..Options::default() };
        let search = |spec: &dyn DynSpec| run(&whole, Subject::Own(spec), |_| [None, None], &options).holds();
        let found = with_spec(model, &whole, search);
        assert_eq!(found, Some(explained(model, &history)), "the search: {model} {acts:?}");
    }

    /// Like [`compare`](Self::compare), for the prefix of the history until `cut`.
    fn compare_prefix(&mut self, model: &Model, acts: &[Act], cut: u64) {
        let history = history(acts);
        self.compare_part(model, &prefix(&history, cut), &Part::whole(&history).until(cut));
    }

    /// Compares the procedure's answer for `part` with the oracle's answer for `history`, which has the same
    /// operations.
    fn compare_part(&mut self, model: &Model, history: &History, part: &Part<'_>) {
        let expected = explained(model, history);
        let mut budget = Budget::new(&Options::default());
        let answer = try_decide(part, model, &mut budget).map(|answer| answer.expect("there is memory"));
        match answer {
            None => self.open += 1,
            Some(Decision::Holds(order)) => {
                self.held += 1;
                assert!(expected, "held without a legal order: {model} {}", listed(history));
                is_legal(model, history, &order);
            }
            Some(Decision::Fails(violation)) => {
                self.failed += 1;
                assert!(!expected, "failed with {violation:?}, but has a legal order: {model} {}", listed(history));
                let rows: Vec<usize> = violation.operations.iter().map(|&row| row as usize).collect();
                assert!(rows.is_sorted_by(|a, b| a < b), "{violation:?}");
                self.largest_core = self.largest_core.max(rows.len());
                let alone = oracle::holds(history, &rows, model, Condition::RealTime);
                assert!(!alone, "{violation:?} can be explained alone: {model} {}", listed(history));
                if let Some(cut) = violation.in_order_before.checked_sub(1) {
                    let before = explained(model, &prefix(history, cut));
                    assert!(before, "the prefix is not in order, {violation:?}: {model} {}", listed(history));
                }
            }
        }
    }
}

/// Compares the time of the failure in an explanation with that of the oracle.
fn compare_first(model: &Model, acts: &[Act]) {
    let history = history(acts);
    let verdict = check(&history, model, &Options::default()).expect("the model's operations");
    let crate::verdict::Verdict::Fails(example) = verdict else { return };
    let Some(prefix) = example.prefix else { return };
    let explained = |cut: u64| explained(model, &self::prefix(&history, cut));
    let time = history.ret(prefix.culprit as usize);
    assert!(time > prefix.until, "{prefix:?}: {model} {acts:?}");
    assert!(explained(time - 1), "it fails before {time}, {prefix:?}: {model} {acts:?}");
    assert!(!explained(time), "it has an order until {time}, {prefix:?}: {model} {acts:?}");
}

/// Whether the oracle finds a legal order.
fn explained(model: &Model, history: &History) -> bool {
    oracle::holds(history, &all(history), model, Condition::RealTime)
}

/// Asserts that the order of rows is legal.
fn is_legal(model: &Model, history: &History, order: &[u32]) {
    confirm(history, model, order, Condition::RealTime)
        .unwrap_or_else(|problem| panic!("{problem}: {order:?} {model} {}", listed(history)));
}

/// The operations of a history, for a message.
fn listed(history: &History) -> String {
    format!("{:?}", (0..history.len()).map(|row| history.get(row)).collect::<Vec<_>>())
}

/// The prefix until `cut`.
fn prefix(history: &History, cut: u64) -> History {
    let mut builder = Builder::new();
    for operation in (0..history.len()).map(|row| history.get(row)).take_while(|operation| operation.call <= cut) {
        let ret = operation.ret.filter(|&ret| ret <= cut);
        builder.push(Operation { ret, ..operation }).expect("a process a call");
    }
    builder.finish().expect("no contradiction")
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
