//! Simple objects with which the specifications are compared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use millstream_history::{Datum, Kind, Model, Op, Value, Values};

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Held {
    Value(Value),
    Text(String),
}

/// An object in a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    Register(Value),
    Store(BTreeMap<Value, Held>, Value),
    Registers(BTreeMap<Value, Value>, Value),
    Number(i64),
    Mutex(Option<u32>),
    RwLock { writer: Option<u32>, readers: Vec<u32> },
    Queue(VecDeque<Value>, usize),
    Stack(Vec<Value>, usize),
    Heap(Vec<Value>, usize),
    Set(BTreeSet<Value>),
    Allocator { taken: BTreeSet<Value>, capacity: Option<usize> },
    Semaphore(i64),
    EventCount(i64),
    Ring { events: Vec<Value>, seen: BTreeMap<Value, usize>, consumers: Vec<Value>, capacity: usize },
    Log(Vec<Value>),
}

impl Object {
    /// The model's object before the first operation. The consumers of a ring are `consumers`.
    pub(crate) fn new(model: &Model, consumers: &[Value]) -> Object {
        let capacity = model.capacity.map_or(usize::MAX, |capacity| capacity as usize);
        let start = model.initial.as_int().unwrap_or(0);
        match model.kind {
            Kind::Register | Kind::CasRegister => Object::Register(model.initial),
            Kind::KeyValue => Object::Store(BTreeMap::new(), model.initial),
            Kind::MultiRegister => Object::Registers(BTreeMap::new(), model.initial),
            Kind::Counter | Kind::FetchAdd => Object::Number(start),
            Kind::Mutex => Object::Mutex(None),
            Kind::RwLock => Object::RwLock { writer: None, readers: Vec::new() },
            Kind::Queue => Object::Queue(VecDeque::new(), capacity),
            Kind::Stack => Object::Stack(Vec::new(), capacity),
            Kind::PriorityQueue => Object::Heap(Vec::new(), capacity),
            Kind::Set => Object::Set(BTreeSet::new()),
            Kind::Allocator => {
                Object::Allocator { taken: BTreeSet::new(), capacity: model.capacity.map(|capacity| capacity as usize) }
            }
            Kind::Semaphore => Object::Semaphore(model.capacity.unwrap_or(1) as i64),
            Kind::EventCount => Object::EventCount(start),
            Kind::Ring => {
                Object::Ring { events: Vec::new(), seen: BTreeMap::new(), consumers: consumers.to_vec(), capacity }
            }
            Kind::Log => Object::Log(Vec::new()),
        }
    }

    /// Performs the operation and returns its answer; `None` if the operation must wait.
    pub(crate) fn act(
        &mut self,
        process: u32,
        op: Op,
        key: Option<Value>,
        input: Value,
        values: &mut Values,
    ) -> Option<Value> {
        let amount = input.as_int().unwrap_or(1);
        Some(match self {
            Object::Register(held) => match op {
                Op::READ => *held,
                Op::WRITE => {
                    *held = input;
                    Value::NULL
                }
                _ => {
                    let [old, new] = values.as_pair(input)?;
                    let done = *held == old;
                    if done {
                        *held = new;
                    }
                    done.into()
                }
            },
            Object::Store(store, initial) => {
                let initial = match values.get(*initial) {
                    Datum::Text(text) => Held::Text(text.to_owned()),
                    _ => Held::Value(*initial),
                };
                let held = store.entry(key.unwrap_or(Value::NULL)).or_insert(initial);
                let text = match values.get(input) {
                    Datum::Text(text) => Some(text.to_owned()),
                    _ => None,
                };
                match op {
                    Op::READ => match held {
                        Held::Value(value) => *value,
                        Held::Text(text) => values.text(text),
                    },
                    Op::WRITE => {
                        *held = text.map_or(Held::Value(input), Held::Text);
                        Value::NULL
                    }
                    Op::DELETE => {
                        *held = Held::Value(Value::NULL);
                        Value::NULL
                    }
                    Op::APPEND => {
                        match held {
                            Held::Value(Value::NULL) => *held = Held::Text(text?),
                            Held::Value(_) => return None,
                            Held::Text(held) => held.push_str(&text?),
                        }
                        Value::NULL
                    }
                    _ => {
                        let now = match held {
                            Held::Value(value) => *value,
                            Held::Text(text) => values.text(text),
                        };
                        let [old, new] = values.as_pair(input)?;
                        if now == old {
                            *held = match values.get(new) {
                                Datum::Text(text) => Held::Text(text.to_owned()),
                                _ => Held::Value(new),
                            };
                        }
                        (now == old).into()
                    }
                }
            }
            Object::Registers(registers, initial) => {
                let steps = values.as_list(input)?.to_vec();
                let mut done = Vec::new();
                for step in steps {
                    let &[kind, key, value] = values.as_list(step)? else { return None };
                    let value = if values.get(kind) == Datum::Text("write") {
                        registers.insert(key, value);
                        value
                    } else {
                        registers.get(&key).copied().unwrap_or(*initial)
                    };
                    done.push(values.list(&[kind, key, value]));
                }
                values.list(&done)
            }
            Object::Number(number) => {
                let before = *number;
                match op {
                    Op::ADD | Op::FETCH_ADD => *number += amount,
                    _ => {}
                }
                if op == Op::ADD { Value::NULL } else { Value::int(before) }
            }
            Object::Mutex(holder) => match (op, *holder) {
                (Op::ACQUIRE, None) => {
                    *holder = Some(process);
                    Value::TRUE
                }
                (Op::RELEASE, Some(p)) if p == process => {
                    *holder = None;
                    Value::NULL
                }
                _ => return None,
            },
            Object::RwLock { writer, readers } => match op {
                Op::ACQUIRE if writer.is_none() && readers.is_empty() => {
                    *writer = Some(process);
                    Value::TRUE
                }
                Op::ACQUIRE_READ if writer.is_none() => {
                    readers.push(process);
                    Value::TRUE
                }
                Op::RELEASE if *writer == Some(process) => {
                    *writer = None;
                    Value::NULL
                }
                Op::RELEASE_READ => {
                    readers.swap_remove(readers.iter().position(|&reader| reader == process)?);
                    Value::NULL
                }
                _ => return None,
            },
            Object::Queue(queue, capacity) => match op {
                Op::ENQUEUE if queue.len() == *capacity => Value::FALSE,
                Op::ENQUEUE => {
                    queue.push_back(input);
                    Value::TRUE
                }
                _ => queue.pop_front().unwrap_or(Value::NULL),
            },
            Object::Stack(stack, capacity) => match op {
                Op::PUSH if stack.len() == *capacity => Value::FALSE,
                Op::PUSH => {
                    stack.push(input);
                    Value::TRUE
                }
                _ => stack.pop().unwrap_or(Value::NULL),
            },
            Object::Heap(heap, capacity) => match op {
                Op::INSERT if heap.len() == *capacity => Value::FALSE,
                Op::INSERT => {
                    heap.push(input);
                    Value::TRUE
                }
                _ => match heap.iter().min().copied() {
                    Some(smallest) => {
                        heap.swap_remove(heap.iter().position(|&value| value == smallest)?);
                        smallest
                    }
                    None => Value::NULL,
                },
            },
            Object::Set(set) => match op {
                Op::ADD => set.insert(input).into(),
                Op::REMOVE => set.remove(&input).into(),
                _ => set.contains(&input).into(),
            },
            Object::Allocator { taken, capacity } => match op {
                Op::ALLOC if capacity.is_some_and(|capacity| taken.len() >= capacity) => Value::NULL,
                Op::ALLOC => {
                    let object = (0..).map(Value::int).find(|object| !taken.contains(object))?;
                    taken.insert(object);
                    object
                }
                _ if taken.remove(&input) => Value::NULL,
                _ => return None,
            },
            Object::Semaphore(permits) => match op {
                Op::ACQUIRE if *permits < amount => return None,
                Op::ACQUIRE => {
                    *permits -= amount;
                    Value::TRUE
                }
                _ => {
                    *permits += amount;
                    Value::NULL
                }
            },
            Object::EventCount(count) => match op {
                Op::READ => Value::int(*count),
                Op::ADVANCE => {
                    *count += amount;
                    Value::NULL
                }
                _ if *count == amount => return None,
                _ => Value::NULL,
            },
            Object::Ring { events, seen, consumers, capacity } => {
                let consumer = if input.is_null() { process.into() } else { input };
                let unseen = consumers.iter().map(|c| events.len() - seen.get(c).copied().unwrap_or(0)).max();
                match op {
                    Op::PUBLISH if unseen.unwrap_or(0) >= *capacity => Value::FALSE,
                    Op::PUBLISH => {
                        events.push(input);
                        Value::TRUE
                    }
                    _ => {
                        let next = seen.entry(consumer).or_default();
                        let event = events.get(*next).copied();
                        *next += usize::from(event.is_some());
                        event.unwrap_or(Value::NULL)
                    }
                }
            }
            Object::Log(log) => match (op, input.as_int()) {
                (Op::APPEND, _) => {
                    log.push(input);
                    Value::int(log.len() as i64 - 1)
                }
                (_, Some(index)) => log.get(index as usize).copied().unwrap_or(Value::NULL),
                (_, None) => values.list(log),
            },
        })
    }
}
