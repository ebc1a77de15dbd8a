//! Loom explores every interleaving of small rings: two or three threads, one to three events each.
//!
//! The models explore the production source: sequencers, channels, the notifier and the waiting. The strategy is
//! `Block`, so that every wait reaches the point where a wake-up could be lost. A lost wake-up is a deadlock, which
//! loom reports. Every access to a slot goes through loom's cell, so loom reports overlapping claims, and a missing
//! acquire or release, as data races. The models' operations order only what their documentation promises: a light
//! fence orders only together with a heavy one, and a wake-up does not make the sleepers' writes visible to its caller.
//!
//! One thing is not explored: a consumer's choice among the *threads* that wait for room. Their sleeps are bounded and
//! may end at any time in a model, so the choice affects only performance; tests on the machine cover it. Tasks, whose
//! sleeps are not bounded, are explored.
//!
//! In `cargo xtask test`, the largest models have one event or one preemption fewer than in `cargo xtask soak models`.
//! The smaller models allow more preemptions; they too reach full rings, and waits on both sides.
//!
//! # Mutations
//! `python3 verify/mutants ring` introduces mistakes into this source, one at a time: weaker orderings, missing fences,
//! checks and wake-ups. It reports which model finds each mistake.

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
