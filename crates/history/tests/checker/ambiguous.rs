//! Histories with many possible orders are decided if no answer distinguishes the orders, because all orders lead to
//! the same state.

use millstream_history::{Builder, History, Kind, Model, Op, Operation, Options, Progress, Value, Verdict, check};

use crate::support::random::{Random, seed};

/// The memory limit is so low that a search through all orders would hit it.
fn decide(history: &History, model: &Model) -> Verdict {
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    let verdict = check(history, model, &options).expect("the model's operations");
    assert!(!matches!(verdict, Verdict::Unknown(Progress { .. })), "{verdict:?}");
    verdict
}

/// Rounds of overlapping appends, some with a write among them, and a read after each round. With `wrong`, the last
/// answer is wrong.
fn appends(model: Model, rounds: u32, width: u32, wrong: bool, random: &mut Random) -> History {
    let mut builder = Builder::new();
    let mut text = String::new();
    for round in 0..rounds {
        let at = 100 * u64::from(round);
        let mut order: Vec<u32> = (0..width).collect();
        (1..order.len()).for_each(|last| order.swap(last, random.below(last + 1)));
        for (place, &process) in order.iter().enumerate() {
            let piece = format!("{round}.{process};");
            let writes = round % 3 == 1 && place as u32 == width / 2;
            text = if writes { piece.clone() } else { text + &piece };
            let (op, input) = (if writes { Op::WRITE } else { Op::APPEND }, builder.values().text(&piece));
            let append = Operation::new(process, op, input);
            builder.push(Operation { call: at, ret: Some(at + 10), ..append }).expect("one round after the other");
        }
        let told = if wrong && round + 1 == rounds { text.replacen(';', ":", 1) } else { text.clone() };
        let output = builder.values().text(&told);
        let read = Operation::new(width, Op::READ, Value::NULL);
        builder
            .push(Operation { output, call: at + 20, ret: Some(at + 30), ..read })
            .expect("one round after the other");
    }
    assert_eq!(model.kind, Kind::KeyValue);
    builder.finish().expect("one round after the other")
}

#[test]
fn appends_that_overlap() {
    let mut random = Random::new(seed());
    for model in [Model::new(Kind::KeyValue), Model::new(Kind::KeyValue).with_initial(Value::EMPTY_TEXT)] {
        assert_eq!(decide(&appends(model, 6, 12, false, &mut random), &model).holds(), Some(true));
        assert_eq!(decide(&appends(model, 6, 12, true, &mut random), &model).holds(), Some(false));
    }
}

/// Two publishers whose publications overlap in pairs, `published` each, and a consumer that sees the first few events.
/// With `passed_over`, the consumer skips an event before the last one.
fn far_behind(published: u32, seen: u32, passed_over: bool) -> History {
    let mut builder = Builder::new();
    for number in 0..published {
        for process in 0..2 {
            let publish = Operation::new(process, Op::PUBLISH, Value::from(2 * number + process));
            let (output, at) = (Value::TRUE, 10 * u64::from(number));
            builder.push(Operation { output, call: at, ret: Some(at + 5), ..publish }).expect("in order");
        }
    }
    for number in 0..seen {
        let at = 10 * u64::from(published + number);
        let event = number + if passed_over && number + 1 == seen { 2 } else { 0 };
        let output = Value::from(event);
        let consume = Operation::new(2, Op::CONSUME, Value::NULL);
        builder.push(Operation { output, call: at, ret: Some(at + 5), ..consume }).expect("in order");
    }
    builder.finish().expect("in order")
}

#[test]
fn publications_far_ahead_of_the_consumers() {
    let ring = Model::new(Kind::Ring);
    for seen in [1, 2, 19, 20] {
        assert_eq!(decide(&far_behind(40, seen, false), &ring).holds(), Some(true), "{seen}");
        let Verdict::Fails(example) = decide(&far_behind(40, seen, true), &ring) else {
            panic!("the consumer that saw {seen} skipped an event");
        };
        assert!(example.prefix.is_some(), "{example:?}");
        assert!(example.operations.len() <= 10, "{example:?}");
    }
}
