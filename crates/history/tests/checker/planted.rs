//! Planted violations of every kind are found wherever they are, and are explained with few operations.
//!
//! A violation is a handful of consecutive operations that no legal history contains. Their values do not occur
//! elsewhere, so other operations cannot make them legal. Each violation is planted at the start, in the middle and at
//! the end of a valid history.

use std::fmt::Write as _;
use std::time::Duration;

use millstream_history::format::{Format, read, write_json};
use millstream_history::{History, Kind, Model, Options, Verdict, check};

use crate::support::generate::{Plan, valid};
use crate::support::random::{Random, seed, stress};

/// Process (beyond those of the history), operation, input, output.
type Planted = (u32, &'static str, &'static str, &'static str);

pub(crate) struct Violation {
    pub(crate) model: &'static str,
    pub(crate) name: &'static str,
    operations: &'static [Planted],
    /// Whether the operations are a violation only at the start of a history.
    pub(crate) at_start: bool,
}

const fn anywhere(model: &'static str, name: &'static str, operations: &'static [Planted]) -> Violation {
    Violation { model, name, operations, at_start: false }
}

const fn first(model: &'static str, name: &'static str, operations: &'static [Planted]) -> Violation {
    Violation { model, name, operations, at_start: true }
}

/// Values, keys and elements from 900 on occur only in planted operations.
#[rustfmt::skip]
pub(crate) const VIOLATIONS: &[Violation] = &[
    anywhere("register", "a value that was never written", &[(0, "read", "null", "901")]),
    anywhere("register", "a read before the write", &[(0, "read", "null", "901"), (1, "write", "901", "null")]),
    anywhere("register", "back to an older value", &[(0, "write", "901", "null"), (0, "write", "902", "null"), (1, "read", "null", "902"), (1, "read", "null", "901")]),
    anywhere("register", "two readers see two orders", &[(0, "write", "901", "null"), (1, "read", "null", "901"), (0, "write", "902", "null"), (1, "read", "null", "902"), (2, "read", "null", "901")]),
    anywhere("register", "empty again", &[(0, "write", "901", "null"), (0, "read", "null", "null")]),

    anywhere("cas-register", "a value that was never written", &[(0, "read", "null", "901")]),
    anywhere("cas-register", "from a value that was never there", &[(0, "cas", "[901,902]", "true")]),
    anywhere("cas-register", "two from one value", &[(0, "write", "901", "null"), (1, "cas", "[901,902]", "true"), (2, "cas", "[901,903]", "true")]),
    anywhere("cas-register", "what was replaced is read", &[(0, "write", "901", "null"), (1, "cas", "[901,902]", "true"), (2, "read", "null", "901")]),
    first("cas-register", "it fails though the value is there", &[(0, "cas", "[null,902]", "false")]),

    anywhere("key-value", "a value that was never written", &[(0, "read", "null", "\"zz\"")]),
    anywhere("key-value", "an older value", &[(0, "write", "\"x1\"", "null"), (0, "write", "\"x2\"", "null"), (1, "read", "null", "\"x2\""), (1, "read", "null", "\"x1\"")]),
    first("key-value", "an append that is lost", &[(0, "append", "\"p\"", "null"), (0, "append", "\"q\"", "null"), (1, "read", "null", "\"p\"")]),
    first("key-value", "an append that is done twice", &[(0, "append", "\"p\"", "null"), (1, "read", "null", "\"pp\"")]),
    first("key-value", "deleted and still there", &[(0, "write", "\"p\"", "null"), (0, "delete", "null", "null"), (1, "read", "null", "\"p\"")]),

    anywhere("multi-register", "half of a transaction", &[(0, "txn", "[[\"write\",90,1],[\"write\",91,1]]", "null"), (1, "txn", "[[\"read\",90,null],[\"read\",91,null]]", "[[\"read\",90,1],[\"read\",91,null]]")]),
    anywhere("multi-register", "a value that was never written", &[(0, "txn", "[[\"read\",90,null]]", "[[\"read\",90,7]]")]),
    anywhere("multi-register", "an older value", &[(0, "txn", "[[\"write\",90,1]]", "null"), (0, "txn", "[[\"write\",90,2]]", "null"), (1, "txn", "[[\"read\",90,null]]", "[[\"read\",90,1]]")]),

    anywhere("counter", "more than was added", &[(0, "get", "null", "1000000")]),
    anywhere("counter", "an addition that is lost", &[(0, "add", "1000000", "null"), (1, "get", "null", "0")]),
    anywhere("counter", "an addition that is done twice", &[(0, "add", "1000000", "null"), (1, "get", "null", "2000000")]),
    anywhere("counter", "back again", &[(0, "add", "1000000", "null"), (1, "add", "1000000", "null"), (1, "get", "null", "1000000")]),

    anywhere("fetch-and-add", "a count that was never there", &[(0, "fetch_add", "1", "1000000")]),
    anywhere("fetch-and-add", "two see one count", &[(0, "fetch_add", "1000000", "0"), (1, "fetch_add", "1000000", "0")]),
    anywhere("fetch-and-add", "an addition that is lost", &[(0, "fetch_add", "1000000", "0"), (1, "read", "null", "0")]),

    anywhere("mutex", "two have it", &[(0, "acquire", "null", "true"), (1, "acquire", "null", "true")]),
    anywhere("mutex", "released by a process without it", &[(0, "release", "null", "null")]),
    anywhere("mutex", "released twice", &[(0, "acquire", "null", "true"), (0, "release", "null", "null"), (0, "release", "null", "null")]),
    anywhere("mutex", "given back by another", &[(0, "acquire", "null", "true"), (1, "release", "null", "null")]),
    first("mutex", "refused though it is free", &[(0, "acquire", "null", "false")]),

    anywhere("rw-lock", "two writers", &[(0, "acquire", "null", "true"), (1, "acquire", "null", "true")]),
    anywhere("rw-lock", "a reader beside a writer", &[(0, "acquire", "null", "true"), (1, "acquire_read", "null", "true")]),
    anywhere("rw-lock", "a writer beside a reader", &[(0, "acquire_read", "null", "true"), (1, "acquire", "null", "true")]),
    anywhere("rw-lock", "a reader leaves that was not there", &[(0, "release_read", "null", "null")]),
    anywhere("rw-lock", "a reader leaves as a writer", &[(0, "acquire_read", "null", "true"), (0, "release", "null", "null")]),
    first("rw-lock", "a reader is turned away by readers", &[(0, "acquire_read", "null", "true"), (1, "acquire_read", "null", "false")]),

    anywhere("queue", "a value that was never enqueued", &[(0, "dequeue", "null", "901")]),
    anywhere("queue", "a value twice", &[(0, "enqueue", "901", "null"), (1, "dequeue", "null", "901"), (1, "dequeue", "null", "901")]),
    anywhere("queue", "two values swapped", &[(0, "enqueue", "901", "null"), (0, "enqueue", "902", "null"), (1, "dequeue", "null", "902"), (1, "dequeue", "null", "901")]),
    anywhere("queue", "a value that is skipped", &[(0, "enqueue", "901", "null"), (0, "enqueue", "902", "null"), (1, "dequeue", "null", "902")]),
    anywhere("queue", "empty with a value in it", &[(0, "enqueue", "901", "null"), (1, "dequeue", "null", "null")]),
    anywhere("queue", "out before in", &[(1, "dequeue", "null", "901"), (0, "enqueue", "901", "null")]),
    anywhere("queue", "full without a bound", &[(0, "enqueue", "901", "false")]),
    anywhere("queue:2", "more than fit", &[(0, "enqueue", "901", "true"), (0, "enqueue", "902", "true"), (0, "enqueue", "903", "true")]),
    first("queue:2", "full though there is room", &[(0, "enqueue", "901", "true"), (0, "enqueue", "902", "false")]),

    anywhere("stack", "a value that was never pushed", &[(0, "pop", "null", "901")]),
    anywhere("stack", "a value twice", &[(0, "push", "901", "null"), (1, "pop", "null", "901"), (1, "pop", "null", "901")]),
    anywhere("stack", "first in, first out", &[(0, "push", "901", "null"), (0, "push", "902", "null"), (1, "pop", "null", "901"), (1, "pop", "null", "902")]),
    anywhere("stack", "from below the top", &[(0, "push", "901", "null"), (0, "push", "902", "null"), (1, "pop", "null", "901")]),
    anywhere("stack", "empty with a value in it", &[(0, "push", "901", "null"), (1, "pop", "null", "null")]),
    anywhere("stack", "out before in", &[(1, "pop", "null", "901"), (0, "push", "901", "null")]),
    anywhere("stack:2", "more than fit", &[(0, "push", "901", "true"), (0, "push", "902", "true"), (0, "push", "903", "true")]),

    anywhere("priority-queue", "a priority that was never inserted", &[(0, "delete_min", "null", "-9")]),
    anywhere("priority-queue", "a priority twice", &[(0, "insert", "-9", "null"), (1, "delete_min", "null", "-9"), (1, "delete_min", "null", "-9")]),
    anywhere("priority-queue", "not the smallest", &[(0, "insert", "-9", "null"), (0, "insert", "-5", "null"), (1, "delete_min", "null", "-5")]),
    anywhere("priority-queue", "largest first", &[(0, "insert", "-9", "null"), (0, "insert", "-5", "null"), (1, "delete_min", "null", "-5"), (1, "delete_min", "null", "-9")]),
    anywhere("priority-queue", "empty with a value in it", &[(0, "insert", "-9", "null"), (1, "delete_min", "null", "null")]),
    anywhere("priority-queue", "out before in", &[(1, "delete_min", "null", "-9"), (0, "insert", "-9", "null")]),

    anywhere("set", "added twice", &[(0, "add", "901", "true"), (1, "add", "901", "true")]),
    anywhere("set", "added and not there", &[(0, "add", "901", "true"), (1, "contains", "901", "false")]),
    anywhere("set", "removed without being added", &[(0, "remove", "901", "true")]),
    anywhere("set", "removed twice", &[(0, "add", "901", "true"), (1, "remove", "901", "true"), (2, "remove", "901", "true")]),
    anywhere("set", "removed and still there", &[(0, "add", "901", "true"), (1, "remove", "901", "true"), (2, "contains", "901", "true")]),
    anywhere("set", "there without being added", &[(0, "contains", "901", "true")]),
    anywhere("set", "not new without being added", &[(0, "add", "901", "false")]),

    anywhere("allocator", "an object given twice", &[(0, "alloc", "null", "901"), (1, "alloc", "null", "901")]),
    anywhere("allocator", "an object freed twice", &[(0, "alloc", "null", "901"), (0, "free", "901", "null"), (1, "free", "901", "null")]),
    anywhere("allocator", "an object freed that was not given", &[(0, "free", "901", "null")]),
    anywhere("allocator", "freed before it was given", &[(1, "free", "901", "null"), (0, "alloc", "null", "901")]),
    anywhere("allocator:2", "more than there are", &[(0, "alloc", "null", "901"), (0, "alloc", "null", "902"), (0, "alloc", "null", "903")]),
    first("allocator:2", "none left, though there is", &[(0, "alloc", "null", "901"), (1, "alloc", "null", "null")]),

    anywhere("semaphore:2", "more permits than there are", &[(0, "acquire", "1", "true"), (1, "acquire", "1", "true"), (2, "acquire", "1", "true")]),
    first("semaphore:2", "refused though there are enough", &[(0, "acquire", "2", "false")]),

    anywhere("event-count", "back again", &[(0, "advance", "1000000", "null"), (1, "read", "null", "0")]),
    anywhere("event-count", "a count that was never there", &[(1, "read", "null", "1000000")]),
    first("event-count", "woken without an advance", &[(0, "wait", "0", "null")]),

    anywhere("ring", "an event that was never published", &[(0, "consume", "900", "901")]),
    anywhere("ring", "an event twice", &[(0, "publish", "901", "true"), (1, "consume", "900", "901"), (1, "consume", "900", "901")]),
    anywhere("ring", "an event that is skipped", &[(0, "publish", "901", "true"), (0, "publish", "902", "true"), (1, "consume", "900", "902")]),
    anywhere("ring", "nothing, though there is an event", &[(0, "publish", "901", "true"), (1, "consume", "900", "null")]),
    anywhere("ring", "consumed before it was published", &[(1, "consume", "900", "901"), (0, "publish", "901", "true")]),
    anywhere("ring:2", "overrun", &[(0, "publish", "901", "true"), (0, "publish", "902", "true"), (0, "publish", "903", "true"), (1, "consume", "900", "901")]),

    anywhere("log", "two entries at one index", &[(0, "append", "901", "1"), (1, "append", "902", "1")]),
    anywhere("log", "an index beyond the end", &[(0, "append", "901", "1000000")]),
    anywhere("log", "an entry that was never appended", &[(0, "read", "0", "901")]),
    anywhere("log", "an entry that is lost", &[(0, "append", "901", "null"), (1, "read", "null", "[]")]),
];

/// The factor by which times are stretched, to leave time for planted operations between any two events.
const STRETCH: u64 = 100;

/// The history with the violation after the events up to `place` in 0..=2: start, middle, end.
pub(crate) fn plant(history: &History, violation: &Violation, place: u64) -> History {
    let last = (0..history.len()).filter_map(|row| history.returned_at(row)).max().unwrap_or(0);
    let mut text = String::new();
    let mut time = (last * place / 2) * STRETCH + 1;
    for row in 0..history.len() {
        let operation = history.get(row);
        let values = history.values();
        let key = operation.key.map_or("null".into(), |key| values.show(key).to_string());
        let ret = operation.ret.map_or("null".into(), |ret| ((ret + 1) * STRETCH).to_string());
        writeln!(
            text,
            r#"{{"process":{},"op":"{}","in":{},"out":{},"key":{key},"call":{},"return":{ret},"status":"{}"}}"#,
            operation.process,
            history.op_name(operation.op),
            values.show(operation.input),
            values.show(operation.output),
            (operation.call + 1) * STRETCH,
            operation.status.name(),
        )
        .expect("a text takes everything");
    }
    for (process, op, input, output) in violation.operations {
        let process = process + 1_000_000;
        let (call, ret) = (time, time + 1);
        writeln!(
            text,
            r#"{{"process":{process},"op":"{op}","in":{input},"out":{output},"call":{call},"return":{ret}}}"#
        )
        .expect("a text takes everything");
        time += 2;
    }
    read(text.as_bytes(), Format::Json, None).expect("the times are consistent")
}

/// The rows as a separate history.
pub(crate) fn part(history: &History, rows: &[u32]) -> History {
    let mut lines = Vec::new();
    write_json(history, &mut lines).expect("memory takes everything");
    let text = String::from_utf8(lines).expect("JSON is text");
    let kept: Vec<&str> =
        text.lines().enumerate().filter(|(row, _)| rows.contains(&(*row as u32))).map(|(_, line)| line).collect();
    read(kept.join("\n").as_bytes(), Format::Json, None).expect("a part is consistent")
}

/// No time limit for the explanation, so that its result does not depend on the speed of the machine.
fn patient() -> Options {
    Options { explain_time: Some(Duration::from_secs(60)), ..Options::default() }
}

#[test]
fn every_planted_violation_is_found_and_shown_in_few_operations() {
    let mut random = Random::new(seed());
    for violation in VIOLATIONS {
        let model: Model = violation.model.parse().expect("the table knows the models");
        let places = if violation.at_start { 0..=0 } else { 0..=2 };
        for (place, _) in places.flat_map(|place| (0..10 * stress()).map(move |round| (place, round))) {
            let plan = Plan {
                distinct: random.one_in(2) && model.kind != Kind::PriorityQueue,
                ..Plan::new(model, 2 + random.below(3), 10 + random.below(60))
            };
            let history = plant(&valid(&plan, &mut random), violation, place);
            let verdict = check(&history, &model, &patient()).expect("the table knows the operations");
            let shown = || {
                (0..history.len())
                    .map(|row| format!("{row}: {:?} {}", history.get(row), history.show(row)))
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let Verdict::Fails(example) = verdict else {
                panic!("{model}: {} at {place}/2 is not found: {verdict:?}\n{}", violation.name, shown());
            };
            assert!(
                example.operations.len() <= 10,
                "{model}: {} at {place}/2: {example:?}\n{}",
                violation.name,
                shown()
            );
            // A ring's consumers are those in its history, so a part without some consumer describes another ring.
            if example.start.is_none() && model.kind != Kind::Ring {
                let alone = part(&history, &example.operations);
                let verdict = check(&alone, &model, &Options::default()).expect("the table knows the operations");
                assert_eq!(
                    verdict.holds(),
                    Some(false),
                    "{model}: {}: {example:?} alone is fine\n{}",
                    violation.name,
                    shown()
                );
            }
        }
    }
}

#[test]
fn the_table_has_violations_of_every_kind() {
    for kind in Kind::ALL {
        let count =
            VIOLATIONS.iter().filter(|violation| violation.model.split(':').next() == Some(kind.name())).count();
        assert!(count >= 2, "{kind} has {count}");
    }
    assert!(VIOLATIONS.len() >= 50);
}
