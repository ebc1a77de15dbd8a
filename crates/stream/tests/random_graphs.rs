//! Compares the bounds of random graphs with a simulator of all orders of firing.
//!
//! `MILLSTREAM_STRESS=400 cargo test --release -p millstream-stream --test random_graphs` checks 10^5 graphs.

mod drawn;
mod simulator;

use std::collections::HashMap;

use millstream_stream::check::{CheckError, Guarantee, Proof, check};
use millstream_verify_random::{seed, stress};

use drawn::Draw;
use simulator::{Outcome, Queue, Simulator};

/// The maximum number of states followed for one graph.
const MAX_STATES: usize = 4_000;

fn caps(proof: &Proof) -> HashMap<Queue, u64> {
    proof.edges().iter().map(|bound| ((bound.through, bound.to, bound.port), bound.values)).collect()
}

#[derive(Debug, Default)]
struct Tally {
    graphs: u64,
    refused: u64,
    /// Graphs that are accepted with some bound above 1.
    with_room: u64,
    /// Graphs in which every bound is least: if one queue has room for one value less, the graph deadlocks even if the other
    /// queues have more room.
    least: u64,
    /// Graphs in which queues compete: with the least capacity for each queue, the graph deadlocks.
    compete: u64,
    too_many: u64,
}

/// For each queue, returns the least capacity with which no order of firing stops while all other queues have ample room. Room
/// is ample if it exceeds any capacity in an assignment with a smaller sum. Returns `None` if there are too many states.
fn least(simulator: &Simulator<'_>, bounds: &HashMap<Queue, u64>) -> Option<HashMap<Queue, u64>> {
    let more = bounds.values().map(|bound| bound - 1).sum::<u64>().max(4);
    let mut least = bounds.clone();
    for (queue, least) in &mut least {
        let mut wide: HashMap<Queue, u64> = bounds.iter().map(|(queue, bound)| (*queue, bound + more)).collect();
        while *least > 1 {
            wide.insert(*queue, *least - 1);
            match simulator.explore(&wide, MAX_STATES) {
                Outcome::Deadlock => break,
                Outcome::Forever(_) => *least -= 1,
                _ => return None,
            }
        }
    }
    Some(least)
}

/// Returns all capacities that are at least `least` and whose sum is less than `sum`.
fn with_smaller_sums(queues: &[Queue], least: &HashMap<Queue, u64>, sum: u64) -> Vec<HashMap<Queue, u64>> {
    let spare = sum - 1 - least.values().sum::<u64>();
    let mut all = vec![(least.clone(), spare)];
    for queue in queues {
        let wider = |(caps, spare): &(HashMap<Queue, u64>, u64)| {
            let (caps, spare) = (caps.clone(), *spare);
            (0..=spare).map(move |more| {
                let mut wider = caps.clone();
                *wider.get_mut(queue).unwrap() += more;
                (wider, spare - more)
            })
        };
        all = all.iter().flat_map(wider).collect();
    }
    all.into_iter().map(|(caps, _)| caps).collect()
}

/// Checks one graph with periodic clocks.
fn check_periodic(seed: u64, tally: &mut Tally) {
    let graph = Draw::draw(seed, false, false);
    let simulator = Simulator::new(&graph);
    tally.graphs += 1;
    match check(&graph) {
        Ok(proof) => {
            let bounds = caps(&proof);
            let peaks = match simulator.explore(&bounds, MAX_STATES) {
                Outcome::Forever(peaks) => peaks,
                Outcome::TooMany => return tally.too_many += 1,
                other => panic!("seed {seed}: {other:?} with the proven bounds {bounds:?} of {graph:#?}"),
            };
            tally.with_room += u64::from(bounds.values().any(|bound| *bound > 1));
            for (queue, peak) in simulator.queues.iter().zip(peaks) {
                assert_eq!(peak, bounds[queue], "seed {seed}: the bound of {queue:?} is not reached in {graph:#?}");
            }
            for queue in simulator.queues.iter().filter(|queue| bounds[*queue] > 1) {
                let mut less = bounds.clone();
                less.insert(*queue, bounds[queue] - 1);
                let outcome = simulator.explore(&less, MAX_STATES);
                assert_eq!(outcome, Outcome::Deadlock, "seed {seed}: {queue:?} works with less in {graph:#?}");
            }
            let Some(least) = least(&simulator, &bounds) else { return tally.too_many += 1 };
            if least == bounds {
                tally.least += 1;
                return;
            }
            let outcome = simulator.explore(&least, MAX_STATES);
            assert_eq!(outcome, Outcome::Deadlock, "seed {seed}: {least:?} instead of {bounds:?} in {graph:#?}");
            tally.compete += 1;
            let smaller = with_smaller_sums(&simulator.queues, &least, bounds.values().sum());
            if let Some(smaller) = smaller.iter().find(|caps| simulator.explore(caps, MAX_STATES) != Outcome::Deadlock)
            {
                panic!("seed {seed}: {smaller:?} instead of {bounds:?} in {graph:#?}");
            }
        }
        Err(CheckError::Refused(refusal)) => {
            tally.refused += 1;
            for room in [1, 2, 5] {
                let room = simulator.queues.iter().map(|queue| (*queue, room)).collect();
                match simulator.explore(&room, MAX_STATES) {
                    Outcome::Deadlock | Outcome::TooMany => {}
                    other => panic!("seed {seed}: refused, {refusal}, and yet {other:?} in {graph:#?}"),
                }
            }
            let n = [0, 1, 10, 1000, 1_000_000].map(|buffer| refusal.overflows_at(buffer));
            assert!(n.iter().all(Option::is_some) && n.is_sorted(), "seed {seed}: {n:?} of {refusal} in {graph:#?}");
        }
        Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
    }
}

#[test]
fn bounds_are_reached_never_exceeded_and_smallest_in_random_periodic_graphs() {
    let first = seed().wrapping_mul(1_000_000_007);
    let mut tally = Tally::default();
    for seed in 0..250 * stress() {
        check_periodic(first.wrapping_add(seed), &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.with_room * 20 > tally.graphs && tally.refused * 20 > tally.graphs, "{tally:?}");
    assert!(tally.least > 20 && tally.compete > 0, "{tally:?}");
}

#[test]
fn accepted_graphs_never_stop_whatever_the_data_decide() {
    let first = seed().wrapping_mul(1_000_000_009);
    let (mut accepted, mut refused) = (0, 0);
    for seed in (0..250 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, true, false);
        match check(&graph) {
            Ok(proof) => match Simulator::new(&graph).explore(&caps(&proof), MAX_STATES) {
                Outcome::Forever(_) => accepted += 1,
                Outcome::TooMany => {}
                other => panic!("seed {seed}: {other:?} in {graph:#?}"),
            },
            Err(CheckError::Refused(refusal)) => {
                assert!(refusal.overflows_at(1 << 60).is_some(), "seed {seed}: {refusal} in {graph:#?}");
                refused += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(accepted > 30 && refused > 30, "{accepted} {refused}");
}

#[test]
fn graphs_with_buffers_stop_only_when_a_buffer_is_full() {
    let first = seed().wrapping_mul(1_000_000_021);
    let (mut needed, mut full) = (0, 0);
    for seed in (0..250 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, true, true);
        let proof = match check(&graph) {
            Ok(proof) => proof,
            Err(CheckError::Refused(_)) => continue,
            Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
        };
        needed += u64::from(proof.edges().iter().any(|bound| bound.guarantee == Guarantee::Buffer));
        match Simulator::new(&graph).explore(&caps(&proof), MAX_STATES) {
            Outcome::Full => full += 1,
            Outcome::Forever(_) | Outcome::TooMany => {}
            Outcome::Deadlock => panic!("seed {seed}: a deadlock with no full buffer in {graph:#?}"),
        }
    }
    assert!(needed > 30 && full > 2, "{needed} {full}");
}
