//! Histories at a procedure's limits and beyond.

use super::{Act, Answer, Decision, Seen, history, try_decide};
use crate::budget::{Budget, Options};
use crate::model::{Kind, Model};
use crate::operation::Op;
use crate::part::Part;

/// The two allocations of the object overlap, and the one called later returns first. If that one took effect first,
/// the object would be free during the whole refused allocation. So the one called first must take effect first.
#[test]
fn the_allocation_called_first_comes_first_before_exhaustion() {
    let act = |process, op, input, output, call, ret| Act { op, input, output, call, ret: Some(ret), process };
    let one = Answer::Int(1);
    let acts = [
        act(0, Op::ALLOC, None, one, 0, 100),
        act(1, Op::ALLOC, None, Answer::Null, 5, 15),
        act(2, Op::ALLOC, None, one, 20, 90),
        act(3, Op::FREE, Some(1), Answer::Null, 30, 110),
        act(4, Op::FREE, Some(1), Answer::Null, 40, 120),
    ];
    let mut seen = Seen::default();
    seen.compare(&Model::new(Kind::Allocator).with_capacity(1), &acts);
    assert_eq!((seen.held, seen.open), (1, 0), "decided without the search");
}

/// A history in which, `times` times, a value is popped from below another value. That is legal only if one of the
/// pending pops took the upper value.
fn covered(times: u64, pending: u64) -> Vec<Act> {
    let act =
        |process: u64, op, input, output, call, ret| Act { op, input, output, call, ret, process: process as u32 };
    let pops = (0..pending).map(|i| act(i, Op::POP, None, Answer::Null, i, None));
    let phases = (0..times).flat_map(|phase| {
        let (at, value) = (100 + 10 * phase, 2 * phase as i64);
        [
            act(pending, Op::PUSH, Some(value), Answer::Null, at, Some(at + 1)),
            act(pending, Op::PUSH, Some(value + 1), Answer::Null, at + 2, Some(at + 3)),
            act(pending, Op::POP, None, Answer::Int(value), at + 4, Some(at + 5)),
        ]
    });
    pops.chain(phases).collect()
}

/// The last history has one pending pop too few to be legal. To prove this failure, the procedure would need to try all
/// choices, so it leaves the history open.
#[test]
fn a_stack_with_too_many_choices_is_left_open() {
    let decide = |acts: &[Act]| {
        let history = history(acts);
        let mut budget = Budget::new(&Options::default());
        let answer = try_decide(&Part::whole(&history), &Kind::Stack.into(), &mut budget);
        answer.map(|answer| answer.expect("there is memory"))
    };
    assert!(matches!(decide(&covered(8, 8)), Some(Decision::Holds(_))), "one pending pop for each");
    assert!(matches!(decide(&covered(3, 2)), Some(Decision::Fails(_))), "all of few choices are tried");
    assert!(decide(&covered(8, 7)).is_none(), "too many are not");
}
