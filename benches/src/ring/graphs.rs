//! Graphs of several consumers, with more threads than cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disruptor::{BusySpin, build_single_producer};
use millstream_ring::graph::{Builder, Place};

use super::peers::{Waits, Yielding, adder};
use super::{CAPACITY, Load, Pass, Wanted, table};
use crate::args::Args;
use crate::compare::Role;
use crate::error::Error;

pub(super) fn multicasts(args: &Args, events: u64) -> Result<(), Error> {
    beside(args, events, multicast, [disruptor_multicast::<Yielding>, disruptor_multicast::<BusySpin>])
}

pub(super) fn pipelines(args: &Args, events: u64) -> Result<(), Error> {
    beside(args, events, pipeline, [disruptor_pipeline::<Yielding>, disruptor_pipeline::<BusySpin>])
}

pub(super) fn diamonds(args: &Args, events: u64) -> Result<(), Error> {
    beside(args, events, diamond, [disruptor_diamond::<Yielding>, disruptor_diamond::<BusySpin>])
}

/// Compares with two disruptors: one yields, as its author advises if there are more threads than cores, and one spins,
/// as its author advises if each thread has a core. The second is shown for scale. There are four threads. On fewer
/// than four cores, the spinning disruptor takes hundreds of times as long, so it passes fewer events.
fn beside(args: &Args, events: u64, ours: Pass, [yielding, spinning]: [Pass; 2]) -> Result<(), Error> {
    const YIELDING: &str = "disruptor, yielding";
    let competitors: [(&str, Role, Pass); 2] = [("graph", Role::Ours, ours), (YIELDING, Role::Peer, yielding)];
    let wanted = [Wanted { ours: "graph", peer: YIELDING, times: 1.0 }];
    table(Load::one_to_one(events), &competitors, &wanted, args.rounds)?;
    let few = if crate::machine::cores() < 4 { events / 60 } else { events };
    let competitors: [(&str, Role, Pass); 2] =
        [("graph", Role::Ours, ours), ("disruptor, spinning", Role::Reference, spinning)];
    println!("with {few} events, for scale:\n");
    table(Load::one_to_one(few), &competitors, &[], args.rounds)
}

fn our_adder() -> (impl FnMut(&u64, Place) + Send + 'static, Arc<AtomicU64>) {
    let (mut add, total) = adder();
    (move |event: &u64, place: Place| add(event, place.position as i64, place.ends_batch), total)
}

/// The common value of all totals; zero, which is never right, if they differ.
fn agreed<const N: usize>(totals: [Arc<AtomicU64>; N]) -> u64 {
    let totals = totals.map(|total| total.load(Ordering::Relaxed));
    if totals.iter().all(|&total| total == totals[0]) { totals[0] } else { 0 }
}

fn multicast(load: Load) -> u64 {
    let mut ring = Builder::single(CAPACITY, || 0u64);
    let totals = [(); 3].map(|()| {
        let (add, total) = our_adder();
        ring.handle(&[], add);
        total
    });
    feed(ring, load.per_producer);
    agreed(totals)
}

fn pipeline(load: Load) -> u64 {
    let mut ring = Builder::single(CAPACITY, || 0u64);
    let mut before = Vec::new();
    let totals = [(); 3].map(|()| {
        let (add, total) = our_adder();
        before = vec![ring.handle(&before, add)];
        total
    });
    feed(ring, load.per_producer);
    agreed(totals)
}

fn diamond(load: Load) -> u64 {
    let mut ring = Builder::single(CAPACITY, || 0u64);
    let [(left, first), (right, second), (last, third)] = [our_adder(), our_adder(), our_adder()];
    let sides = [ring.handle(&[], left), ring.handle(&[], right)];
    ring.handle(&sides, last);
    feed(ring, load.per_producer);
    agreed([first, second, third])
}

fn feed(ring: Builder<u64, millstream_ring::sequencer::Single>, events: u64) {
    let (mut producer, running) = ring.start();
    (0..events).for_each(|n| producer.publish(|event| *event = n));
    drop(producer);
    running.join().expect("the handlers do not panic");
}

fn disruptor_multicast<W: Waits>(load: Load) -> u64 {
    let [(a, first), (b, second), (c, third)] = [adder(), adder(), adder()];
    let mut producer = build_single_producer(CAPACITY, || 0u64, W::HOW)
        .handle_events_with(a)
        .handle_events_with(b)
        .handle_events_with(c)
        .build();
    (0..load.per_producer).for_each(|n| W::publish(&mut producer, |event| *event = n));
    drop(producer);
    agreed([first, second, third])
}

fn disruptor_pipeline<W: Waits>(load: Load) -> u64 {
    let [(a, first), (b, second), (c, third)] = [adder(), adder(), adder()];
    let mut producer = build_single_producer(CAPACITY, || 0u64, W::HOW)
        .handle_events_with(a)
        .and_then()
        .handle_events_with(b)
        .and_then()
        .handle_events_with(c)
        .build();
    (0..load.per_producer).for_each(|n| W::publish(&mut producer, |event| *event = n));
    drop(producer);
    agreed([first, second, third])
}

fn disruptor_diamond<W: Waits>(load: Load) -> u64 {
    let [(a, first), (b, second), (c, third)] = [adder(), adder(), adder()];
    let mut producer = build_single_producer(CAPACITY, || 0u64, W::HOW)
        .handle_events_with(a)
        .handle_events_with(b)
        .and_then()
        .handle_events_with(c)
        .build();
    (0..load.per_producer).for_each(|n| W::publish(&mut producer, |event| *event = n));
    drop(producer);
    agreed([first, second, third])
}
