//! Removals that were pending when a history failed, or when it ended.

use std::time::Duration;

use millstream_history::{Builder, History, Kind, Op, Operation, Options, Value, Verdict, check};

use crate::planted::part;

/// An operation: its name, its input, its output, and the times of its call and return. Each has its own process.
type Row = (Op, Option<i64>, Option<i64>, u64, Option<u64>);

fn history(rows: &[Row]) -> History {
    let value = |value: Option<i64>| value.map_or(Value::NULL, Value::int);
    let mut builder = Builder::new();
    for (process, &(op, input, output, call, ret)) in rows.iter().enumerate() {
        let operation = Operation::new(process as u32, op, value(input));
        builder.push(Operation { output: value(output), call, ret, ..operation }).expect("a process each");
    }
    builder.finish().expect("a process each")
}

fn verdict(history: &History, kind: Kind) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(20)), ..Options::default() };
    check(history, &kind.into(), &options).expect("its operations")
}

/// Seven removals are pending when 2 is removed before 1. Later they return values that are enqueued after the failure,
/// so none of the seven belongs to the explanation.
#[test]
fn the_operations_shown_fail_by_the_time_of_the_failure() {
    let mut rows: Vec<Row> = vec![(Op::ENQUEUE, Some(1), None, 0, Some(1)), (Op::ENQUEUE, Some(2), None, 2, Some(3))];
    rows.extend((0..7).map(|i| (Op::DEQUEUE, None, Some(10 + i), 4 + i as u64, Some(110 + i as u64))));
    rows.extend([(Op::DEQUEUE, None, Some(2), 12, Some(13)), (Op::DEQUEUE, None, Some(1), 14, Some(15))]);
    rows.extend((0..7).map(|i| (Op::ENQUEUE, Some(10 + i), None, 40 + 2 * i as u64, Some(41 + 2 * i as u64))));
    rows.extend([(Op::ENQUEUE, Some(30), None, 60, Some(61)), (Op::ENQUEUE, Some(31), None, 62, Some(63))]);
    rows.push((Op::DEQUEUE, None, Some(99), 98, Some(100)));
    let history = history(&rows);
    let Verdict::Fails(example) = verdict(&history, Kind::Queue) else { panic!("2 overtook 1") };
    let culprit = example.prefix.expect("when it failed").culprit;
    let time = history.get(culprit as usize).ret.expect("a return");
    assert_eq!(time, 15, "earlier, a pending one may have removed 1");
    assert!(example.operations.contains(&culprit), "{example:?}");
    let shown = part(&history, &example.operations);
    let open_then: Vec<Row> = (0..shown.len())
        .map(|row| shown.get(row))
        .map(|row| {
            let number = |value: Value| value.as_int();
            let open = row.ret.is_none_or(|ret| ret > time);
            (row.op, number(row.input), number(row.output).filter(|_| !open), row.call, row.ret.filter(|_| !open))
        })
        .collect();
    let then = self::history(&open_then);
    assert!(matches!(verdict(&then, Kind::Queue), Verdict::Fails(_)), "{example:?} was fine by then");
}

/// The last pending pops are tried first. They do not help, because the stack was found empty before they were called.
#[test]
fn a_stack_whose_pending_pops_take_many_attempts_is_decided() {
    let mut rows: Vec<Row> =
        (0..4).map(|i| (Op::PUSH, Some(1 + i), None, 2 * i as u64, Some(2 * i as u64 + 1))).collect();
    rows.extend((8..12).map(|call| (Op::POP, None, None, call, None)));
    rows.push((Op::POP, None, None, 12, Some(13)));
    rows.extend((14..18).map(|call| (Op::POP, None, None, call, None)));
    let found = verdict(&history(&rows), Kind::Stack);
    assert!(matches!(found, Verdict::Holds(_)), "{found:?}");
}

/// In each phase, a small value must be gone before many larger values are removed.
#[test]
fn many_removals_that_wait_for_pending_ones_are_decided() {
    let (phases, removals) = (16, 64);
    let mut rows: Vec<Row> = Vec::new();
    let mut time = 0;
    let mut push = |op, input, output, returns: bool| {
        rows.push((op, input, output, time, returns.then_some(time + 1)));
        time += 2;
    };
    for phase in 0..phases {
        push(Op::INSERT, Some(phase), None, true);
        push(Op::DELETE_MIN, None, None, false);
        for i in 0..removals {
            let large = 1000 + phase * removals + i;
            push(Op::INSERT, Some(large), None, true);
            push(Op::DELETE_MIN, None, Some(large), true);
        }
    }
    let found = verdict(&history(&rows), Kind::PriorityQueue);
    assert!(matches!(found, Verdict::Holds(_)), "{found:?}");
}

/// The operation has no answer, so it need not be in the order.
#[test]
fn a_pending_observation_is_in_no_order() {
    let history = history(&[(Op::CONTAINS, Some(1), None, 0, None)]);
    let Verdict::Holds(witness) = verdict(&history, Kind::Set) else { panic!("there is nothing wrong") };
    assert_eq!(witness.order, [] as [u32; 0]);
}
