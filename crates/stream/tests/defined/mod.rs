//! Programs for random graphs, and the values that they must produce by definition.

use std::cell::Cell;
use std::rc::Rc;

use millstream_stream::clock::Pass;
use millstream_stream::graph::{Graph, NodeId, Operator};
use millstream_stream::{Program, Stream};

/// Returns the values of a source, in order.
fn source(node: NodeId, values: u64) -> impl Iterator<Item = u64> {
    (0..values).map(move |n| n * 31 + node as u64)
}

/// Returns the decision of a filter.
fn decides(node: NodeId, value: u64) -> bool {
    (value ^ node as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 != 0
}

fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(7) ^ b).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Returns the program of a graph, and a counter of the values pulled from its first source. `values` is the number of values of
/// each source, and `room` is the size of each buffer; a buffer without a size is a spill.
pub(crate) fn program(
    graph: &Graph,
    values: impl Fn(NodeId) -> u64,
    room: impl Fn(NodeId) -> Option<u64>,
) -> (Stream<u64>, Rc<Cell<u64>>) {
    let program = Program::new();
    let pulled = Rc::new(Cell::new(0));
    let mut streams: Vec<Stream<u64>> = Vec::new();
    for (id, node) in graph.nodes().iter().enumerate() {
        let input = |port: usize| &streams[node.inputs[port]];
        let stream = match &node.operator {
            Operator::Source => {
                let count = Rc::clone(&pulled);
                let counts = id == 0;
                let values = source(id, values(id)).inspect(move |_| count.set(count.get() + u64::from(counts)));
                program.iter("source", values).share()
            }
            Operator::Pass(Pass::Data) => input(0).filter(move |value| decides(id, *value)),
            Operator::Pass(Pass::Every { first, step }) => input(0).every_from(*step, *first),
            Operator::Pass(pass) => input(0).keep(&pass.to_string()).unwrap(),
            Operator::Repeat(copies) => input(0).repeat(*copies),
            Operator::Prefix(count) => input(0).prefix((0..*count).collect()),
            Operator::Merge(turns) => Stream::merge_by(&[input(0).clone(), input(1).clone()], turns),
            Operator::Zip => input(0).zip_with(input(1), |a, b| mix(*a, *b)),
            Operator::Buffer(_) => match room(id) {
                Some(room) => input(0).buffer(room),
                None => input(0).spill(std::env::temp_dir()),
            },
            Operator::Reduce => input(0).reduce(0, |sum, value| *sum = mix(*sum, *value)),
            Operator::Sink => input(0).clone(),
            other => unreachable!("{other:?} is not drawn"),
        };
        streams.push(stream);
    }
    (streams.pop().unwrap(), pulled)
}

/// Returns the values of the sink, computed with lists: each operator maps whole streams to whole streams.
pub(crate) fn by_lists(graph: &Graph, values: impl Fn(NodeId) -> u64) -> Vec<u64> {
    let mut lists: Vec<Vec<u64>> = Vec::new();
    for (id, node) in graph.nodes().iter().enumerate() {
        let input = |port: usize| lists[node.inputs[port]].iter().copied();
        let list: Vec<u64> = match &node.operator {
            Operator::Source => source(id, values(id)).collect(),
            Operator::Pass(Pass::Data) => input(0).filter(|value| decides(id, *value)).collect(),
            Operator::Pass(Pass::Every { first, step }) => {
                input(0).skip(*first as usize).step_by(*step as usize).collect()
            }
            Operator::Pass(Pass::Word { prefix, cycle }) => {
                let letters = prefix.iter().chain(cycle.iter().cycle());
                input(0).zip(letters).filter(|(_, letter)| **letter).map(|(value, _)| value).collect()
            }
            Operator::Repeat(copies) => input(0).flat_map(|value| (0..*copies).map(move |_| value)).collect(),
            Operator::Prefix(count) => (0..*count).chain(input(0)).collect(),
            Operator::Merge(turns) => {
                let mut inputs = [input(0), input(1)];
                turns.iter().cycle().map_while(|turn| inputs[*turn].next()).collect()
            }
            Operator::Zip => input(0).zip(input(1)).map(|(a, b)| mix(a, b)).collect(),
            Operator::Reduce => vec![input(0).fold(0, mix)],
            _ => input(0).collect(),
        };
        lists.push(list);
    }
    lists.pop().unwrap()
}
