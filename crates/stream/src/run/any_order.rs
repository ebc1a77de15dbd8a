//! A test of Kahn's principle (1974): the values depend neither on the order of firing nor on the room in the queues.
//!
//! A real run takes the next firing from a record, or chooses it on demand. Here the next actor is drawn at random from those
//! that can fire, and every queue has a random amount of room beyond its bound.

#[path = "../../tests/defined/mod.rs"]
mod defined;
#[path = "../../tests/drawn/mod.rs"]
mod drawn;

use millstream_verify_random::{Random, seed, stress};

use super::running::{Engine, Running};
use crate::net::Ready;

use defined::{by_lists, program};
use drawn::Draw;

/// The outcome of a run in a random order.
struct Outcome {
    values: Vec<u64>,
    /// Whether the run has stopped before its end, because a buffer was full.
    is_full: bool,
    /// The total number of values by which the queues have exceeded their bounds.
    beyond: u64,
}

fn run_in_any_order(running: Running<u64>, random: &mut Random) -> Outcome {
    let Engine::Net { machine, out, .. } = running.engine else { unreachable!("a shared source has a net") };
    let mut machine = *machine;
    let (parts, tokens, works) = (&machine.parts, &mut machine.tokens, &mut machine.works);
    let bounds = tokens.caps.clone();
    for cap in &mut tokens.caps {
        *cap = cap.saturating_add(random.below(4) * random.below(4));
    }
    let from_sink = parts.net.actors[parts.sink].inputs[0];
    let actors = tokens.ended.len();
    let mut values = Vec::new();
    // For each actor, whether it has been drawn but could not fire since another actor last fired or ended.
    let mut idle = vec![false; actors];
    while idle.contains(&false) {
        let actor = random.below(actors as u64) as usize;
        match tokens.ready(actor) {
            Ready::Yes(fire) => {
                works.fire(tokens, actor, fire, &mut { u64::MAX }).expect("no value fails");
                // The sink has no queue: it takes its value immediately.
                if actor != parts.sink && tokens.counts[from_sink] == 1 {
                    values.push(out.borrow().expect("a value was given"));
                    let Ready::Yes(fire) = tokens.ready(parts.sink) else { unreachable!("it has its value") };
                    tokens.fire(parts.sink, fire);
                }
                idle.fill(false);
            }
            Ready::Ended if !tokens.ended[actor] => {
                tokens.ended[actor] = true;
                idle.fill(false);
            }
            Ready::Ended | Ready::Input(_) | Ready::Room(_) => idle[actor] = true,
        }
    }
    let is_full = !tokens.ended[parts.sink];
    let is_buffer = |edge: usize| parts.net.edges[edge].elastic.is_some();
    assert!(!is_full || (0..bounds.len()).any(|edge| is_buffer(edge) && tokens.is_full(edge)), "only buffers fill");
    let beyond = tokens.peaks.iter().zip(&bounds).map(|(peak, bound)| peak.saturating_sub(*bound)).sum();
    Outcome { values, is_full, beyond }
}

#[test]
fn values_depend_neither_on_the_order_of_firing_nor_on_the_room_in_queues() {
    let first = seed().wrapping_mul(1_000_000_097);
    let (mut compared, mut full, mut beyond) = (0, 0, 0);
    for seed in (0..2500 * stress()).map(|seed| first.wrapping_add(seed)) {
        let mut random = Random::new(seed ^ 0x5eed);
        let graph = Draw::draw(seed, true, true);
        let (values, room) = (random.below(60), [Some(1 + random.below(5)), Some(1000), None]);
        let room = room[random.below(3) as usize];
        let Ok(running) = program(&graph, |_| values, |_| room).0.run() else { continue };
        let expected = by_lists(&graph, |_| values);
        let found = run_in_any_order(running, &mut random);
        if found.is_full {
            assert!(expected.starts_with(&found.values), "seed {seed}: {values} values in {graph:#?}");
            full += 1;
        } else {
            assert_eq!(found.values, expected, "seed {seed}: {values} values in {graph:#?}");
            compared += 1;
        }
        beyond += u64::from(found.beyond > 0);
    }
    assert!(compared > 300 && full > 3 && beyond > 50, "{compared} {full} {beyond}");
}
