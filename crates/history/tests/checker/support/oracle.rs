//! The oracle: a checker that tries every order. It is slow, but simple enough to trust.
//!
//! The unit tests of the library also include this file and [`object`](super::object).

use std::collections::{BTreeSet, HashSet};

use millstream_history::{History, Model, Op, PENDING, Status, Value, Values};

use super::object::Object;

/// The condition that an order must meet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It respects time: linearizability.
    RealTime,
    /// It respects the order of each process: sequential consistency.
    Program,
}

/// Whether the operations of these rows alone have a legal order.
pub(crate) fn holds(history: &History, rows: &[usize], model: &Model, condition: Condition) -> bool {
    let rows: Vec<usize> = rows.iter().copied().filter(|&row| history.status(row) != Status::Fail).collect();
    assert!(rows.len() <= 64, "every order of {} operations", rows.len());
    let object = Object::new(model, &consumers(history));
    let mut search = Search { history, rows, values: history.values().clone(), condition, failed: HashSet::new() };
    search.explains(0, &object)
}

/// The rows of the whole history.
pub(crate) fn all(history: &History) -> Vec<usize> {
    (0..history.len()).collect()
}

fn consumers(history: &History) -> Vec<Value> {
    let consume = all(history).into_iter().filter(|&row| history.op(row) == Op::CONSUME);
    let name = |row| if history.input(row).is_null() { history.process(row).into() } else { history.input(row) };
    consume.map(name).collect::<BTreeSet<Value>>().into_iter().collect()
}

struct Search<'h> {
    history: &'h History,
    rows: Vec<usize>,
    values: Values,
    condition: Condition,
    /// Dead ends: a set of executed operations and the object's state after them, from which the other operations have
    /// no legal order.
    failed: HashSet<(u64, Object)>,
}

impl Search<'_> {
    /// Whether the operations outside the set `done` have a legal order that starts from the object.
    fn explains(&mut self, done: u64, object: &Object) -> bool {
        let left: Vec<usize> = (0..self.rows.len()).filter(|i| done >> i & 1 == 0).collect();
        if left.iter().all(|&i| self.history.ret(self.rows[i]) == PENDING) {
            return true;
        }
        if self.failed.contains(&(done, object.clone())) {
            return false;
        }
        let found = left.iter().any(|&i| {
            let is_first = left.iter().all(|&j| !precedes(self.history, self.condition, self.rows[j], self.rows[i]));
            is_first
                && after(object, self.history, self.rows[i], &mut self.values)
                    .iter()
                    .any(|next| self.explains(done | 1 << i, next))
        });
        if !found {
            self.failed.insert((done, object.clone()));
        }
        found
    }
}

/// Whether row `a` comes before row `b` in every order that respects the condition.
fn precedes(history: &History, condition: Condition, a: usize, b: usize) -> bool {
    match condition {
        Condition::RealTime => history.ret(a) < history.call(b),
        Condition::Program => a < b && history.ret(a) != PENDING && history.process(a) == history.process(b),
    }
}

/// The states to which the operation can lead.
fn after(object: &Object, history: &History, row: usize, values: &mut Values) -> Vec<Object> {
    let known = (history.ret(row) != PENDING).then(|| history.output(row));
    let op = history.op(row);
    if let (Object::Allocator { taken, capacity }, Op::ALLOC) = (object, op) {
        let full = capacity.is_some_and(|capacity| taken.len() >= capacity);
        let with = |value: Value| {
            let mut taken = taken.clone();
            (!full && taken.insert(value)).then_some(Object::Allocator { taken, capacity: *capacity })
        };
        return match known {
            Some(Value::NULL) if capacity.is_none() || full => vec![object.clone()],
            Some(Value::NULL) => Vec::new(),
            Some(value) => with(value).into_iter().collect(),
            // The objects of a history have small numbers; one further number represents all other objects.
            None => (0..8).map(Value::int).chain([Value::int(1 << 40)]).filter_map(with).collect(),
        };
    }
    let mut next = object.clone();
    let answer = next.act(history.process(row), op, history.key(row), history.input(row), values);
    let waits = known == Some(Value::FALSE) && matches!(op, Op::ACQUIRE | Op::ACQUIRE_READ | Op::WAIT);
    match answer {
        // A wait may time out at any time. The other operations return `false` if they find the lock taken.
        _ if waits => {
            if op == Op::WAIT || answer.is_none() {
                vec![object.clone()]
            } else {
                Vec::new()
            }
        }
        Some(answer) if known.is_none_or(|known| agrees(op, known, answer)) => vec![next],
        _ => Vec::new(),
    }
}

/// Whether the recorded answer `known` agrees with the object's answer `actual`.
fn agrees(op: Op, known: Value, actual: Value) -> bool {
    match op {
        _ if known == actual => true,
        Op::ENQUEUE | Op::PUSH | Op::INSERT | Op::PUBLISH => known != Value::FALSE && actual != Value::FALSE,
        Op::ACQUIRE | Op::ACQUIRE_READ => known.is_null(),
        Op::ADD if actual.is_null() => true,
        Op::ADD | Op::REMOVE => known.is_null(),
        Op::APPEND => known.is_null() || actual.is_null(),
        Op::TXN => known.is_null(),
        Op::WRITE | Op::DELETE | Op::FREE | Op::RELEASE | Op::RELEASE_READ | Op::ADVANCE | Op::WAIT => true,
        _ => false,
    }
}

/// Asserts that the order is a legal order of the history.
pub(crate) fn confirm(history: &History, model: &Model, order: &[u32], condition: Condition) -> Result<(), String> {
    let mut place = vec![None; history.len()];
    for (position, &row) in order.iter().enumerate() {
        if place[row as usize].replace(position).is_some() {
            return Err(format!("row {row} is in the order twice"));
        }
    }
    for (row, place) in place.iter().enumerate() {
        if place.is_none() && history.status(row) == Status::Ok {
            return Err(format!("row {row} is not in the order"));
        }
        if place.is_some() && history.status(row) == Status::Fail {
            return Err(format!("row {row} failed and is in the order"));
        }
    }
    for (position, &row) in order.iter().enumerate() {
        let row = row as usize;
        if let Some(&late) =
            order[position + 1..].iter().find(|&&late| precedes(history, condition, late as usize, row))
        {
            return Err(format!("row {row} is before row {late} in the order, and after it in the history"));
        }
    }
    let mut values = history.values().clone();
    let mut states = vec![Object::new(model, &consumers(history))];
    for &row in order {
        states = states.iter().flat_map(|state| after(state, history, row as usize, &mut values)).collect();
        if states.is_empty() {
            return Err(format!("row {row}, {}, cannot be where it is in the order", history.show(row as usize)));
        }
    }
    Ok(())
}
