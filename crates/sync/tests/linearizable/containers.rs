//! The stack and the queue, and twins with a classic mistake each.

use crate::recorded::{a_while, disturb, record};
use crate::verdict::{assert_caught, assert_holds};
use millstream_history::{History, Kind, Op};
use millstream_recorder::Recorder;
use millstream_sync::reclaim::{Epochs, Hazards, Queue, Scheme, Stack};
use millstream_verify_random::{Random, stress};
use std::array;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A container for numbers.
trait Container: Sync {
    const KIND: Kind;
    const PUT: Op;
    const GET: Op;
    fn put(&self, number: u64);
    fn get(&self) -> Option<u64>;
}

impl<S: Scheme> Container for Stack<u64, S> {
    const KIND: Kind = Kind::Stack;
    const PUT: Op = Op::PUSH;
    const GET: Op = Op::POP;

    fn put(&self, number: u64) {
        self.push(number);
    }

    fn get(&self) -> Option<u64> {
        self.pop()
    }
}

impl<S: Scheme> Container for Queue<u64, S> {
    const KIND: Kind = Kind::Queue;
    const PUT: Op = Op::ENQUEUE;
    const GET: Op = Op::DEQUEUE;

    fn put(&self, number: u64) {
        self.push(number);
    }

    fn get(&self) -> Option<u64> {
        self.pop()
    }
}

/// Each thread puts and gets at random.
fn run<C: Container>(container: &C, threads: u64, operations: u64, random: &mut Random) -> History {
    record(threads, random, |log, random| {
        let first = u64::from(log.process()) * operations;
        for number in first..first + operations {
            disturb(random);
            if random.below(2) == 0 {
                log.record(C::PUT, number, || container.put(number));
            } else {
                log.record(C::GET, (), || container.get());
            }
        }
    })
}

fn holds<C: Container>(make: impl Fn() -> C) {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 3, 8] {
        assert_holds(&run(&make(), threads, 60_000 / threads * stress(), &mut random), C::KIND);
    }
}

#[test]
fn the_stack_on_epochs_is_linearizable() {
    holds(Stack::<u64, Epochs>::with_scheme);
}

#[test]
fn the_stack_on_hazards_is_linearizable() {
    holds(Stack::<u64, Hazards>::with_scheme);
}

#[test]
fn the_queue_on_epochs_is_linearizable() {
    holds(Queue::<u64, Epochs>::with_scheme);
}

#[test]
fn the_queue_on_hazards_is_linearizable() {
    holds(Queue::<u64, Hazards>::with_scheme);
}

const NODES: usize = 4;
const NONE: usize = NODES;

/// The stack without reclamation: nodes are reused at once, so a node may come back to the top with another node below
/// it while a `pop` is in progress (ABA). The nodes are in an array, so that this is a mistake in the order of events
/// and not undefined behaviour.
struct Reusing {
    top: AtomicUsize,
    free: AtomicUsize,
    value: [AtomicU64; NODES],
    below: [AtomicUsize; NODES],
}

impl Reusing {
    fn new() -> Self {
        Reusing {
            top: AtomicUsize::new(NONE),
            free: AtomicUsize::new(0),
            value: array::from_fn(|_| AtomicU64::new(0)),
            below: array::from_fn(|node| AtomicUsize::new(node + 1)),
        }
    }

    /// Takes a node. `looked` runs when the topmost node and the one below it are known, before the change.
    fn take(&self, list: &AtomicUsize, looked: impl FnOnce()) -> usize {
        let top = list.load(Acquire);
        let below = self.below[top].load(Acquire);
        looked();
        list.compare_exchange(top, below, AcqRel, Relaxed).expect("the same node is on top");
        top
    }

    fn give(&self, list: &AtomicUsize, node: usize) {
        self.below[node].store(list.load(Relaxed), Relaxed);
        list.store(node, Release);
    }

    fn put(&self, number: u64) {
        let node = self.take(&self.free, || ());
        self.value[node].store(number, Relaxed);
        self.give(&self.top, node);
    }

    /// Pops. `taken` runs when the node is out of the stack but not yet free.
    fn get(&self, looked: impl FnOnce(), taken: impl FnOnce()) -> u64 {
        let node = self.take(&self.top, looked);
        let number = self.value[node].load(Relaxed);
        taken();
        self.give(&self.free, node);
        number
    }
}

/// One thread plays three processes, whose operations run inside one another.
fn used_again() -> History {
    let (twin, recorder) = (Reusing::new(), Recorder::new());
    let (mut first, mut second, mut third) = (recorder.log(), recorder.log(), recorder.log());
    for number in 1..=3 {
        second.record(Op::PUSH, number, || twin.put(number));
    }
    let get = || twin.get(|| (), || ());
    first.begin(Op::POP, ());
    let popped = twin.get(
        // The pop has seen 3 above 2 and is now preempted.
        || {
            second.record(Op::POP, (), get);
            third.begin(Op::POP, ());
            // The node of 3 comes back to the top, with 1 below it.
            let popped = twin.get(|| (), || second.record(Op::PUSH, 4, || twin.put(4)));
            third.end(popped);
        },
        || (),
    );
    first.end(popped);
    second.record(Op::POP, (), get);
    drop((first, second, third));
    recorder.finish()
}

#[test]
fn a_stack_that_reuses_nodes_at_once_is_caught() {
    assert_caught("reused-node", "a stack that reuses its nodes at once", Kind::Stack, used_again);
}

/// A queue whose `push` links its node by a load and a store: of two nodes that are linked behind the same last node,
/// one is lost.
struct Overwriting {
    last: AtomicUsize,
    first: AtomicUsize,
    value: [AtomicU64; NODES],
    next: [AtomicUsize; NODES],
}

impl Overwriting {
    /// A queue with node 0 as the dummy before the first.
    fn new() -> Self {
        Overwriting {
            last: AtomicUsize::new(0),
            first: AtomicUsize::new(0),
            value: array::from_fn(|_| AtomicU64::new(0)),
            next: array::from_fn(|_| AtomicUsize::new(NONE)),
        }
    }

    /// Appends. `looked` runs when the last node is known, before the link.
    fn put(&self, node: usize, number: u64, looked: impl FnOnce()) {
        self.value[node].store(number, Relaxed);
        let last = self.last.load(Acquire);
        looked();
        self.next[last].store(node, Release);
        self.last.store(node, Release);
    }

    fn get(&self) -> Option<u64> {
        let next = self.next[self.first.load(Acquire)].load(Acquire);
        self.first.store((next != NONE).then_some(next)?, Release);
        Some(self.value[next].load(Relaxed))
    }
}

fn overwritten() -> History {
    let (twin, recorder) = (Overwriting::new(), Recorder::new());
    let (mut first, mut second, mut third) = (recorder.log(), recorder.log(), recorder.log());
    first.begin(Op::ENQUEUE, 1);
    twin.put(1, 1, || second.record(Op::ENQUEUE, 2, || twin.put(2, 2, || ())));
    first.end(());
    for _ in 0..2 {
        a_while();
        third.record(Op::DEQUEUE, (), || twin.get());
    }
    drop((first, second, third));
    recorder.finish()
}

#[test]
fn a_queue_that_links_without_comparing_is_caught() {
    assert_caught("lost-link", "a queue that links without comparing", Kind::Queue, overwritten);
}
