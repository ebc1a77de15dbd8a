//! Histories to decide: recordings of a correct object, and the same recordings with a wrong answer.
//!
//! Each client performs one operation at a time, which is called, takes effect and returns at random moments; the
//! object answers in the order of the effects. So the history is linearizable by construction, and its concurrency is
//! the number of clients.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use millstream_history::{Builder, History, Kind, Model, Op, Operation, Value};

use crate::random::Random;

/// Number of objects of the allocator.
pub const OBJECTS: u64 = 256;

/// The model of the object, in the checker's terms.
#[must_use]
pub fn model(kind: Kind) -> Model {
    match kind {
        Kind::Allocator => Model::new(kind).with_capacity(OBJECTS),
        Kind::Register => Model::new(kind).with_initial(Value::int(0)),
        _ => Model::new(kind),
    }
}

/// A linearizable history of that many operations.
#[must_use]
pub fn valid(kind: Kind, clients: u32, operations: usize, seed: u64) -> History {
    build(&run(kind, clients, operations, seed))
}

/// The position of the wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first possible operation.
    Start,
    /// The first possible operation in the second half, or else the last possible one in the first half.
    Middle,
    /// The last possible operation.
    End,
}

impl Place {
    /// All positions.
    pub const ALL: [Place; 3] = [Place::Start, Place::Middle, Place::End];
}

/// The same history with one answer, or a pair of answers, wrong.
///
/// # Panics
/// Panics when no answer can be made wrong, as in a history of a few operations.
#[must_use]
pub fn planted(kind: Kind, clients: u32, operations: usize, place: Place, seed: u64) -> History {
    let mut run = run(kind, clients, operations, seed);
    let mut spoilt = |at| spoil(kind, &mut run, at);
    let spoilt = match place {
        Place::Start => (0..operations).any(&mut spoilt),
        Place::Middle => (operations / 2..operations).chain((0..operations / 2).rev()).any(&mut spoilt),
        Place::End => (0..operations).rev().any(&mut spoilt),
    };
    assert!(spoilt, "no answer can be made wrong in {operations} operations of a {}", kind.name());
    build(&run)
}

fn build(run: &[Operation]) -> History {
    let mut builder = Builder::new();
    for &operation in run {
        builder.push(operation).expect("each client performs one operation at a time");
    }
    builder.finish().expect("each client performs one operation at a time")
}

/// The operations in order of their effects.
fn run(kind: Kind, clients: u32, operations: usize, seed: u64) -> Vec<Operation> {
    let mut random = Random::new(seed);
    let mut object = Object::new(kind, operations);
    let mut coming: BinaryHeap<Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    for client in 0..clients {
        let call = random.below(50) as u64;
        coming.push(Reverse((call + 1 + random.below(50) as u64, client, call)));
    }
    let mut run = Vec::with_capacity(operations);
    while run.len() < operations {
        let Reverse((effect, client, call)) = coming.pop().expect("every client has a next operation");
        let (op, input, output) = object.step(client, &mut random);
        let ret = effect + 1 + random.below(50) as u64;
        run.push(Operation { input, output, call, ret: Some(ret), ..Operation::new(client, op, Value::NULL) });
        let call = ret + 1 + random.below(10) as u64;
        coming.push(Reverse((call + 1 + random.below(50) as u64, client, call)));
    }
    run
}

/// A correct object that serves one random operation after another.
struct Object {
    kind: Kind,
    /// The number of values used so far.
    fresh: i64,
    line: VecDeque<i64>,
    sorted: BTreeSet<i64>,
    elements: usize,
    holder: Option<u32>,
}

impl Object {
    fn new(kind: Kind, operations: usize) -> Self {
        let line = if kind == Kind::Allocator { (1..=OBJECTS as i64).collect() } else { VecDeque::new() };
        Object { kind, fresh: 0, line, sorted: BTreeSet::new(), elements: operations / 8 + 1, holder: None }
    }

    fn fresh(&mut self) -> i64 {
        self.fresh += 1;
        self.fresh
    }

    fn step(&mut self, client: u32, random: &mut Random) -> (Op, Value, Value) {
        let comes_in = random.below(2) == 0;
        let out = |value: Option<i64>| value.map_or(Value::NULL, Value::int);
        match self.kind {
            Kind::Queue | Kind::Stack if comes_in => {
                let value = self.fresh();
                self.line.push_back(value);
                let op = if self.kind == Kind::Queue { Op::ENQUEUE } else { Op::PUSH };
                (op, Value::int(value), Value::NULL)
            }
            Kind::Queue => (Op::DEQUEUE, Value::NULL, out(self.line.pop_front())),
            Kind::Stack => (Op::POP, Value::NULL, out(self.line.pop_back())),
            Kind::PriorityQueue if comes_in => {
                // Multiplication by an odd number is one-to-one, so no priority repeats.
                let value = self.fresh().wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) & ((1 << 40) - 1);
                self.sorted.insert(value);
                (Op::INSERT, Value::int(value), Value::NULL)
            }
            Kind::PriorityQueue => (Op::DELETE_MIN, Value::NULL, out(self.sorted.pop_first())),
            Kind::Set => {
                let element = random.below(self.elements) as i64;
                let (op, answer) = match random.below(3) {
                    0 => (Op::CONTAINS, self.sorted.contains(&element)),
                    1 => (Op::ADD, self.sorted.insert(element)),
                    _ => (Op::REMOVE, self.sorted.remove(&element)),
                };
                (op, Value::int(element), Value::from(answer))
            }
            Kind::Allocator if comes_in || self.sorted.is_empty() => {
                let object = self.line.pop_back();
                self.sorted.extend(object);
                (Op::ALLOC, Value::NULL, out(object))
            }
            Kind::Allocator => {
                let from = random.below(OBJECTS as usize) as i64;
                let object = *self.sorted.range(from..).next().or(self.sorted.first()).expect("not empty");
                self.sorted.remove(&object);
                self.line.push_back(object);
                (Op::FREE, Value::int(object), Value::NULL)
            }
            Kind::Mutex => match self.holder {
                None => {
                    self.holder = Some(client);
                    (Op::ACQUIRE, Value::NULL, Value::TRUE)
                }
                Some(holder) if holder == client => {
                    self.holder = None;
                    (Op::RELEASE, Value::NULL, Value::NULL)
                }
                Some(_) => (Op::ACQUIRE, Value::NULL, Value::FALSE),
            },
            Kind::Register if comes_in => (Op::WRITE, Value::int(self.fresh()), Value::NULL),
            Kind::Register => (Op::READ, Value::NULL, Value::int(self.fresh)),
            kind => unreachable!("{} histories are not generated", kind.name()),
        }
    }
}

/// Makes the operation at `at` wrong, and if necessary a later operation, too. Returns whether this was possible.
fn spoil(kind: Kind, run: &mut [Operation], at: usize) -> bool {
    let before = |a: &Operation, b: &Operation| a.ret.is_some_and(|ret| ret < b.call);
    let near = at.saturating_sub(20_000)..run.len().min(at + 200);
    let it = run[at];
    match kind {
        // Two values that were certainly present leave in the wrong order.
        Kind::Queue | Kind::Stack | Kind::PriorityQueue => {
            let insert = kind.operations()[0];
            if it.op == insert || it.output.is_null() {
                return false;
            }
            let came: HashMap<Value, Operation> =
                run[near.clone()].iter().filter(|op| op.op == insert).map(|&op| (op.input, op)).collect();
            let Some(first) = came.get(&it.output).filter(|first| before(first, &it)) else { return false };
            let later = (at + 1..near.end).find(|&j| {
                let second = came.get(&run[j].output).filter(|second| before(second, &it) && before(&it, &run[j]));
                second.is_some_and(|second| match kind {
                    Kind::Queue => before(first, second),
                    Kind::Stack => before(second, first),
                    _ => true,
                })
            });
            if let Some(later) = later {
                (run[at].output, run[later].output) = (run[later].output, run[at].output);
            }
            later.is_some()
        }
        Kind::Set => {
            let alone = |other: &Operation| other.input != it.input || before(other, &it) || before(&it, other);
            let others = run[at.saturating_sub(200)..near.end].iter().filter(|other| **other != it).all(alone);
            if it.op == Op::CONTAINS && others {
                run[at].output = Value::from(it.output == Value::FALSE);
            }
            it.op == Op::CONTAINS && others
        }
        // An object goes to a client while another client has it.
        Kind::Allocator => {
            if it.op != Op::ALLOC || it.output.is_null() {
                return false;
            }
            let of =
                |other: &Operation, object| other.output == object || other.op == Op::FREE && other.input == object;
            let kept = (at.saturating_sub(1000)..at).rev().find_map(|given| {
                let object = run[given].output;
                let is_given = run[given].op == Op::ALLOC && !object.is_null() && before(&run[given], &it);
                let until_now = || run[given + 1..at].iter().any(|other| of(other, object));
                let next = || run[at + 1..near.end].iter().find(|other| of(other, object));
                (is_given && !until_now() && next().is_none_or(|next| before(&it, next))).then_some(object)
            });
            run[at].output = kept.unwrap_or(it.output);
            kept.is_some()
        }
        // The lock goes to a client while another client certainly has it.
        Kind::Mutex => {
            let holder = run[..at].iter().rposition(|op| op.output == Value::TRUE);
            let release = (at + 1..near.end).find(|&j| run[j].op == Op::RELEASE);
            let refused = it.op == Op::ACQUIRE && it.output == Value::FALSE;
            let held = holder.zip(release).is_some_and(|(h, r)| before(&run[h], &it) && before(&it, &run[r]));
            if refused && held {
                run[at].output = Value::TRUE;
            }
            refused && held
        }
        // A read returns a value that was certainly overwritten.
        _ => {
            let writes = || run[near.start..at].iter().rev().filter(|op| op.op == Op::WRITE);
            let newer = writes().find(|newer| before(newer, &it));
            let older = newer.and_then(|newer| writes().find(|older| before(older, newer)));
            let (Op::READ, Some(older)) = (it.op, older) else { return false };
            run[at].output = older.input;
            true
        }
    }
}
