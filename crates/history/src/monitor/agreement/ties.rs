//! Coinciding events: if one operation returns at the time at which another is called, the procedures and the search
//! treat the two as overlapping.
//!
//! The tests run on all histories of a few operations, with every choice of neighbouring events that coincide.

use super::small::{Label, acts, all_choices, arrangements, known, owners};
use super::{Answer, CONTAINERS, Seen, stress};
use crate::model::{Kind, Model};
use crate::operation::Op;
use crate::value::Value;

type Times = [(u64, Option<u64>)];

/// Calls `look` with every arrangement of `n` operations whose neighbouring events may coincide.
fn arrangements_with_ties(n: usize, look: &mut impl FnMut(&Times)) {
    arrangements(n, &mut |spans| {
        let events = spans.iter().flat_map(|&(call, ret)| [Some(call), ret]).flatten().count();
        for still in 0..1_u64 << (events - 1) {
            let time = |event: u64| event - u64::from((still & ((1 << event) - 1)).count_ones());
            let tied: Vec<_> = spans.iter().map(|&(call, ret)| (time(call), ret.map(time))).collect();
            look(&tied);
        }
    });
}

/// The maximum number of operations in a history.
fn most() -> usize {
    if stress() > 1 { 4 } else { 3 }
}

fn compare_all(model: &Model, labels: impl Fn(usize) -> Vec<Vec<Label>>, makes_sense: fn(&[Label]) -> bool) {
    let mut seen = Seen::default();
    for n in 1..=most() {
        let chosen = all_choices(&labels(n), makes_sense);
        arrangements_with_ties(n, &mut |spans| {
            for labels in &chosen {
                seen.compare_both(model, &acts(labels, spans, |row| row as u32));
            }
        });
    }
    println!("{model}: {seen:?}");
    assert!(seen.held > 0 && seen.failed > 0, "{seen:?}");
}

#[test]
fn containers_agree_where_events_coincide() {
    for (kind, insert, remove) in CONTAINERS {
        let labels = |n: usize| {
            let label = |value: i64| {
                let removals = (1..=n as i64).map(|v| (remove, None, Answer::Int(v)));
                removals.chain([(insert, Some(value), Answer::Null), (remove, None, Answer::Null)]).collect()
            };
            (1..=n as i64).map(label).collect()
        };
        compare_all(&Model::new(kind), labels, known);
    }
}

#[test]
fn registers_agree_where_events_coincide() {
    let labels = |n: usize| {
        let label = |value: i64| {
            let reads = (0..=n as i64).map(|v| (Op::READ, None, Answer::Int(v)));
            reads.chain([(Op::WRITE, Some(value), Answer::Null)]).collect()
        };
        (1..=n as i64).map(label).collect()
    };
    compare_all(&Model::new(Kind::Register).with_initial(Value::int(0)), labels, known);
}

#[test]
fn sets_agree_where_events_coincide() {
    let label = |op| [true, false].map(|answer| (op, Some(1), Answer::Bool(answer)));
    let labels = |n| vec![[Op::ADD, Op::REMOVE, Op::CONTAINS].into_iter().flat_map(label).collect(); n];
    compare_all(&Model::new(Kind::Set), labels, |_| true);
}

#[test]
fn allocators_agree_where_events_coincide() {
    let labels = |n| {
        let allocs = [Answer::Null, Answer::Int(1), Answer::Int(2)].map(|answer| (Op::ALLOC, None, answer));
        let frees = [1, 2].map(|object| (Op::FREE, Some(object), Answer::Null));
        vec![allocs.into_iter().chain(frees).collect(); n]
    };
    compare_all(&Model::new(Kind::Allocator), labels, |_| true);
    compare_all(&Model::new(Kind::Allocator).with_capacity(2), labels, |_| true);
}

#[test]
fn locks_agree_where_events_coincide() {
    let mut seen = Seen::default();
    for n in 1..=most() + 1 {
        let acquires = [Answer::Null, Answer::Bool(false)].map(|answer| (Op::ACQUIRE, None, answer));
        let labels = vec![acquires.into_iter().chain([(Op::RELEASE, None, Answer::Null)]).collect(); n];
        let chosen = all_choices(&labels, |_| true);
        arrangements_with_ties(n, &mut |spans| {
            owners(spans, 2, &mut |owners| {
                for labels in &chosen {
                    seen.compare_both(&Model::new(Kind::Mutex), &acts(labels, spans, |row| owners[row]));
                }
            });
        });
    }
    println!("mutex: {seen:?}");
    assert!(seen.held > 0 && seen.failed > 0 && seen.open > 0, "{seen:?}");
}
