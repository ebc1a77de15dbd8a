//! The explanation of a failure: its time, the legal order before it, and no unrelated operation.

use millstream_history::{
    Builder, Counterexample, History, Kind, Model, Op, Operation, Options, Value, Verdict, check,
};

/// Operations one after the other: key, name, input, output. Each has its own process, and is called at ten times its
/// row.
fn in_turn(rows: &[(Option<i64>, Op, Value, Value)]) -> History {
    let mut builder = Builder::new();
    for (row, &(key, op, input, output)) in rows.iter().enumerate() {
        let call = 10 * row as u64;
        let operation = Operation {
            key: key.map(Value::int),
            output,
            call,
            ret: Some(call + 5),
            ..Operation::new(row as u32, op, input)
        };
        builder.push(operation).expect("one after the other");
    }
    builder.finish().expect("one after the other")
}

fn failure(history: &History, model: &Model) -> Counterexample {
    match check(history, model, &Options::default()).expect("the model's operations") {
        Verdict::Fails(example) => example,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn the_prefix_ends_with_the_event_before_the_culprits_return() {
    let (null, one) = (Value::NULL, Value::int(1));
    let history = in_turn(&[(None, Op::WRITE, one, null), (None, Op::READ, null, null), (None, Op::READ, null, one)]);
    let prefix = failure(&history, &Kind::Register.into()).prefix.expect("it was found");
    assert_eq!((prefix.culprit, prefix.until, prefix.operations), (1, 10, 1), "1 was written before nothing was read");
}

#[test]
fn the_first_failure_of_several_objects_is_reported() {
    let (null, one) = (Value::NULL, Value::int(1));
    // In one round the object that occurs first fails first, and in the other round the second object does.
    for [c, d] in [[0, 1], [1, 0]].map(|keys| keys.map(Some)) {
        let history = in_turn(&[
            (Some(0), Op::WRITE, Value::int(2), null),
            (Some(1), Op::WRITE, Value::int(2), null),
            (c, Op::READ, null, one),
            (d, Op::READ, null, one),
        ]);
        let prefix = failure(&history, &Kind::Register.into()).prefix.expect("it was found");
        assert_eq!(prefix.culprit, 2, "keys {c:?} and {d:?}");
    }
}

/// 1 and 2 are in the container, and 2 comes out at 9. Only at 20 does the other removal answer that it did not take 1.
#[test]
fn a_failure_excused_by_a_pending_removal_comes_with_its_answer() {
    for (kind, insert, remove) in
        [(Kind::Queue, Op::ENQUEUE, Op::DEQUEUE), (Kind::PriorityQueue, Op::INSERT, Op::DELETE_MIN)]
    {
        for others in [false, true] {
            let mut builder = Builder::new();
            let key = |key: i64| others.then_some(Value::int(key));
            let mut push = |key, process, op, [input, output]: [Option<i64>; 2], call, ret| {
                let [input, output] = [input, output].map(|value| value.map_or(Value::NULL, Value::int));
                let operation = Operation::new(process, op, input);
                builder.push(Operation { key, output, call, ret: Some(ret), ..operation }).expect("in order");
            };
            for (value, call) in [(1, 0), (2, 2), (3, 4)] {
                push(key(0), 0, insert, [Some(value), None], call, call + 1);
            }
            push(key(0), 1, remove, [None, Some(3)], 6, 20);
            push(key(0), 2, remove, [None, Some(2)], 7, 9);
            // With `others`, another object fails earlier.
            if others {
                push(key(1), 3, remove, [None, Some(99)], 14, 15);
            }
            let history = builder.finish().expect("in order");
            let prefix = failure(&history, &kind.into()).prefix.expect("it was found");
            let expected = if others { (5, 14) } else { (3, 9) };
            assert_eq!((prefix.culprit, prefix.until), expected, "{kind:?}, others: {others}");
        }
    }
}

/// The enqueue of 1 takes long, and 1 is dequeued long before the enqueue returns. A check of a few operations must
/// include both or neither.
#[test]
fn a_value_taken_before_its_insertion_returned_is_gone() {
    let mut builder = Builder::new();
    let mut push = |process, op, input: Option<i64>, output, call, ret| {
        let input = input.map_or(Value::NULL, Value::int);
        builder
            .push(Operation { output, call, ret: Some(ret), ..Operation::new(process, op, input) })
            .expect("in order");
    };
    let null = Value::NULL;
    push(0, Op::ENQUEUE, Some(1), null, 0, 20_000);
    push(1, Op::ENQUEUE, Some(7), Value::FALSE, 1, 31_000);
    push(2, Op::DEQUEUE, None, Value::int(1), 5, 10);
    for at in 0..500 {
        push(2, Op::DEQUEUE, None, null, 20 + 10 * at, 25 + 10 * at);
    }
    push(2, Op::ENQUEUE, Some(2), null, 21_000, 21_001);
    push(2, Op::DEQUEUE, None, Value::int(2), 21_002, 21_003);
    let history = builder.finish().expect("in order");
    let example = failure(&history, &Kind::Queue.into());
    assert_eq!(example.prefix.expect("it was found").culprit, 1, "the queue has no bound");
}

/// The bound was exceeded before 99 came out. That 99 comes out is also wrong without a bound.
#[test]
fn the_first_failure_of_a_bounded_container_is_reported_with_or_without_its_bound() {
    let null = Value::NULL;
    let history = in_turn(&[
        (None, Op::ENQUEUE, Value::int(1), null),
        (None, Op::ENQUEUE, Value::int(2), null),
        (None, Op::DEQUEUE, null, Value::int(99)),
    ]);
    let example = failure(&history, &Model::new(Kind::Queue).with_capacity(1));
    assert_eq!(example.prefix.map(|prefix| prefix.culprit), Some(1), "{example:?}");
    let history = in_turn(&[
        (None, Op::ENQUEUE, Value::int(1), null),
        (None, Op::DEQUEUE, null, Value::int(1)),
        (None, Op::DEQUEUE, null, Value::int(3)),
    ]);
    let example = failure(&history, &Model::new(Kind::Queue).with_capacity(1));
    assert_eq!(example.prefix.map(|prefix| prefix.culprit), Some(2), "{example:?}");
}

/// When 1 is allocated again, the first allocation is pending and may have taken 1. Later it answers that it took 2.
#[test]
fn a_pending_allocation_may_have_taken_a_freed_object() {
    let mut builder = Builder::new();
    let null = Value::NULL;
    for (process, op, input, output, call, ret) in [
        (0, Op::ALLOC, null, Value::int(2), 0, 20),
        (1, Op::FREE, Value::int(1), null, 1, 21),
        (2, Op::ALLOC, null, null, 2, 3),
        (2, Op::ALLOC, null, Value::int(1), 5, 6),
    ] {
        builder
            .push(Operation { output, call, ret: Some(ret), ..Operation::new(process, op, input) })
            .expect("in order");
    }
    let history = builder.finish().expect("in order");
    let example = failure(&history, &Model::new(Kind::Allocator).with_capacity(1));
    assert_eq!(example.prefix.map(|prefix| prefix.culprit), Some(0), "{example:?}");
}

/// The answer "full" is right, but without the events that filled the ring it would seem wrong.
#[test]
fn an_answer_about_the_whole_object_is_not_blamed_for_omitted_operations() {
    let (yes, no, consumer) = (Value::TRUE, Value::FALSE, Value::int(7));
    let history = in_turn(&[
        (None, Op::PUBLISH, Value::int(1), yes),
        (None, Op::PUBLISH, Value::int(2), yes),
        (None, Op::PUBLISH, Value::int(3), no),
        (None, Op::CONSUME, consumer, Value::int(9)),
    ]);
    let example = failure(&history, &Model::new(Kind::Ring).with_capacity(2));
    assert!(example.operations.contains(&3), "9 was never published: {example:?}");
}

#[test]
fn the_reason_is_about_one_of_the_operations() {
    let (null, int) = (Value::NULL, |int| Value::int(int));
    for (kind, rows, subject) in [
        (Kind::Queue, &[(Op::ENQUEUE, int(1), null), (Op::ENQUEUE, int(2), null), (Op::DEQUEUE, null, int(2))][..], 2),
        (Kind::Queue, &[(Op::ENQUEUE, int(1), null), (Op::DEQUEUE, null, null)], 1),
        (
            Kind::PriorityQueue,
            &[(Op::INSERT, int(1), null), (Op::INSERT, int(2), null), (Op::DELETE_MIN, null, int(2))],
            2,
        ),
        (Kind::Register, &[(Op::WRITE, int(1), null), (Op::READ, null, int(3))], 1),
        (Kind::Allocator, &[(Op::ALLOC, null, int(1)), (Op::ALLOC, null, int(1))], 1),
        // A value occurs twice, so the general search decides this history.
        (Kind::CasRegister, &[(Op::WRITE, int(1), null), (Op::WRITE, int(1), null), (Op::READ, null, int(3))], 2),
    ] {
        let rows: Vec<_> = rows.iter().map(|&(op, input, output)| (None, op, input, output)).collect();
        let history = in_turn(&rows);
        let example = failure(&history, &kind.into());
        assert_eq!(example.subject, Some(subject), "{kind}: {example:?}");
        assert!(example.operations.contains(&subject), "{kind}: {example:?}");
    }
}
