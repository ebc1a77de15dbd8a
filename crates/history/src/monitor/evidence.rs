//! Evidence: a few operations of one element that suffice to show the violation.

use super::shrink::shrink;
use super::span::{Span, Spans};
use super::switch::{Act, Operation, sweep};

/// Operations before a quiet moment are tentatively left out. At most this many quiet moments are tried, the latest
/// ones.
const MAX_CUTS: usize = 32;

/// Positions of operations that have no legal order: `failing`, and the operations on its element that were called
/// before `failing` returned, without superfluous ones.
///
/// A moment is *quiet* if no change is open. Every change called before it has then taken effect, so the element has
/// the same state in every order: on if more changes to on than to off were called before, otherwise off. The
/// operations between two quiet moments with the same state can be left out. Every observation can be left out, too.
///
/// Pending changes of unknown elements are always part of the evidence. If they could make this element legal, but
/// other elements need them too, the evidence also contains the operations of those elements.
pub(crate) fn evidence(operations: &[Operation], spans: &Spans, failing: u32) -> Vec<u32> {
    let over = spans.spans[failing as usize].ret;
    let before = (0..operations.len() as u32).filter(|&p| spans.spans[p as usize].call < over);
    let (unknown, known): (Vec<u32>, Vec<u32>) = before.partition(|&p| operations[p as usize].act == Act::SomeOn);
    let element = |p: u32| operations[p as usize].element;
    let fails = |positions: &[u32]| {
        let (operations, spans, elements) = alone(operations, spans, &[positions, &unknown].concat());
        sweep(&operations, &spans, elements).is_err()
    };

    let mut positions: Vec<u32> = known.iter().copied().filter(|&p| element(p) == element(failing)).collect();
    if fails(&positions) {
        let shorter = without_middle(operations, spans, &positions, failing);
        if let Some(shorter) = shorter.into_iter().find(|shorter| fails(shorter)) {
            positions = shorter;
        }
    } else {
        let mut elements: Vec<u32> = known.iter().map(|&p| element(p)).collect();
        elements.sort_unstable();
        elements.dedup();
        let of = |elements: &[u32]| -> Vec<u32> {
            known.iter().copied().filter(|&p| elements.binary_search(&element(p)).is_ok()).collect()
        };
        positions = of(&shrink(elements, |elements| fails(&of(elements))));
    }
    let (seen, changes): (Vec<u32>, Vec<u32>) =
        positions.into_iter().partition(|&p| matches!(operations[p as usize].act, Act::See(_)));
    let seen = shrink(seen, |seen| fails(&[seen, &changes].concat()));
    [seen, changes, unknown].concat()
}

/// Subsets of `positions` without the operations between two quiet moments, the shortest first.
fn without_middle(operations: &[Operation], spans: &Spans, positions: &[u32], failing: u32) -> Vec<Vec<u32>> {
    let span = |p: u32| spans.spans[p as usize];
    let is_change = |p: u32| matches!(operations[p as usize].act, Act::Change(_));
    // A quiet moment is the call of a change, or of `failing`, at which no earlier change is open; it is stored with
    // the number of earlier changes to on, minus those to off.
    let mut quiet: Vec<(u32, i32)> = Vec::new();
    let mut open_until = 0;
    let mut on = 0;
    for &p in positions.iter().filter(|&&p| is_change(p)) {
        if open_until < span(p).call {
            quiet.push((span(p).call, on));
        }
        open_until = open_until.max(span(p).ret);
        on += if operations[p as usize].act == Act::Change(true) { 1 } else { -1 };
    }
    if open_until < span(failing).call {
        quiet.push((span(failing).call, on));
    }
    let latest = quiet.iter().rev().filter(|&&(moment, _)| moment <= span(failing).call).take(MAX_CUTS);
    let without = |&(to, on): &(u32, i32)| {
        let &(from, _) = quiet.iter().find(|&&(_, other)| other == on)?;
        let stays = |&&p: &&u32| {
            let Span { call, ret } = span(p);
            ret < from || to <= call
        };
        Some(positions.iter().filter(stays).copied().collect())
    };
    let mut shorter: Vec<Vec<u32>> = latest.filter_map(without).collect();
    shorter.sort_by_key(Vec::len);
    shorter
}

/// The operations at these positions as a separate history, with their spans and the number of their elements.
fn alone(operations: &[Operation], spans: &Spans, positions: &[u32]) -> (Vec<Operation>, Spans, u32) {
    let all: Vec<Span> = positions.iter().map(|&p| spans.spans[p as usize]).collect();
    let mut ranks: Vec<u32> = all.iter().flat_map(|span| [span.call, span.ret]).filter(|&r| r < spans.end).collect();
    ranks.sort_unstable();
    let rank = |rank: u32| ranks.partition_point(|&other| other < rank) as u32;
    let all = all.into_iter().map(|span| Span { call: rank(span.call), ret: rank(span.ret) }).collect();
    let mut elements: Vec<u32> = positions.iter().map(|&p| operations[p as usize].element).collect();
    elements.sort_unstable();
    elements.dedup();
    let operation = |&p: &u32| {
        let Operation { element, act } = operations[p as usize];
        Operation { element: elements.partition_point(|&other| other < element) as u32, act }
    };
    let end = ranks.len() as u32;
    (positions.iter().map(operation).collect(), Spans { spans: all, end }, elements.len() as u32)
}
