//! All histories of a few operations.

use super::{Act, Answer, CONTAINERS, Seen, stress};
use crate::model::{Kind, Model};
use crate::operation::Op;
use crate::value::Value;

/// Calls `look` with every arrangement of `n` operations. The calls are in order; the returns are in every order, and
/// some are missing.
pub(super) fn arrangements(n: usize, look: &mut impl FnMut(&[(u64, Option<u64>)])) {
    fn go(n: usize, time: u64, spans: &mut Vec<(u64, Option<u64>)>, look: &mut impl FnMut(&[(u64, Option<u64>)])) {
        if spans.len() == n {
            look(spans);
        } else {
            spans.push((time, None));
            go(n, time + 1, spans, look);
            spans.pop();
        }
        for open in 0..spans.len() {
            if spans[open].1.is_some() {
                continue;
            }
            // If no call is between two returns, the order of the two does not matter: only the ascending order is
            // generated.
            let last = spans.iter().enumerate().find(|(_, span)| span.1 == time.checked_sub(1) && time > 0);
            if last.is_some_and(|(other, _)| other > open) {
                continue;
            }
            spans[open].1 = Some(time);
            go(n, time + 1, spans, look);
            spans[open].1 = None;
        }
    }
    go(n, 0, &mut Vec::new(), look);
}

/// Every combination of labels that has one of `labels[i]` for each operation `i` and satisfies `makes_sense`.
pub(super) fn all_choices(labels: &[Vec<Label>], makes_sense: fn(&[Label]) -> bool) -> Vec<Vec<Label>> {
    let mut chosen = Vec::new();
    choices(labels, &mut |labels| {
        if makes_sense(labels) {
            chosen.push(labels.to_vec());
        }
    });
    chosen
}

pub(super) fn acts(labels: &[Label], spans: &[(u64, Option<u64>)], process: impl Fn(usize) -> u32) -> Vec<Act> {
    let act = |(row, (&(op, input, output), &(call, ret)))| Act { op, input, output, call, ret, process: process(row) };
    labels.iter().zip(spans).enumerate().map(act).collect()
}

/// Calls `look` with every combination of labels that has one of `labels[i]` for each operation `i`.
fn choices(labels: &[Vec<Label>], look: &mut impl FnMut(&[Label])) {
    fn go(labels: &[Vec<Label>], chosen: &mut Vec<Label>, look: &mut impl FnMut(&[Label])) {
        match labels.get(chosen.len()) {
            None => look(chosen),
            Some(choice) => {
                for &label in choice {
                    chosen.push(label);
                    go(labels, chosen, look);
                    chosen.pop();
                }
            }
        }
    }
    go(labels, &mut Vec::new(), look);
}

pub(super) type Label = (Op, Option<i64>, Answer);

/// Compares the procedure and the oracle on all histories of `n` operations whose labels satisfy `makes_sense`.
fn compare_all(model: &Model, n: usize, labels: &[Vec<Label>], makes_sense: fn(&[Label]) -> bool) -> Seen {
    let mut seen = Seen::default();
    let chosen = all_choices(labels, makes_sense);
    arrangements(n, &mut |spans| {
        for labels in &chosen {
            let acts = acts(labels, spans, |row| row as u32);
            // A pending operation has no answer, so one of its labels suffices.
            if acts.iter().any(|act| act.ret.is_none() && is_answer_of_second_kind(act)) {
                continue;
            }
            seen.compare(model, &acts);
        }
    });
    seen
}

#[test]
fn sets_agree_on_all_small_histories() {
    for n in 1..=if stress() > 1 { 5 } else { 4 } {
        let answers = [true, false].map(Answer::Bool);
        let label = |op| answers.map(|answer| (op, Some(1), answer));
        let labels = vec![[Op::ADD, Op::REMOVE, Op::CONTAINS].into_iter().flat_map(label).collect(); n];
        let seen = compare_all(&Model::new(Kind::Set), n, &labels, |_| true);
        println!("set {n}: {seen:?}");
        assert_eq!(seen.open, 0);
        assert!(seen.held > 0 && seen.failed > 0, "{seen:?}");
    }
}

#[test]
fn allocators_agree_on_all_small_histories() {
    for capacity in [None, Some(1), Some(2), Some(3)] {
        for n in 1..=if stress() > 1 { 5 } else { 4 } {
            let allocs = [Answer::Null, Answer::Int(1), Answer::Int(2)].map(|answer| (Op::ALLOC, None, answer));
            let frees = [1, 2].map(|object| (Op::FREE, Some(object), Answer::Null));
            let labels = vec![allocs.into_iter().chain(frees).collect(); n];
            let model = Model { capacity, ..Model::new(Kind::Allocator) };
            let seen = compare_all(&model, n, &labels, |_| true);
            println!("{model} {n}: {seen:?}");
            // The procedure may leave a history open only if the number of objects is limited.
            assert!(seen.open == 0 || capacity.is_some(), "{seen:?}");
            assert!(seen.held > 0 && seen.failed > 0, "{seen:?}");
        }
    }
}

#[test]
fn locks_agree_on_all_small_histories() {
    for n in 1..=if stress() > 1 { 6 } else { 5 } {
        let acquires = [Answer::Null, Answer::Bool(false)].map(|answer| (Op::ACQUIRE, None, answer));
        let labels = vec![acquires.into_iter().chain([(Op::RELEASE, None, Answer::Null)]).collect(); n];
        let chosen = all_choices(&labels, |_| true);
        let mut seen = Seen::default();
        arrangements(n, &mut |spans| {
            owners(spans, 3, &mut |owners| {
                for labels in &chosen {
                    let acts = acts(labels, spans, |row| owners[row]);
                    if !acts.iter().any(|act| act.ret.is_none() && is_answer_of_second_kind(act)) {
                        seen.compare(&Model::new(Kind::Mutex), &acts);
                    }
                }
            });
        });
        println!("mutex {n}: {seen:?}");
        assert_eq!(seen.open, 0);
        assert!(seen.held > 0 && seen.failed > 0, "{seen:?}");
    }
}

/// Calls `look` with every assignment of the operations to at most `most` processes, none of which has two operations
/// at once.
pub(super) fn owners(spans: &[(u64, Option<u64>)], most: u32, look: &mut impl FnMut(&[u32])) {
    fn go(spans: &[(u64, Option<u64>)], most: u32, owners: &mut Vec<u32>, look: &mut impl FnMut(&[u32])) {
        let row = owners.len();
        if row == spans.len() {
            return look(owners);
        }
        let used = owners.iter().max().map_or(0, |&last| last + 1);
        for process in 0..(used + 1).min(most) {
            let is_free =
                |other: usize| owners[other] != process || spans[other].1.is_some_and(|ret| ret <= spans[row].0);
            if (0..row).all(is_free) {
                owners.push(process);
                go(spans, most, owners, look);
                owners.pop();
            }
        }
    }
    go(spans, most, &mut Vec::new(), look);
}

fn is_answer_of_second_kind(act: &Act) -> bool {
    matches!(act.output, Answer::Int(_) | Answer::Bool(false))
}

/// Whether every value in an answer is the input of an operation.
pub(super) fn known(labels: &[Label]) -> bool {
    let brought = |value| labels.iter().any(|&(_, input, _)| input == Some(value));
    labels.iter().all(|&(_, _, output)| !matches!(output, Answer::Int(value) if value != 0 && !brought(value)))
}

#[test]
fn containers_agree_on_all_small_histories() {
    for (kind, insert, remove) in CONTAINERS {
        for n in 1..=if stress() > 1 { 5 } else { 4 } {
            // For a priority queue, the priorities are assigned to the insertions in every order.
            for permutation in permutations(n, kind == Kind::PriorityQueue) {
                let label = |&value: &i64| {
                    let removals = (1..=n as i64).map(|v| (remove, None, Answer::Int(v)));
                    let others = [(insert, Some(value), Answer::Null), (remove, None, Answer::Null)];
                    removals.chain(others).collect()
                };
                let labels: Vec<Vec<Label>> = permutation.iter().map(label).collect();
                let seen = compare_all(&Model::new(kind), n, &labels, known);
                println!("{kind} {n}: {seen:?}");
                assert_eq!(seen.open, 0);
                assert!(seen.held > 0 && (n == 1 || seen.failed > 0), "{seen:?}");
            }
        }
    }
}

fn permutations(n: usize, all: bool) -> Vec<Vec<i64>> {
    if !all || n == 1 {
        return vec![(1..=n as i64).collect()];
    }
    let shorter = permutations(n - 1, true);
    let insert = |(shorter, at): (&Vec<i64>, usize)| {
        let mut longer = shorter.clone();
        longer.insert(at, n as i64);
        longer
    };
    shorter.iter().flat_map(|shorter| (0..n).map(move |at| (shorter, at))).map(insert).collect()
}

#[test]
fn registers_agree_on_all_small_histories() {
    for n in 1..=if stress() > 1 { 5 } else { 4 } {
        let label = |value: i64| {
            let reads = (0..=n as i64).map(|v| (Op::READ, None, Answer::Int(v)));
            // A null answer marks a read that did not return; 0 is the initial value.
            reads.chain([(Op::WRITE, Some(value), Answer::Null), (Op::READ, None, Answer::Null)]).collect()
        };
        let labels: Vec<Vec<Label>> = (1..=n as i64).map(label).collect();
        let seen = compare_all(&Model::new(Kind::Register).with_initial(Value::int(0)), n, &labels, known);
        println!("register {n}: {seen:?}");
        assert_eq!(seen.open, 0);
        assert!(seen.held > 0 && (n == 1 || seen.failed > 0), "{seen:?}");
    }
}

#[test]
fn there_are_as_many_arrangements_as_there_should_be() {
    let mut all = Vec::new();
    arrangements(2, &mut |spans| all.push(spans.to_vec()));
    all.sort_unstable();
    all.dedup();
    // If the two operations overlap, then both return, only one of them does, or neither does: four cases. If the first
    // returns before the second is called, the second returns or not: two cases.
    assert_eq!(all.len(), 6, "{all:?}");
}

/// Of two pending allocations, the first must take the object that was freed first. Otherwise an object is free when a
/// third allocation finds none.
#[test]
fn the_first_unknown_allocation_takes_the_object_that_was_freed_first() {
    let act = |process, op, input, output, call, ret| Act { op, input, output, call, ret, process };
    let (alloc, free) = (|process, output, call, ret| act(process, Op::ALLOC, None, output, call, ret), Op::FREE);
    let acts = [
        alloc(0, Answer::Int(1), 0, Some(1)),
        alloc(1, Answer::Int(2), 2, Some(3)),
        act(1, free, Some(2), Answer::Null, 10, Some(20)),
        alloc(2, Answer::Null, 30, None),
        alloc(3, Answer::Null, 40, Some(80)),
        alloc(4, Answer::Null, 90, None),
        act(0, free, Some(1), Answer::Null, 95, Some(100)),
    ];
    let mut seen = Seen::default();
    seen.compare(&Model::new(Kind::Allocator).with_capacity(2), &acts);
    assert_eq!((seen.held, seen.open), (1, 0), "decided without the search");
}
