//! The balance of a block: the rate at which each actor fires, relative to the other actors.

use crate::clock::Rate;
use crate::net::{EdgeId, Kind, Net};

use super::cycle::Cycle;
use super::diagram::Diagram;

/// The reason why a block has no rates.
pub(super) enum Unbalanced {
    /// The rates around this cycle contradict each other.
    Cycle(Cycle),
    /// A numerator or a denominator of the rate at this edge does not fit into 128 bits.
    TooLarge(EdgeId),
}

/// Returns the number of the consumer's firings for each firing of the producer. If a data decision is the edge's clock, returns
/// the number for each value that passes the decision. `None` means that the rate does not fit into 128 bits.
pub(super) fn factor(net: &Net, edge: EdgeId) -> Option<Rate> {
    thinning(net, edge, net.edges[edge].base)?.times(firings_for_one(net, edge)?)
}

/// Of the values that pass the branch `below`, returns the share that reaches the edge. Without a branch, returns the share of
/// the values that leave the actor. Data decisions count as if all values passed.
pub(super) fn thinning(net: &Net, edge: EdgeId, below: Option<usize>) -> Option<Rate> {
    let tree = &net.actors[net.edges[edge].producer].tree;
    let passes = net.path(edge).take_while(|branch| Some(*branch) != below);
    passes.filter_map(|branch| tree[branch].pass.rate()).try_fold(Rate::ONE, Rate::times)
}

/// Returns the number of the consumer's firings for each value that it takes from the edge.
pub(super) fn firings_for_one(net: &Net, edge: EdgeId) -> Option<Rate> {
    let consumer = &net.actors[net.edges[edge].consumer];
    match &consumer.kind {
        Kind::Merge(turns) => {
            let own = turns.iter().filter(|turn| **turn == net.edges[edge].port).count();
            Rate::new(turns.len() as u128, own as u128)
        }
        Kind::Repeat(copies) => Rate::new((*copies).into(), 1),
        _ => Some(Rate::ONE),
    }
}

/// Returns the rate of each point that these lines connect. The first point has the rate 1. All lines must be edges.
pub(super) fn rates(net: &Net, diagram: &Diagram, lines: &[usize]) -> Result<Vec<Option<Rate>>, Unbalanced> {
    let mut rates = vec![None; diagram.points()];
    let mut at = vec![Vec::new(); diagram.points()];
    for line in lines {
        diagram.lines[*line].ends.iter().for_each(|end| at[*end].push(*line));
    }
    let Some(first) = lines.first() else { return Ok(rates) };
    let root = diagram.lines[*first].ends[0];
    rates[root] = Some(Rate::ONE);
    let mut known = vec![root];
    // The lines through which rates became known. They form a tree, so a line that contradicts the rates closes a cycle with
    // them.
    let mut followed = vec![false; diagram.lines.len()];
    while let Some(point) = known.pop() {
        for line in &at[point] {
            let [from, to] = diagram.lines[*line].ends;
            let edge = diagram.lines[*line].edge.expect("these lines are edges");
            let factor = factor(net, edge).ok_or(Unbalanced::TooLarge(edge))?;
            let here = rates[point].expect("it is known");
            let (other, there) = if point == from { (to, here.times(factor)) } else { (from, here.over(factor)) };
            let there = there.ok_or(Unbalanced::TooLarge(edge))?;
            match rates[other] {
                None => {
                    rates[other] = Some(there);
                    followed[*line] = true;
                    known.push(other);
                }
                Some(rate) if rate == there => {}
                Some(_) => {
                    let mut walk = diagram.walk(to, from, |line, _| followed[line], &[]).expect("both ends are known");
                    walk.push((*line, true));
                    return Err(Unbalanced::Cycle(Cycle::of(net, diagram, &walk)));
                }
            }
        }
    }
    Ok(rates)
}

/// Returns the smallest whole numbers in the proportions of these rates; `None` if one does not fit into 64 bits.
pub(super) fn in_whole_numbers(rates: &[Rate]) -> Option<Vec<u64>> {
    // Scale all rates so that the first is 1. Then, for each rate, multiply all numbers by the factor that makes this rate whole.
    let first = *rates.first()?;
    let relative: Vec<Rate> = rates.iter().map(|rate| rate.over(first)).collect::<Option<_>>()?;
    let mut scale = Rate::ONE;
    for rate in &relative {
        let left = rate.times(scale)?;
        scale = scale.times(Rate::new(left.of(), 1)?)?;
    }
    relative.iter().map(|rate| u64::try_from(rate.times(scale)?.values()).ok()).collect()
}
