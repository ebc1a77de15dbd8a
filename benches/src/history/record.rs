//! The cost of recording an operation: the time of a queue's operations with a log, minus the time without a log.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use millstream_history::Op;
use millstream_recorder::Recorder;

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::eventcount::clock;

/// The initial capacity of a log.
const OPERATIONS: usize = Recorder::ROOM;
const QUICK_OPERATIONS: usize = 5000;
/// The run that exceeds the initial capacity of a log records `BEYOND * OPERATIONS` operations.
const BEYOND: usize = 8;
/// Dependent multiplications between operations: they take longer than the largest gap at which operations share a
/// stamp.
const PAUSE_STEPS: u32 = 1000;

/// Records the operations of a thread on a queue under a mutex, and prints nanoseconds per operation. The peers are the
/// obvious recorder, which reads the clock twice and pushes to a vector, and the lower bound, which is a single reading
/// of the clock.
///
/// # Errors
/// Fails when a log lost an operation.
pub fn run(args: &Args) -> Result<(), Error> {
    let operations = if args.quick { QUICK_OPERATIONS } else { OPERATIONS };
    println!(
        "## history: nanoseconds added per recorded operation, {operations} operations of a queue under a mutex\n"
    );
    let many = BEYOND * operations;
    let competitors = vec![
        Competitor::new("millstream", Role::Ours, || ours(operations, || ())),
        Competitor::new("millstream, beyond its room", Role::Ours, || ours(many, || ())),
        Competitor::new("millstream, with pauses", Role::Ours, || ours(operations, pause)),
        Competitor::new("two readings of the clock", Role::Peer, || two_clocks(operations, || ())),
        Competitor::new("two readings of the clock, with pauses", Role::Peer, || two_clocks(operations, pause)),
        Competitor::new("one reading of the counter in order, nothing kept", Role::Reference, || {
            Ok(one_reading(operations))
        }),
    ];
    println!("{}\n", alternate("ns", 1, args.rounds, competitors)?.render());
    Ok(())
}

fn pause() {
    let product =
        (0..PAUSE_STEPS).fold(std::hint::black_box(3_u64), |product, step| product.wrapping_mul(u64::from(step) | 1));
    std::hint::black_box(product);
}

/// Nanoseconds per operation. `turn` runs `operations / 2` times, and does two operations on a queue each time.
fn time(operations: usize, mut turn: impl FnMut(&Mutex<VecDeque<u64>>, u64)) -> f64 {
    let queue = Mutex::new(VecDeque::with_capacity(1));
    let began = Instant::now();
    for value in 0..operations as u64 / 2 {
        turn(&queue, value);
    }
    began.elapsed().as_secs_f64() * 1e9 / operations as f64
}

fn push(queue: &Mutex<VecDeque<u64>>, value: u64) {
    queue.lock().expect("no thread panics under the lock").push_back(value);
}

fn pop(queue: &Mutex<VecDeque<u64>>) -> Option<u64> {
    queue.lock().expect("no thread panics under the lock").pop_front()
}

fn unrecorded(operations: usize, between: impl Fn()) -> f64 {
    time(operations, |queue, value| {
        between();
        push(queue, value);
        between();
        std::hint::black_box(pop(queue));
    })
}

fn ours(operations: usize, between: impl Fn()) -> Result<f64, Error> {
    let without = unrecorded(operations, &between);
    let recorder = Recorder::new();
    let mut log = recorder.log();
    let with = time(operations, |queue, value| {
        between();
        log.record(Op::ENQUEUE, value, || push(queue, value));
        between();
        log.record(Op::DEQUEUE, (), || pop(queue));
    });
    drop(log);
    complete(recorder.finish().len(), operations)?;
    Ok(with - without)
}

fn two_clocks(operations: usize, between: impl Fn()) -> Result<f64, Error> {
    let without = unrecorded(operations, &between);
    let mut log: Vec<(Instant, Instant, Option<u64>)> = Vec::new();
    let with = time(operations, |queue, value| {
        between();
        let call = Instant::now();
        push(queue, value);
        log.push((call, Instant::now(), Some(value)));
        between();
        let call = Instant::now();
        let popped = pop(queue);
        log.push((call, Instant::now(), popped));
    });
    complete(log.len(), operations)?;
    Ok(with - without)
}

/// The lower bound of any recorder: the time of return can only come from a reading of the clock that waits for the
/// operation.
fn one_reading(operations: usize) -> f64 {
    let without = unrecorded(operations, || ());
    let with = time(operations, |queue, value| {
        push(queue, value);
        std::hint::black_box(clock::now_in_order());
        std::hint::black_box(pop(queue));
        std::hint::black_box(clock::now_in_order());
    });
    with - without
}

fn complete(recorded: usize, operations: usize) -> Result<(), Error> {
    if recorded == operations {
        return Ok(());
    }
    Err(Error::new(format!("{recorded} of {operations} operations were recorded")))
}
