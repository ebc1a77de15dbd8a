//! The checker agrees with a checker that tries every order, on many small histories of every kind of object.

use millstream_history::consistency::{sequentially_consistent, sequentially_consistent_beside};
use millstream_history::{Builder, History, Kind, Model, Operation, Options, Status, Value, Verdict, check};

use crate::support::generate::{Plan, operations};
use crate::support::oracle::{Condition, all, confirm, holds};
use crate::support::random::{Random, seed, stress};

/// Models of every kind, with and without limits.
fn models() -> Vec<Model> {
    let bounded = [Kind::Queue, Kind::Stack, Kind::PriorityQueue, Kind::Allocator, Kind::Semaphore, Kind::Ring];
    let bounded = bounded.map(|kind| Model::new(kind).with_capacity(2));
    let started = [
        Model::new(Kind::CasRegister).with_initial(Value::int(1)),
        Model::new(Kind::KeyValue).with_initial(Value::EMPTY_TEXT),
        Model::new(Kind::MultiRegister).with_initial(Value::int(0)),
    ];
    Kind::ALL.iter().map(|&kind| Model::new(kind)).chain(bounded).chain(started).collect()
}

/// A small history in which one or two answers may be wrong.
fn history(plan: &Plan, random: &mut Random) -> History {
    let mut builder = Builder::new();
    let mut made = operations(plan, random, builder.values());
    for _ in 0..random.below(3) {
        spoil(&mut made, random);
    }
    for operation in made {
        builder.push(operation).expect("spoiling leaves the times consistent");
    }
    builder.finish().expect("spoiling leaves the times consistent")
}

fn spoil(operations: &mut [Operation], random: &mut Random) {
    if operations.is_empty() {
        return;
    }
    let (a, b) = (random.below(operations.len()), random.below(operations.len()));
    let (from, to) = (operations[b], &mut operations[a]);
    match random.below(4) {
        // The answer of another operation, or another small value.
        0 | 1 if from.op == to.op && from.status == Status::Ok && from.input.is_null() == to.input.is_null() => {
            to.output = from.output;
        }
        2 if to.output.as_int().is_some() => to.output = Value::int(random.below(3) as i64),
        2 if [Value::FALSE, Value::TRUE].contains(&to.output) => to.output = Value::from(to.output == Value::FALSE),
        // The operation returns at its call.
        3 => to.ret = to.ret.map(|_| to.call),
        _ => {}
    }
}

fn agree(models: &[Model], condition: Condition, rounds: usize, checker: impl Fn(&History, &Model) -> Verdict) {
    let mut random = Random::new(seed());
    for model in models {
        let mut failing = 0;
        for round in 0..rounds {
            let plan = Plan {
                distinct: random.one_in(2),
                crashes: if random.one_in(2) { 4 } else { 0 },
                keys: if random.one_in(4) { 2 } else { 0 },
                ..Plan::new(*model, 2 + random.below(3), 3 + random.below(4))
            };
            // The oracle has only one object, except in a store, where each key is an object.
            let plan = if model.kind == Kind::KeyValue { plan } else { Plan { keys: 0, ..plan } };
            let history = history(&plan, &mut random);
            let expected = holds(&history, &all(&history), model, condition);
            failing += usize::from(!expected);
            let verdict = checker(&history, model);
            let shown: Vec<String> =
                (0..history.len()).map(|row| format!("{:?} {}", history.get(row), history.show(row))).collect();
            assert_eq!(verdict.holds(), Some(expected), "{model}, round {round}:\n{}\n{verdict:?}", shown.join("\n"));
            if let Verdict::Holds(witness) = &verdict {
                confirm(&history, model, &witness.order, condition)
                    .unwrap_or_else(|problem| panic!("{model}: {problem}:\n{}\n{verdict:?}", shown.join("\n")));
            }
        }
        assert!(failing > rounds / 200 && failing < rounds, "{model}: {failing} of {rounds} fail, which tests nothing");
    }
}

#[test]
fn linearizability_agrees_with_trying_every_order() {
    agree(&models(), Condition::RealTime, 3000 * stress(), |history, model| {
        check(history, model, &Options::default()).expect("the generator knows the operations")
    });
}

#[test]
fn sequential_consistency_agrees_with_trying_every_order() {
    agree(&models(), Condition::Program, 1000 * stress(), |history, model| {
        sequentially_consistent(history, model, &Options::default()).expect("the generator knows the operations")
    });
    // This check starts from a witness of linearizability, which may have operations of one process in the wrong order
    // if they coincide in time.
    agree(&models(), Condition::Program, 1000 * stress(), |history, model| {
        let options = Options::default();
        let linearizable = check(history, model, &options).expect("the generator knows the operations");
        sequentially_consistent_beside(&linearizable, history, model, &options).expect("as before")
    });
}
