//! A stack and a queue, compared with the same structures on crossbeam-epoch.

use millstream_sync::reclaim::{Epochs, Hazards, Queue, Scheme, Stack};

use super::peers;
use super::threads::together;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::eventcount::clock;

const PAIRS: u64 = 2_000_000;
const QUICK_PAIRS: u64 = 10_000;
/// Number of values that stay in the structure all the time.
const RESIDENTS: u64 = 64;

type Work = fn(threads: usize, n: u64) -> (f64, u64);

const STACKS: [(&str, Role, Work); 3] = [
    ("Stack on Epochs", Role::Ours, stack::<Epochs>),
    ("Stack on Hazards", Role::Ours, stack::<Hazards>),
    ("the same on crossbeam-epoch", Role::Peer, peer_stack),
];

const QUEUES: [(&str, Role, Work); 3] = [
    ("Queue on Epochs", Role::Ours, queue::<Epochs>),
    ("Queue on Hazards", Role::Ours, queue::<Hazards>),
    ("the same on crossbeam-epoch", Role::Peer, peer_queue),
];

/// Prints the tables.
///
/// # Errors
/// Fails when values are missing after the work.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_PAIRS } else { PAIRS };
    for threads in [1, 2, 4] {
        for works in [&STACKS, &QUEUES] {
            let n = n / threads as u64;
            println!("### push and pop, {threads} thread(s), {n} times each\n");
            let competitors = works.map(|(name, role, work)| {
                Competitor::new(name, role, move || {
                    let (took, popped) = work(threads, n);
                    let expected = n * threads as u64;
                    if popped == expected {
                        Ok(took)
                    } else {
                        Err(Error::new(format!("{popped} values popped, not {expected}")))
                    }
                })
            });
            let comparison = alternate(clock::UNIT, 1, args.rounds, competitors.into())?;
            println!("{}\n", comparison.render());
        }
    }
    Ok(())
}

/// Runs threads that repeatedly push a value and pop a value. Returns the time per pair, and the number of popped
/// values.
fn pairs(threads: usize, n: u64, push: impl Fn(u64) + Sync, pop: impl Fn() -> Option<u64> + Sync) -> (f64, u64) {
    (0..RESIDENTS).for_each(&push);
    let (push, pop) = (&push, &pop);
    together(threads, n, |_| {
        move |n| {
            (0..n).fold(0, |popped, number| {
                push(number);
                popped + u64::from(pop().is_some())
            })
        }
    })
}

fn stack<S: Scheme>(threads: usize, n: u64) -> (f64, u64) {
    let stack = Stack::<u64, S>::with_scheme();
    pairs(threads, n, |number| stack.push(number), || stack.pop())
}

fn queue<S: Scheme>(threads: usize, n: u64) -> (f64, u64) {
    let queue = Queue::<u64, S>::with_scheme();
    pairs(threads, n, |number| queue.push(number), || queue.pop())
}

fn peer_stack(threads: usize, n: u64) -> (f64, u64) {
    let stack = peers::Stack::new();
    pairs(threads, n, |number| stack.push(number), || stack.pop())
}

fn peer_queue(threads: usize, n: u64) -> (f64, u64) {
    let queue = peers::Queue::new();
    pairs(threads, n, |number| queue.push(number), || queue.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_returns_every_value() {
        for (name, _, work) in STACKS.iter().chain(&QUEUES) {
            assert_eq!(work(2, 1000).1, 2000, "{name}");
        }
    }
}
