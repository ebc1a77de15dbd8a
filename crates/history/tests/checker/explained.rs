//! What is told of a failure: when it was, what was in order before, and nothing that is not to blame.

use millstream_history::{
    Builder, Counterexample, History, Kind, Model, Op, Operation, Options, Value, Verdict, check,
};

/// One operation after the other, each by a process of its own and ten times as late as its row: key, name, input, output.
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
fn what_was_in_order_ends_with_the_event_before_the_culprits_return() {
    let (null, one) = (Value::NULL, Value::int(1));
    let history = in_turn(&[(None, Op::WRITE, one, null), (None, Op::READ, null, null), (None, Op::READ, null, one)]);
    let prefix = failure(&history, &Kind::Register.into()).prefix.expect("it was found");
    assert_eq!((prefix.culprit, prefix.until, prefix.operations), (1, 10, 1), "1 was written before nothing was read");
}

#[test]
fn of_the_failures_of_several_objects_the_first_is_told() {
    let (null, one) = (Value::NULL, Value::int(1));
    for keys in [[0, 1], [1, 0]] {
        // Each object is read once before anybody wrote; they differ in when.
        let rows = [0, 1, 1, 0].map(|key| keys[key]);
        let [a, b, c, d] = rows.map(Some);
        let history = in_turn(&[
            (a, Op::WRITE, Value::int(2), null),
            (b, Op::WRITE, Value::int(2), null),
            (c, Op::READ, null, one),
            (d, Op::READ, null, one),
        ]);
        let prefix = failure(&history, &Kind::Register.into()).prefix.expect("it was found");
        assert_eq!(prefix.culprit, 2, "keys {keys:?}");
    }
}

/// Without the events that filled it, "full" would be wrong, too; it was not.
#[test]
fn an_answer_about_everything_is_not_blamed_for_what_was_left_out() {
    let (yes, no, consumer) = (Value::TRUE, Value::FALSE, Value::int(7));
    let history = in_turn(&[
        (None, Op::PUBLISH, Value::int(1), yes),
        (None, Op::PUBLISH, Value::int(2), yes),
        (None, Op::PUBLISH, Value::int(3), no),
        (None, Op::CONSUME, consumer, Value::int(9)),
    ]);
    let example = failure(&history, &Model::new(Kind::Ring).with_capacity(2));
    assert!(example.operations.contains(&3), "nobody published 9: {example:?}");
}
