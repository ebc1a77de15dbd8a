//! A hard object does not prevent the decision of another, and an explanation stays within its own limits.

use std::time::Duration;

use millstream_history::{
    Builder, Call, Counterexample, History, Kind, Op, Operation, Options, Spec, Value, Verdict, check, check_spec,
};

use crate::support::thread_time::thread_time;

/// Key 0 is too hard for any search: enqueues of few distinct values that all overlap, followed by dequeues that find
/// the queue empty too early. Key 1 dequeues, at time 100, a value that was never enqueued.
fn hard_beside_easy() -> History {
    let mut builder = Builder::new();
    let mut push = |key, process, op, [input, output]: [Value; 2], call, ret| {
        let operation = Operation { output, call, ret: Some(ret), ..Operation::new(process, op, input) };
        builder.push(Operation { key: Some(Value::int(key)), ..operation }).expect("a process each");
    };
    let width = 40;
    for process in 0..width {
        push(0, process, Op::ENQUEUE, [Value::from(process / 2), Value::NULL], 0, 10);
    }
    for process in 1..width {
        push(0, process, Op::DEQUEUE, [Value::NULL, Value::from(process / 2)], 20, 30);
    }
    push(0, width, Op::DEQUEUE, [Value::NULL, Value::NULL], 20, 30);
    push(1, width + 1, Op::DEQUEUE, [Value::NULL, Value::int(1)], 90, 100);
    builder.finish().expect("a process each")
}

fn failure(verdict: Verdict) -> Counterexample {
    match verdict {
        Verdict::Fails(example) => example,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hard_key_does_not_hide_the_failure_of_another() {
    let history = hard_beside_easy();
    let easy = (history.len() - 1..history.len()).map(|row| row as u32).collect::<Vec<_>>();
    let explain_time = Some(Duration::from_millis(50));
    // Key 0 alone would exhaust each of these limits.
    let options = Options { explain_time, memory_bytes: 1 << 40, ..Options::default() };
    let began = thread_time();
    for explain in [false, true] {
        let verdict = check(&history, &Kind::Queue.into(), &Options { explain, ..options.clone() });
        let example = failure(verdict.expect("its operations"));
        assert_eq!((&example.operations, example.prefix), (&easy, None), "key 0 may fail earlier");
    }
    let took = thread_time() - began;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn an_explanation_without_time_or_memory_changes_no_verdict() {
    let history = hard_beside_easy();
    let none = Options { explain_time: Some(Duration::ZERO), ..Options::default() };
    let little = Options { explain_memory_bytes: 1, ..Options::default() };
    for options in [none, little] {
        let example = failure(check(&history, &Kind::Queue.into(), &options).expect("its operations"));
        assert!(example.operations.contains(&(history.len() as u32 - 1)), "{example:?}");
        assert_eq!(example.prefix, None);
    }
}

/// A register as a custom specification: every operation other than `write` is a read.
struct Cell;

impl Spec for Cell {
    type State = Value;

    fn initial(&self) -> Value {
        Value::NULL
    }

    fn step(&self, &held: &Value, call: &Call<'_>) -> Option<Value> {
        if call.op == Op::WRITE { Some(call.input) } else { call.answers(held).then_some(held) }
    }
}

#[test]
fn the_first_of_many_failures_is_reported_whatever_the_order_of_the_keys() {
    let mut builder = Builder::new();
    let keys = 30;
    for key in 0..keys {
        // A later key fails earlier, except for key 7, which fails last.
        let at = if key == 7 { 100_000 } else { 10_000 - 100 * key };
        let read = Operation::new(key as u32, Op::READ, Value::NULL);
        let key = Some(Value::int(key));
        builder
            .push(Operation { key, output: Value::int(9), call: at as u64, ret: Some(at as u64 + 1), ..read })
            .unwrap();
    }
    let history = builder.finish().unwrap();
    let example = failure(check_spec(&history, &Cell, &Options::default()));
    let first = example.prefix.expect("all was decided").culprit;
    assert_eq!(history.key(first as usize), Some(Value::int(keys - 1)));
    assert_eq!(example.operations, [first]);
}
