//! Finds the capacities of each block, or refuses it.

use std::cell::Cell;
use std::sync::Arc;

use crate::clock::Rate;
use crate::graph::Graph;
use crate::net::{EdgeId, Kind, Net, View};

use super::CheckError;
use super::balance::{Unbalanced, factor, in_whole_numbers, rates};
use super::capacity::{Block, NoCapacity};
use super::cycle::Cycle;
use super::diagram::Diagram;
use super::refusal::Refusal;

/// Returns the capacity of each edge.
pub(super) fn capacities(graph: &Graph, net: &Net) -> Result<Vec<u64>, CheckError> {
    let diagram = Diagram::of(net);
    let decide = Decide { graph, net, diagram: &diagram };
    if let Some(cycle) = decide.reduces() {
        return Err(CheckError::Refused(Box::new(Refusal::of(graph, net, &cycle))));
    }
    let mut refused: Option<Cycle> = None;
    let mut caps = vec![1; net.edges.len()];
    for block in diagram.blocks().iter().filter(|block| block.len() > 1) {
        match decide.block(block) {
            Ok(found) => found.into_iter().for_each(|(edge, cap)| caps[edge] = cap),
            Err(Refused::Cycle(cycle)) => {
                if refused.as_ref().is_none_or(|other| cycle.join < other.join) {
                    refused = Some(cycle);
                }
            }
            Err(Refused::Error(error)) => return Err(error),
        }
    }
    match refused {
        Some(cycle) => Err(CheckError::Refused(Box::new(Refusal::of(graph, net, &cycle)))),
        None => Ok(caps),
    }
}

enum Refused {
    Cycle(Cycle),
    Error(CheckError),
}

struct Decide<'a> {
    graph: &'a Graph,
    net: &'a Net,
    diagram: &'a Diagram,
}

impl Decide<'_> {
    /// Finds a reduce whose input can end only after its own output is taken, and returns a cycle through it.
    fn reduces(&self) -> Option<Cycle> {
        // A step against an edge's direction is a wait for room. In a buffer or a spill no actor waits for room, so such a step
        // is not allowed.
        let blocks = |line: usize, is_forward: bool| {
            let edge = self.diagram.lines[line].edge;
            is_forward || edge.is_none_or(|edge| self.net.edges[edge].elastic.is_none())
        };
        let walks = self
            .diagram
            .reduces
            .iter()
            .filter_map(|[input, output]| self.diagram.walk(*output, *input, blocks, &self.diagram.reduces));
        walks.map(|walk| Cycle::of(self.net, self.diagram, &walk)).min_by_key(|cycle| cycle.join)
    }

    /// Returns the capacities of a block that contains cycles.
    fn block(&self, lines: &[usize]) -> Result<Vec<(EdgeId, u64)>, Refused> {
        let refusal = match self.periodic(lines, lines) {
            Err(Refused::Cycle(cycle)) => cycle,
            other => return other,
        };
        let firm: Vec<usize> = lines.iter().copied().filter(|line| !self.is_elastic(*line)).collect();
        if firm.len() == lines.len() || firm.is_empty() {
            return Err(Refused::Cycle(refusal));
        }
        if firm.iter().all(|line| self.diagram.lines[*line].edge.is_none()) {
            // The data decide which path lags. Each path has a buffer, so the block is accepted; a run fails only if a buffer is
            // full.
            return Ok(Vec::new());
        }
        if self.is_straight(lines, &firm) {
            // The firm lines count the values of one decision, so no cycle of firm lines contains a link to that decision.
            let edges: Vec<usize> = firm.into_iter().filter(|line| self.diagram.lines[*line].edge.is_some()).collect();
            return self.periodic(&edges, &edges);
        }
        match self.periodic(lines, &firm) {
            Err(Refused::Cycle(_)) => Err(Refused::Cycle(refusal)),
            other => other,
        }
    }

    /// Returns the capacities of the `firm` lines of a block whose clocks are periodic.
    fn periodic(&self, lines: &[usize], firm: &[usize]) -> Result<Vec<(EdgeId, u64)>, Refused> {
        if let Some(link) = lines.iter().find(|line| self.diagram.lines[**line].edge.is_none()) {
            let [from, to] = self.diagram.lines[*link].ends;
            let around = |line: usize, _| line != *link && lines.contains(&line);
            let mut walk = self.diagram.walk(to, from, around, &[]).expect("a link of a block lies on a cycle");
            walk.push((*link, true));
            return Err(Refused::Cycle(Cycle::of(self.net, self.diagram, &walk)));
        }
        let rates = rates(self.net, self.diagram, firm).map_err(|unbalanced| match unbalanced {
            Unbalanced::Cycle(cycle) => Refused::Cycle(cycle),
            Unbalanced::TooLarge(edge) => Refused::Error(self.too_large(edge)),
        })?;
        let edge = |line: &usize| self.diagram.lines[*line].edge.expect("links were refused");
        for line in lines.iter().filter(|line| !firm.contains(line)) {
            self.keeps_up(*line, edge(line), &rates, lines)?;
        }
        let grows: Vec<usize> = lines.iter().copied().filter(|line| !firm.contains(line)).collect();
        let edges: Vec<EdgeId> = firm.iter().chain(&grows).map(edge).collect();
        let base = |actor: usize| {
            let given = edges.iter().find(|edge| self.net.edges[**edge].producer == actor);
            given.and_then(|edge| self.net.edges[*edge].base)
        };
        let view = View::block(self.net, &edges, base);
        let (targets, rates) = self.targets(lines, &grows, &rates);
        let join = self.net.actors[targets.iter().copied().max().expect("a block ends somewhere")].node;
        let too_long =
            || Refused::Error(CheckError::PeriodTooLong { join, label: self.graph.nodes()[join].label.clone() });
        let times = in_whole_numbers(&rates).ok_or_else(too_long)?;
        let bytes = edges.iter().map(|edge| self.graph.nodes()[self.net.last_node(*edge)].value_bytes);
        let block = Block {
            firm: firm.len(),
            bytes: bytes.collect(),
            targets: targets.into_iter().map(|actor| view.actor(actor)).zip(times).collect(),
            view: Arc::new(view),
            firings: Cell::new(0),
        };
        let found = block.capacities().map_err(|failed| match failed {
            NoCapacity::TooLong => too_long(),
            NoCapacity::Starved => unreachable!("a balanced block runs with queues without end"),
        })?;
        Ok(edges.into_iter().zip(found).collect())
    }

    /// Returns the actors from which a run of the block must demand values, with their rates. These are the actors that feed no
    /// other actor of the block, and the actors that feed a queue that may grow. Actors that feed such a queue must be demanded
    /// themselves, because demand from the queue's reader alone would never make the queue grow.
    fn targets(&self, lines: &[usize], grows: &[usize], rates: &[Option<Rate>]) -> (Vec<usize>, Vec<Rate>) {
        let edge = |line: usize| self.diagram.lines[line].edge.map(|edge| &self.net.edges[edge]);
        let mut targets: Vec<(usize, Rate)> = Vec::new();
        for line in lines.iter().copied() {
            let [from, to] = self.diagram.lines[line].ends;
            let Some(ends) = edge(line) else { continue };
            let gives = lines.iter().filter_map(|other| edge(*other)).any(|other| other.producer == ends.consumer);
            if !gives && let Some(rate) = rates[to] {
                targets.push((ends.consumer, rate));
            }
            if grows.contains(&line)
                && let Some(rate) = rates[from]
            {
                targets.push((ends.producer, rate));
            }
        }
        targets.sort_unstable_by_key(|(actor, _)| *actor);
        targets.dedup_by_key(|(actor, _)| *actor);
        targets.into_iter().unzip()
    }

    /// Checks that an edge with a buffer gets values at least as fast as its reader takes them.
    fn keeps_up(&self, line: usize, edge: EdgeId, rates: &[Option<Rate>], lines: &[usize]) -> Result<(), Refused> {
        let [from, to] = self.diagram.lines[line].ends;
        let keeps_up = rates[from].zip(rates[to]).map(|(from, to)| {
            let given = factor(self.net, edge).and_then(|factor| from.times(factor));
            given.map(|given| !given.is_below(to))
        });
        match keeps_up {
            Some(Some(true)) => Ok(()),
            Some(None) => Err(Refused::Error(self.too_large(edge))),
            // Without this edge, the block is not connected, or the buffer is on the slower path.
            None | Some(Some(false)) => {
                let around = |other: usize, _| other != line && lines.contains(&other);
                let mut walk = self.diagram.walk(to, from, around, &[]).expect("an edge of a block lies on a cycle");
                walk.push((line, true));
                Err(Refused::Cycle(Cycle::of(self.net, self.diagram, &walk)))
            }
        }
    }

    /// Returns whether all edges lead from one actor to one zip, and whether the edges with buffers have a value whenever the
    /// other edges have one.
    fn is_straight(&self, lines: &[usize], firm: &[usize]) -> bool {
        let edges = |lines: &[usize]| -> Vec<EdgeId> {
            lines.iter().filter_map(|line| self.diagram.lines[*line].edge).collect()
        };
        let (all, firm) = (edges(lines), edges(firm));
        let ends = |edge: EdgeId| (self.net.edges[edge].producer, self.net.edges[edge].consumer);
        let Some((producer, consumer)) = all.first().map(|edge| ends(*edge)) else { return false };
        if self.net.actors[consumer].kind != Kind::Zip || all.iter().any(|edge| ends(*edge) != (producer, consumer)) {
            return false;
        }
        let tree = &self.net.actors[producer].tree;
        let thins = |branch: &usize| tree[*branch].pass != crate::clock::Pass::ALL;
        let base = firm.first().and_then(|edge| self.net.edges[*edge].base);
        !firm.is_empty()
            && firm.iter().all(|edge| self.net.edges[*edge].base == base)
            && all.iter().filter(|edge| !firm.contains(edge)).all(|wide| {
                let last = self.net.path(*wide).find(thins);
                firm.iter().all(|edge| last.is_none_or(|last| self.net.path(*edge).any(|branch| branch == last)))
            })
    }

    fn is_elastic(&self, line: usize) -> bool {
        self.diagram.lines[line].edge.is_some_and(|edge| self.net.edges[edge].elastic.is_some())
    }

    fn too_large(&self, edge: EdgeId) -> CheckError {
        let node = self.net.actors[self.net.edges[edge].consumer].node;
        CheckError::RateTooLarge { node, label: self.graph.nodes()[node].label.clone() }
    }
}
