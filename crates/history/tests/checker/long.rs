//! Long histories of distinct values: one violation among many operations is found, many violations are explained
//! quickly, and the procedures respect the limits.
//!
//! `MILLSTREAM_STRESS=100` makes histories of a million operations.

use std::time::Duration;

use millstream_history::{Builder, History, Kind, Limit, Model, Op, Operation, Options, Value, Verdict, check};

use crate::planted::{VIOLATIONS, plant};
use crate::support::generate::{Plan, valid};
use crate::support::random::{Random, seed, stress};
use crate::support::thread_time::thread_time;

/// The kinds that procedures decide without the search.
const KINDS: [Kind; 7] =
    [Kind::Register, Kind::Queue, Kind::Stack, Kind::PriorityQueue, Kind::Set, Kind::Allocator, Kind::Mutex];

/// A history of 4 processes whose values differ from the planted ones.
fn long(model: Model, operations: usize, random: &mut Random) -> History {
    let plan = Plan { distinct: true, ..Plan::new(model, 4, operations) };
    let history = valid(&plan, random);
    let moved = |value: Value| value.as_int().map_or(value, |int| Value::int(int + 1_000_000));
    let mut builder = Builder::new();
    for row in 0..history.len() {
        let operation = history.get(row);
        let (input, output) = (moved(operation.input), moved(operation.output));
        builder.push(Operation { input, output, ..operation }).expect("its times are as they were");
    }
    builder.finish().expect("its times are as they were")
}

#[test]
fn one_violation_among_many_operations_is_found() {
    let mut random = Random::new(seed());
    let decided = |model: &Model| model.capacity.is_none() && KINDS.contains(&model.kind);
    let mut planted = 0;
    for violation in VIOLATIONS.iter().filter(|violation| !violation.at_start) {
        let model: Model = violation.model.parse().expect("the table knows the models");
        if !decided(&model) {
            continue;
        }
        planted += 1;
        let history = long(model, 10_000 * stress().min(100), &mut random);
        let place = random.below(3) as u64;
        let verdict = check(&plant(&history, violation, place), &model, &Options::default());
        let verdict = verdict.expect("the table knows the operations");
        let Verdict::Fails(example) = verdict else {
            panic!("{model}: {} at {place}/2 is not found: {verdict:?}", violation.name);
        };
        assert!(example.operations.len() <= 10, "{model}: {} at {place}/2: {example:?}", violation.name);
    }
    assert!(planted > 30, "{planted}");
}

#[test]
fn many_violations_are_explained_by_the_first() {
    let count = 20_000;
    let mut builder = Builder::new();
    let mut time = 0;
    let mut push = |op, input, output| {
        time += 10;
        let operation = Operation { output, call: time, ret: Some(time + 5), ..Operation::new(0, op, input) };
        builder.push(operation).expect("one after the other");
    };
    for priority in 0..count {
        push(Op::INSERT, Value::from(priority), Value::NULL);
    }
    // The largest value comes out first, so every removal but the last is wrong.
    for priority in (0..count).rev() {
        push(Op::DELETE_MIN, Value::NULL, Value::from(priority));
    }
    let history = builder.finish().expect("one after the other");
    let begun = thread_time();
    let verdict = check(&history, &Kind::PriorityQueue.into(), &Options::default()).expect("its operations");
    let Verdict::Fails(example) = verdict else { panic!("{verdict:?}") };
    let took = thread_time() - begun;
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(example.operations.len() <= 10, "{example:?}");
    assert_eq!(example.prefix.map(|prefix| prefix.culprit), Some(count), "the first removal");
}

#[test]
fn the_procedures_stop_when_time_is_up_and_begin_only_with_enough_memory() {
    let mut random = Random::new(seed());
    for kind in KINDS {
        let history = long(kind.into(), 2000, &mut random);
        let limited = |options: Options| check(&history, &kind.into(), &options).expect("its operations");
        assert_eq!(limited(Options::default()).holds(), Some(true), "{kind}");
        let no_time = limited(Options { time: Some(Duration::ZERO), ..Options::default() });
        assert!(matches!(&no_time, Verdict::Unknown(progress) if progress.limit == Limit::Time), "{kind}: {no_time:?}");
        let little = limited(Options { memory_bytes: 50_000, ..Options::default() });
        assert!(matches!(&little, Verdict::Unknown(progress) if progress.limit == Limit::Memory), "{kind}: {little:?}");
    }
}
