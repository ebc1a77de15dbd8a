//! The same way through channels, and two references that do less.

use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::{nothing, shares};
use crate::error::Error;
use crate::machine::cores;

const STAGES: usize = 4;
const CAPACITY: usize = 1024;

/// A thread per stage, a bounded channel before each; the last stage counts.
///
/// # Errors
/// Never.
pub fn crossbeam_threads(n: u64) -> Result<u64, Error> {
    through_threads(CAPACITY, send_all(0..n), nothing, |_| 1)
}

/// The same from so many threads that send.
///
/// # Errors
/// Never.
pub fn crossbeam_sent(n: u64, senders: u64) -> Result<u64, Error> {
    let feed = |first: &Sender<u64>| {
        std::thread::scope(|scope| {
            shares(n, senders).for_each(|range| {
                scope.spawn(|| send_all(range)(first));
            });
        });
    };
    through_threads(CAPACITY, feed, nothing, |_| 1)
}

/// The same with 64 numbers a message: a sixty-fourth of the queue operations.
///
/// # Errors
/// Never.
pub fn crossbeam_batches(n: u64) -> Result<u64, Error> {
    let batch = 64;
    let batches = (0..n.div_ceil(batch)).map(|i| (i * batch..n.min((i + 1) * batch)).collect());
    let stage = |mut numbers: Vec<u64>| {
        for number in &mut numbers {
            *number = nothing(*number);
        }
        numbers
    };
    through_threads(CAPACITY / batch as usize, send_all(batches), stage, |numbers| numbers.len() as u64)
}

fn send_all<T>(source: impl Iterator<Item = T>) -> impl FnOnce(&Sender<T>) {
    |first| {
        for unit in source {
            first.send(unit).expect("the stages run until this sender is dropped");
        }
    }
}

fn through_threads<T: Send>(
    capacity: usize,
    feed: impl FnOnce(&Sender<T>),
    stage: impl Fn(T) -> T + Copy + Send,
    count: impl Fn(T) -> u64 + Send,
) -> Result<u64, Error> {
    std::thread::scope(|scope| {
        let (first, mut input) = bounded(capacity);
        for _ in 1..STAGES {
            let (output, next_input) = bounded(capacity);
            let own_input = std::mem::replace(&mut input, next_input);
            scope.spawn(move || pump(&own_input, &output, stage));
        }
        let last = scope.spawn(move || input.iter().map(|unit| count(stage(unit))).sum());
        feed(&first);
        drop(first);
        Ok(last.join().expect("a stage panicked"))
    })
}

fn pump<T>(input: &Receiver<T>, output: &Sender<T>, stage: impl Fn(T) -> T) {
    for unit in input {
        output.send(stage(unit)).expect("the next stage runs until this sender is dropped");
    }
}

/// A tokio task per stage, a bounded `mpsc` channel before each.
///
/// # Errors
/// When the runtime cannot be started.
pub fn tokio_mpsc(n: u64) -> Result<u64, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores())
        .build()
        .map_err(|error| Error::new(error.to_string()))?;
    let closed = "a stage stopped before its sender was dropped";
    runtime.block_on(async {
        let (first, mut input) = tokio::sync::mpsc::channel(CAPACITY);
        for _ in 1..STAGES {
            let (output, next_input) = tokio::sync::mpsc::channel(CAPACITY);
            let mut own_input = std::mem::replace(&mut input, next_input);
            tokio::spawn(async move {
                while let Some(number) = own_input.recv().await {
                    output.send(nothing(number)).await.expect(closed);
                }
            });
        }
        let last = tokio::spawn(async move {
            let mut out = 0;
            while let Some(number) = input.recv().await {
                nothing(number);
                out += 1;
            }
            out
        });
        for number in 0..n {
            first.send(number).await.expect(closed);
        }
        drop(first);
        last.await.map_err(|error| Error::new(error.to_string()))
    })
}

/// A rayon task per number runs all four stages: no queue between them, no cap, no order.
///
/// # Errors
/// Never.
pub fn rayon_tasks(n: u64) -> Result<u64, Error> {
    let out = (0..n as usize).into_par_iter().with_max_len(1).map(|number| {
        (0..STAGES).fold(number as u64, |number, _| nothing(number));
        1
    });
    Ok(out.sum())
}
