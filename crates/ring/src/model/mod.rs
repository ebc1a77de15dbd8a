//! Loom explores every interleaving of small rings: two or three threads, one to three events each.
//!
//! The models explore the source that runs: sequencers, channels, the notifier and the waiting. The strategy is
//! `Block`, so that every wait gets to the point where a wake-up could be lost; a lost one is a deadlock, which loom
//! reports. Every access to a slot goes through loom's cell, so a claim that overlaps another, or a missing acquire or
//! release, is reported as a data race. Nothing orders more than it promises: a light fence orders nothing unless it is
//! paired with a heavy one, and a wake-up shows its caller nothing of what the sleepers did.
//!
//! One thing is not explored: which of the *threads* waiting for room a consumer wakes. Their sleeps are bounded, end
//! at any time in a model, and the rest is advice; tests on the machine cover it. Tasks, whose sleeps are not bounded,
//! are explored.
//!
//! The largest models have one event or one preemption less in the test command than in `cargo xtask soak models`; smaller
//! models beside them reach full rings and waits on both sides with more preemptions.
//!
//! # Mutations
//! `python3 verify/mutants ring` makes mistakes in this source, one at a time: orderings left out, fences, looks and
//! wake-ups forgotten. It reports which model finds each.

mod channel;
mod graph;
mod sequencer;
mod shared;

use crate::{Options, WaitStrategy};

fn options(capacity: usize) -> Options {
    Options::new(capacity).wait_strategy(WaitStrategy::Block)
}

pub(crate) fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
