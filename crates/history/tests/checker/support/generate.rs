//! Random histories of correct objects.

use millstream_history::{Builder, History, Kind, Model, Op, Operation, Status, Value, Values};

use super::object::Object;
use super::random::Random;

/// The kind of history to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) model: Model,
    pub(crate) processes: usize,
    pub(crate) operations: usize,
    /// Whether all values are distinct.
    pub(crate) distinct: bool,
    /// One in this many operations never returns; with 0, all return.
    pub(crate) crashes: usize,
    /// The number of keys; with 0, operations have no key.
    pub(crate) keys: usize,
}

impl Plan {
    pub(crate) fn new(model: Model, processes: usize, operations: usize) -> Self {
        Plan { model, processes, operations, distinct: false, crashes: 0, keys: 0 }
    }
}

enum Phase {
    Idle,
    Called(Operation),
    Done(Operation),
}

struct Process {
    number: u32,
    phase: Phase,
    /// The objects that the process has allocated, or the permits that it has acquired.
    mine: Vec<Value>,
    writes: bool,
    reads: usize,
}

/// A valid history: each operation takes effect at one moment between its call and its return.
pub(crate) fn valid(plan: &Plan, random: &mut Random) -> History {
    let mut builder = Builder::new();
    for operation in operations(plan, random, builder.values()) {
        builder.push(operation).expect("the generator contradicts nothing");
    }
    builder.finish().expect("the generator contradicts nothing")
}

/// The operations of such a history, in order of their returns.
pub(crate) fn operations(plan: &Plan, random: &mut Random, values: &mut Values) -> Vec<Operation> {
    let consumers: Vec<Value> = (0..plan.processes as u32).filter(|p| !p.is_multiple_of(2)).map(Value::from).collect();
    let mut objects: Vec<Object> = (0..plan.keys.max(1)).map(|_| Object::new(&plan.model, &consumers)).collect();
    let idle = |number| Process { number, phase: Phase::Idle, mine: Vec::new(), writes: false, reads: 0 };
    let mut processes: Vec<Process> = (0..plan.processes as u32).map(idle).collect();
    let (mut time, mut called, mut fresh, mut made) = (0, 0, plan.processes as u32, announced(plan, &consumers));
    for _ in 0..plan.operations * 12 {
        // Occasionally, two events share a time.
        time += u64::from(!random.one_in(10));
        let process = &mut processes[random.below(plan.processes)];
        process.phase = match std::mem::replace(&mut process.phase, Phase::Idle) {
            Phase::Idle if called == plan.operations => Phase::Idle,
            Phase::Idle => {
                // Two consecutive operations of one process never share a time.
                time += 1;
                called += 1;
                let key = (plan.keys > 0).then(|| Value::int(random.below(plan.keys) as i64));
                let operation = next(plan, process, called as i64, random, values);
                Phase::Called(Operation { call: time, key, process: process.number, ..operation })
            }
            Phase::Called(operation) => {
                let object = &mut objects[operation.key.and_then(Value::as_int).unwrap_or(0) as usize];
                let answer = object.act(operation.process, operation.op, operation.key, operation.input, values);
                let waits = matches!(operation.op, Op::ACQUIRE | Op::ACQUIRE_READ | Op::WAIT);
                match answer {
                    Some(output) => Phase::Done(Operation { output, ..operation }),
                    None if waits && random.one_in(3) => Phase::Done(Operation { output: Value::FALSE, ..operation }),
                    None => Phase::Called(operation),
                }
            }
            Phase::Done(operation) => {
                settle(process, &operation);
                made.push(Operation { ret: Some(time), ..operation });
                Phase::Idle
            }
        };
        let open = !matches!(process.phase, Phase::Idle);
        if open && plan.crashes > 0 && random.one_in(3 * plan.crashes) && plan.model.kind != Kind::Ring {
            let crashed = std::mem::replace(process, idle(fresh));
            fresh += 1;
            // The outcome is unknown, whether or not the operation has a return time.
            made.extend(open_operation(&crashed, random.one_in(2).then_some(time)));
        }
    }
    made.extend(processes.iter().filter_map(|process| open_operation(process, None)));
    made
}

/// Every consumer of a ring reads it before the first publication, so that all consumers occur in the history.
fn announced(plan: &Plan, consumers: &[Value]) -> Vec<Operation> {
    if plan.model.kind != Kind::Ring {
        return Vec::new();
    }
    let keys = (0..plan.keys.max(1)).map(|key| (plan.keys > 0).then_some(Value::int(key as i64)));
    let look = |(key, &consumer): (Option<Value>, &Value)| {
        let process = consumer.as_int().unwrap_or_default() as u32;
        Operation { key, ret: Some(0), ..Operation::new(process, Op::CONSUME, Value::NULL) }
    };
    keys.flat_map(|key| consumers.iter().map(move |consumer| (key, consumer))).map(look).collect()
}

fn open_operation(process: &Process, noticed: Option<u64>) -> Option<Operation> {
    match &process.phase {
        Phase::Idle => None,
        Phase::Called(operation) | Phase::Done(operation) => {
            Some(Operation { ret: noticed, status: Status::Info, output: Value::NULL, ..*operation })
        }
    }
}

/// Updates what the process has acquired, after its operation.
fn settle(process: &mut Process, operation: &Operation) {
    let got = operation.output != Value::FALSE;
    match operation.op {
        Op::ALLOC if !operation.output.is_null() => process.mine.push(operation.output),
        Op::ACQUIRE if got => {
            process.writes = true;
            process.mine.push(operation.input);
        }
        Op::RELEASE => process.writes = false,
        Op::ACQUIRE_READ if got => process.reads += 1,
        Op::RELEASE_READ => process.reads -= 1,
        _ => {}
    }
}

/// The process's next operation.
fn next(plan: &Plan, process: &mut Process, number: i64, random: &mut Random, values: &mut Values) -> Operation {
    let small = Value::int(random.below(3) as i64);
    let value = if plan.distinct { Value::int(number) } else { small };
    let heads = random.one_in(2);
    let (op, input) = match plan.model.kind {
        Kind::Register => {
            if heads {
                (Op::READ, Value::NULL)
            } else {
                (Op::WRITE, value)
            }
        }
        Kind::CasRegister => match random.below(3) {
            0 => (Op::READ, Value::NULL),
            1 => (Op::WRITE, value),
            _ => (Op::CAS, values.list(&[small, value])),
        },
        Kind::KeyValue => match random.below(6) {
            0 | 1 => (Op::READ, Value::NULL),
            2 => (Op::WRITE, values.text(["", "a", "b"][random.below(3)])),
            3 => (Op::APPEND, values.text(["a", "b"][random.below(2)])),
            4 => (Op::DELETE, Value::NULL),
            _ => {
                let [old, new] = ["a", "ab"].map(|text| values.text(text));
                (Op::CAS, values.list(&[old, new]))
            }
        },
        Kind::MultiRegister => {
            let steps: Vec<Value> = (0..1 + random.below(3))
                .map(|_| {
                    let (kind, value) = if random.one_in(2) { ("read", Value::NULL) } else { ("write", value) };
                    let kind = values.text(kind);
                    values.list(&[kind, Value::int(random.below(2) as i64), value])
                })
                .collect();
            (Op::TXN, values.list(&steps))
        }
        Kind::Counter => {
            if heads {
                (Op::ADD, Value::int(random.below(5) as i64 - 2))
            } else {
                (Op::GET, Value::NULL)
            }
        }
        Kind::FetchAdd => {
            if random.one_in(4) {
                (Op::READ, Value::NULL)
            } else {
                (Op::FETCH_ADD, small)
            }
        }
        Kind::Mutex => (if process.writes { Op::RELEASE } else { Op::ACQUIRE }, Value::NULL),
        Kind::RwLock => {
            let op = match (process.writes, process.reads) {
                (true, _) => Op::RELEASE,
                (_, 1..) if heads => Op::RELEASE_READ,
                (_, 0) if heads => Op::ACQUIRE,
                _ => Op::ACQUIRE_READ,
            };
            (op, Value::NULL)
        }
        Kind::Queue => {
            if heads {
                (Op::ENQUEUE, value)
            } else {
                (Op::DEQUEUE, Value::NULL)
            }
        }
        Kind::Stack => {
            if heads {
                (Op::PUSH, value)
            } else {
                (Op::POP, Value::NULL)
            }
        }
        Kind::PriorityQueue => {
            // Distinct values are not in the order of the calls.
            let value = if plan.distinct { Value::int((number * 7919) % 1_000_003) } else { small };
            if heads { (Op::INSERT, value) } else { (Op::DELETE_MIN, Value::NULL) }
        }
        Kind::Set => ([Op::ADD, Op::REMOVE, Op::CONTAINS][random.below(3)], small),
        Kind::Allocator => match process.mine.pop() {
            Some(object) if heads => (Op::FREE, object),
            kept => {
                process.mine.extend(kept);
                (Op::ALLOC, Value::NULL)
            }
        },
        Kind::Semaphore => match process.mine.pop() {
            Some(permits) => (Op::RELEASE, permits),
            None => (Op::ACQUIRE, Value::int(1 + random.below(plan.model.capacity.unwrap_or(1) as usize) as i64)),
        },
        Kind::EventCount => match random.below(3) {
            0 => (Op::READ, Value::NULL),
            1 => (Op::ADVANCE, if heads { Value::NULL } else { Value::int(2) }),
            _ => (Op::WAIT, Value::int(random.below(5) as i64)),
        },
        Kind::Ring => {
            if process.number.is_multiple_of(2) {
                (Op::PUBLISH, value)
            } else {
                (Op::CONSUME, Value::NULL)
            }
        }
        Kind::Log => match random.below(4) {
            0 | 1 => (Op::APPEND, value),
            2 => (Op::READ, small),
            _ => (Op::READ, Value::NULL),
        },
    };
    Operation::new(process.number, op, input)
}
