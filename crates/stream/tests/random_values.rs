//! Compares the values of random programs with a definition by lists. Compares the predictions in refusals with runs that have
//! buffers.

mod defined;
mod drawn;

use millstream_stream::check::{Bound, Cause, CheckError, Guarantee, check};
use millstream_stream::graph::{Graph, NodeId, Operator};
use millstream_stream::{Part, RunError};
use millstream_verify_random::{seed, stress};

use defined::{by_lists, program};
use drawn::Draw;

#[test]
fn values_are_those_of_the_definition_whatever_the_buffers() {
    let first = seed().wrapping_mul(1_000_000_033);
    let mut compared = 0;
    for seed in (0..1000 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, true, true);
        match check(&graph) {
            Ok(_) => {}
            Err(CheckError::Refused(_)) => continue,
            Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
        }
        for (values, buffer) in [(0, Some(9)), (1, Some(1000)), (37, Some(9)), (37, Some(1000)), (37, None)] {
            let expected = by_lists(&graph, |_| values);
            let mut found = Vec::new();
            let mut running = program(&graph, |_| values, |_| buffer).0.run().unwrap();
            loop {
                // This run pauses often, which must not change its values.
                match running.next_within(&mut (1 + seed % 5)) {
                    Ok(Part::Value(value)) => found.push(*value),
                    Ok(Part::Pause) => {}
                    Ok(Part::End) => break,
                    // All values before the failure are correct.
                    Err(RunError::BufferFull { .. }) => break,
                    Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
                }
            }
            let (peaks, bounds) = (running.report().peaks, running.proof().edges());
            let fits = |(peak, bound): (&u64, &Bound)| *peak <= bound.values || bound.guarantee == Guarantee::Spill;
            assert!(peaks.iter().zip(bounds).all(fits), "seed {seed}: {peaks:?}");
            if buffer != Some(9) {
                assert_eq!(found, expected, "seed {seed}: {values} values in {graph:#?}");
                compared += 1;
            } else {
                assert!(expected.starts_with(&found), "seed {seed}: {values} values in {graph:#?}");
            }
        }
    }
    assert!(compared > 400, "{compared}");
}

/// Returns the graph with a buffer on one input of a node.
fn buffered(graph: &Graph, join: NodeId, port: usize, values: u64) -> Graph {
    let mut with = Graph::new();
    let moved = |node: NodeId| if node >= join { node + 1 } else { node };
    for (id, node) in graph.nodes().iter().enumerate() {
        let mut inputs: Vec<NodeId> = node.inputs.iter().map(|input| moved(*input)).collect();
        if id == join {
            inputs[port] = with.add(Operator::Buffer(values), &[inputs[port]], "buffer");
        }
        with.add(node.operator.clone(), &inputs, "node");
    }
    with
}

#[test]
fn a_refused_program_with_a_buffer_fails_at_the_value_that_the_refusal_names() {
    let first = seed().wrapping_mul(1_000_000_087);
    let mut replayed = 0;
    for seed in (0..600 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, false, false);
        let Err(CheckError::Refused(refusal)) = check(&graph) else { continue };
        assert_eq!(refusal.cause, Cause::Rates);
        // The test counts only the values of the first source, so it needs a fork that is this source.
        if refusal.fork != 0 {
            continue;
        }
        let port = refusal.paths[refusal.growing].port;
        for buffer in [20, 21, 100] {
            let with = buffered(&graph, refusal.join, port, buffer);
            let Ok(proof) = check(&with) else { break }; // There is another refusal behind this one.
            let firm = proof.edges().iter().filter(|bound| bound.guarantee == Guarantee::Proven);
            let room: u128 = firm.map(|bound| u128::from(bound.values)).sum();
            let n = refusal.overflows_at(buffer).unwrap();
            let (stream, pulled) = program(&with, |_| u64::MAX >> 8, |_| Some(buffer));
            let full = stream.run().unwrap().values().find_map(Result::err);
            // Queues elsewhere in the graph also hold values.
            assert!(matches!(full, Some(RunError::BufferFull { .. })), "seed {seed}: {full:?} in {graph:#?}");
            let pulled = u128::from(pulled.get());
            let slack = 12 + 4 * room;
            assert!(
                pulled < n + slack && pulled + slack > n,
                "seed {seed}: {pulled} of {n} for {buffer} in {graph:#?}"
            );
            replayed += 1;
        }
    }
    assert!(replayed > 50, "{replayed}");
}

/// Returns the graph with its result joined to a value that comes at the end of one of its streams, so that all values of the
/// result wait.
fn with_an_end(graph: &Graph, of: NodeId) -> Graph {
    let mut with = Graph::new();
    for node in &graph.nodes()[..graph.nodes().len() - 1] {
        with.add(node.operator.clone(), &node.inputs, "node");
    }
    let result = graph.nodes().last().expect("a sink").inputs[0];
    let (end, waits) = (with.add(Operator::Reduce, &[of], "end"), with.add(Operator::Buffer(9), &[result], "buffer"));
    let zip = with.add(Operator::Zip, &[end, waits], "zip");
    with.add(Operator::Sink, &[zip], "out");
    with
}

/// Returns the buffer node that sets the size of a queue.
fn buffer_of(graph: &Graph, through: NodeId) -> NodeId {
    let mut above = std::iter::successors(Some(through), |node| graph.nodes()[*node].inputs.first().copied());
    above.find(|node| matches!(graph.nodes()[*node].operator, Operator::Buffer(_))).expect("a buffer")
}

#[test]
fn a_buffer_holds_as_many_values_as_it_says_wherever_the_inputs_end() {
    let first = seed().wrapping_mul(1_000_000_093);
    let (mut held, mut full) = (0, 0);
    for seed in (0..300 * stress()).map(|seed| first.wrapping_add(seed)) {
        let drawn = Draw::draw(seed, true, true);
        let of = seed as usize % (drawn.nodes().len() - 1);
        let graph = if seed % 3 == 0 { drawn } else { with_an_end(&drawn, of) };
        let Ok(proof) = check(&graph) else { continue };
        let values = |source: NodeId| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15 << (source % 7)) >> 58;
        let run = |room: &dyn Fn(NodeId) -> u64| {
            let mut running = program(&graph, values, |buffer| Some(room(buffer))).0.run().unwrap();
            let mut found = Vec::new();
            let failed = loop {
                match running.next() {
                    Ok(Some(value)) => found.push(*value),
                    Ok(None) => break false,
                    Err(RunError::BufferFull { .. }) => break true,
                    Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
                }
            };
            let (peaks, bounds) = (running.report().peaks, running.proof().edges());
            assert!(peaks.iter().zip(bounds).all(|(peak, bound)| *peak <= bound.values), "seed {seed}: {peaks:?}");
            (found, failed, peaks)
        };
        let expected = by_lists(&graph, values);
        let (found, failed, peaks) = run(&|_| 1 << 20);
        assert!(found == expected && !failed, "seed {seed}: {found:?} in {graph:#?}");
        let mut room = vec![1; graph.nodes().len()];
        for (bound, peak) in proof.edges().iter().zip(peaks) {
            if bound.guarantee == Guarantee::Buffer {
                let room: &mut u64 = &mut room[buffer_of(&graph, bound.through)];
                *room = (*room).max(peak);
            }
        }
        let (found, failed, _) = run(&|buffer| room[buffer]);
        assert!(found == expected && !failed, "seed {seed}: {found:?} with {room:?} in {graph:#?}");
        held += room.iter().sum::<u64>() - room.len() as u64;
        let (found, failed, _) = run(&|buffer| (room[buffer] - 1).max(1));
        assert!(if failed { expected.starts_with(&found) } else { found == expected }, "seed {seed} in {graph:#?}");
        full += u64::from(failed);
    }
    assert!(held > 200 && full > 20, "{held} {full}");
}
