//! The four stages with channels: a thread per stage, like the stages of the flow, and handwritten worker loops.

use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::{nothing, shares};
use crate::error::Error;
use crate::machine::cores;

const STAGES: usize = 4;
const CAPACITY: usize = 1024;
/// Numbers per message, for the competitors that send several numbers at once.
const BATCH: u64 = 64;

/// Runs a thread per stage with a bounded channel before each; the last stage counts.
///
/// # Errors
/// Never fails.
pub fn crossbeam_threads(n: u64) -> Result<u64, Error> {
    through_threads(CAPACITY, send_all(0..n), nothing, |_| 1)
}

/// Runs the stages of [`crossbeam_threads`] behind several sending threads.
///
/// # Errors
/// Never fails.
pub fn crossbeam_sent(n: u64, senders: u64) -> Result<u64, Error> {
    through_threads(CAPACITY, send_shares(n, senders), nothing, |_| 1)
}

/// Runs the stages of [`crossbeam_threads`] with 64 numbers per message: a sixty-fourth of the queue operations.
///
/// # Errors
/// Never fails.
pub fn crossbeam_batches(n: u64) -> Result<u64, Error> {
    let stage = |mut numbers: Vec<u64>| {
        for number in &mut numbers {
            *number = nothing(*number);
        }
        numbers
    };
    through_threads(CAPACITY / BATCH as usize, send_all(batches(n)), stage, |numbers| numbers.len() as u64)
}

/// Runs one worker per core on one bounded channel; each calls the four stages as functions, one after another.
///
/// # Errors
/// Never fails.
pub fn crossbeam_workers(n: u64) -> Result<u64, Error> {
    through_workers(CAPACITY, send_all(0..n), |number| {
        all_stages(number);
        1
    })
}

/// Runs the workers of [`crossbeam_workers`] with 64 numbers per message.
///
/// # Errors
/// Never fails.
pub fn crossbeam_worker_batches(n: u64) -> Result<u64, Error> {
    through_workers(CAPACITY / BATCH as usize, send_all(batches(n)), |numbers| {
        numbers.into_iter().map(all_stages).count() as u64
    })
}

/// Runs the workers of [`crossbeam_workers`] behind `senders` sending threads.
///
/// # Errors
/// Never fails.
pub fn crossbeam_workers_sent(n: u64, senders: u64) -> Result<u64, Error> {
    through_workers(CAPACITY, send_shares(n, senders), |number| {
        all_stages(number);
        1
    })
}

fn send_all<T>(source: impl Iterator<Item = T>) -> impl FnOnce(&Sender<T>) {
    |first| {
        for unit in source {
            first.send(unit).expect("the stages run until this sender is dropped");
        }
    }
}

fn send_shares(n: u64, senders: u64) -> impl FnOnce(&Sender<u64>) {
    move |first| {
        std::thread::scope(|scope| {
            for range in shares(n, senders) {
                scope.spawn(|| send_all(range)(first));
            }
        });
    }
}

fn batches(n: u64) -> impl Iterator<Item = Vec<u64>> {
    (0..n.div_ceil(BATCH)).map(move |i| (i * BATCH..n.min((i + 1) * BATCH)).collect())
}

fn all_stages(number: u64) -> u64 {
    (0..STAGES).fold(number, |number, _| nothing(number))
}

/// Counts the numbers that one worker per core takes from one channel.
fn through_workers<T: Send>(
    capacity: usize,
    feed: impl FnOnce(&Sender<T>),
    work: impl Fn(T) -> u64 + Copy + Send,
) -> Result<u64, Error> {
    std::thread::scope(|scope| {
        let (first, input) = bounded(capacity);
        let workers: Vec<_> = (0..cores())
            .map(|_| {
                let input = input.clone();
                scope.spawn(move || input.iter().map(work).sum::<u64>())
            })
            .collect();
        drop(input);
        feed(&first);
        drop(first);
        Ok(workers.into_iter().map(|worker| worker.join().expect("a worker panicked")).sum())
    })
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

/// Runs a tokio task per stage with a bounded `mpsc` channel before each.
///
/// # Errors
/// Fails when the runtime cannot be started.
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

/// Runs all four stages in one rayon task per number: no queues, no limit, no order.
///
/// # Errors
/// Never fails.
pub fn rayon_tasks(n: u64) -> Result<u64, Error> {
    let out = (0..n as usize).into_par_iter().with_max_len(1).map(|number| {
        all_stages(number as u64);
        1
    });
    Ok(out.sum())
}
