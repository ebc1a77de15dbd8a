//! The pairs "holds *a*, asks for *b*" of a flow, and an order of the resources that respects them.
//!
//! There may be as many pairs as stages times resources, so each stage keeps them as one set of bits: the holdings that
//! a unit may have when it arrives there. The sets are propagated along the edges to a fixed point, in an order that
//! takes one pass in a graph without loops.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::error::HoldAndAsk;
use super::graph::Graph;

/// Every pair "asks for *b* while holding *a*" that is possible in a flow. This is the type of
/// [`Plan::pairs`](crate::plan::Plan::pairs).
///
/// The iterator makes the pairs on demand, because there may be many: if each stage holds its needs to the end of the
/// flow, the number of pairs grows with the square of the number of stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPairs {
    resources: Vec<String>,
    stages: Vec<Asking>,
    /// The possible holdings: a resource, and the stage after which it is released.
    holdings: Vec<(u16, u16)>,
}

/// The pairs of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asking {
    name: String,
    /// The resources that the stage asks for.
    asks: Vec<u16>,
    /// The holdings that a unit may have when it enters the stage's queue, by index in `holdings`.
    held: Bits,
}

/// A pair, with the stage that asks.
#[derive(Debug, Clone, Copy)]
struct Pair {
    holds: u16,
    asks: u16,
    stage: usize,
}

impl PlanPairs {
    /// The pairs, by the asking stage.
    pub fn iter(&self) -> impl Iterator<Item = HoldAndAsk> {
        self.pairs().map(|pair| self.describe(pair))
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs().next().is_none()
    }

    pub(super) fn of(graph: &Graph) -> Self {
        let (holdings, held) = Flow::of(graph).settle();
        let stages = graph.stages.iter().zip(held).map(|(node, held)| {
            let mut asks: Vec<u16> = Vec::with_capacity(node.asks.len());
            for asked in &node.asks {
                if !asks.contains(&asked.resource) {
                    asks.push(asked.resource);
                }
            }
            Asking { name: node.name.clone(), asks, held }
        });
        PlanPairs { stages: stages.collect(), resources: graph.resources.clone(), holdings }
    }

    /// The resources that a unit may hold when it enters the stage's queue.
    fn held_in(&self, stage: &Asking) -> Vec<u16> {
        let mut seen = Bits::new(self.resources.len());
        let held = stage.held.ones().map(|holding| self.holdings[holding].0);
        held.filter(|&resource| seen.set(usize::from(resource))).collect()
    }

    fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.stages.iter().enumerate().filter(|(_, stage)| !stage.asks.is_empty()).flat_map(|(s, stage)| {
            let held = self.held_in(stage);
            held.into_iter().flat_map(move |holds| stage.asks.iter().map(move |&asks| Pair { holds, asks, stage: s }))
        })
    }

    fn describe(&self, Pair { holds, asks, stage }: Pair) -> HoldAndAsk {
        HoldAndAsk {
            holds: self.resources[usize::from(holds)].clone(),
            asks: self.resources[usize::from(asks)].clone(),
            stage: self.stages[stage].name.clone(),
        }
    }

    /// The rank of each resource in an order that puts the held resource of each pair before the requested resource,
    /// and otherwise keeps the order of declaration. If a cycle makes such an order impossible, returns the cycle.
    pub(super) fn ranks(&self) -> Result<Vec<u16>, Vec<HoldAndAsk>> {
        let n = self.resources.len();
        let mut after = vec![Bits::new(n); n];
        let mut before = vec![0_usize; n];
        for Pair { holds, asks, .. } in self.pairs() {
            before[usize::from(asks)] += usize::from(after[usize::from(holds)].set(usize::from(asks)));
        }
        let mut ranks = vec![u16::MAX; n];
        let mut free: BinaryHeap<_> = (0..n).filter(|&r| before[r] == 0).map(Reverse).collect();
        let mut rank = 0;
        while let Some(Reverse(resource)) = free.pop() {
            ranks[resource] = rank;
            rank += 1;
            for next in after[resource].ones() {
                before[next] -= 1;
                if before[next] == 0 {
                    free.push(Reverse(next));
                }
            }
        }
        if usize::from(rank) == n { Ok(ranks) } else { Err(self.cycle(&ranks)) }
    }

    /// A cycle among the resources without a rank. Each of these resources has a holder that asks for another of these
    /// resources.
    fn cycle(&self, ranks: &[u16]) -> Vec<HoldAndAsk> {
        let unranked = |resource: u16| ranks[usize::from(resource)] == u16::MAX;
        let mut asked_by: Vec<Option<Pair>> = vec![None; self.resources.len()];
        let mut start = None;
        for pair in self.pairs().filter(|pair| unranked(pair.holds)) {
            asked_by[usize::from(pair.asks)].get_or_insert(pair);
            start = start.or(Some(pair.asks).filter(|&asks| unranked(asks)));
        }
        let mut path: Vec<Pair> = Vec::new();
        let mut at = start.unwrap_or(0);
        while let Some(step) = asked_by[usize::from(at)] {
            if let Some(begin) = path.iter().position(|pair| pair.asks == step.asks) {
                path.drain(..begin);
                break;
            }
            path.push(step);
            at = step.holds;
        }
        path.into_iter().rev().map(|pair| self.describe(pair)).collect()
    }
}

impl<'a> IntoIterator for &'a PlanPairs {
    type Item = HoldAndAsk;
    type IntoIter = Box<dyn Iterator<Item = HoldAndAsk> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// The holdings that units may have as they flow through the graph.
struct Flow<'a> {
    graph: &'a Graph,
    /// The possible holdings: a resource, and the stage after which it is released.
    holdings: Vec<(u16, u16)>,
    stages: Vec<Passing>,
}

/// The effect of a stage on a unit's holdings, by index in `holdings`.
#[derive(Default, Clone)]
struct Passing {
    takes: Vec<usize>,
    gives_back: Vec<usize>,
    /// The slots in the queues of the next stages. A unit keeps only a slot of the stage to which it goes.
    places: Vec<usize>,
}

impl<'a> Flow<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut flow = Flow { graph, holdings: Vec::new(), stages: vec![Passing::default(); graph.stages.len()] };
        let mut known = HashMap::new();
        if let Some(place) = graph.entry_place {
            flow.holding(&mut known, place, graph.entry);
        }
        for (s, node) in graph.stages.iter().enumerate() {
            for asked in &node.asks {
                let Some(until) = asked.until else { continue };
                let holding = flow.holding(&mut known, asked.resource, until);
                flow.stages[s].takes.push(holding);
                if asked.place {
                    flow.stages[s].places.push(holding);
                }
            }
        }
        flow
    }

    fn holding(&mut self, known: &mut HashMap<(u16, u16), usize>, resource: u16, until: u16) -> usize {
        *known.entry((resource, until)).or_insert_with(|| {
            let holding = self.holdings.len();
            self.holdings.push((resource, until));
            self.stages[usize::from(until)].gives_back.push(holding);
            holding
        })
    }

    /// The holdings that a unit may have when it enters each stage's queue.
    fn settle(self) -> (Vec<(u16, u16)>, Vec<Bits>) {
        let mut held = vec![Bits::new(self.holdings.len()); self.stages.len()];
        if self.graph.entry_place.is_some() {
            // Admission gives every unit a slot in the entry's queue, which is the first holding.
            held[usize::from(self.graph.entry)].set(0);
        }
        let order = self.graph.forwards();
        loop {
            let mut changed = false;
            for &s in &order {
                let passing = &self.stages[usize::from(s)];
                let mut leaves = held[usize::from(s)].clone();
                for &holding in &passing.takes {
                    leaves.set(holding);
                }
                for &holding in &passing.gives_back {
                    leaves.clear(holding);
                }
                for &next in &self.graph.stages[usize::from(s)].next {
                    let elsewhere = |place: &usize| leaves.has(*place) && self.holdings[*place].1 != next;
                    let elsewhere: Vec<usize> = passing.places.iter().copied().filter(elsewhere).collect();
                    for &place in &elsewhere {
                        leaves.clear(place);
                    }
                    changed |= held[usize::from(next)].add(&leaves);
                    for place in elsewhere {
                        leaves.set(place);
                    }
                }
            }
            if !changed {
                return (self.holdings, held);
            }
        }
    }
}

impl Graph {
    /// The stages, each before its successors except in loops.
    fn forwards(&self) -> Vec<u16> {
        let mut seen = vec![false; self.stages.len()];
        seen[usize::from(self.entry)] = true;
        let mut path = vec![(self.entry, 0)];
        let mut order = Vec::with_capacity(self.stages.len());
        while let Some((stage, edge)) = path.last_mut() {
            match self.stages[usize::from(*stage)].next.get(*edge) {
                Some(&next) => {
                    *edge += 1;
                    if !std::mem::replace(&mut seen[usize::from(next)], true) {
                        path.push((next, 0));
                    }
                }
                None => {
                    order.push(*stage);
                    path.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(most: usize) -> Self {
        Bits(vec![0; most.div_ceil(64)])
    }

    fn has(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 == 1
    }

    /// Adds a number. Returns whether it was new.
    fn set(&mut self, n: usize) -> bool {
        let is_new = !self.has(n);
        self.0[n / 64] |= 1 << (n % 64);
        is_new
    }

    fn clear(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }

    /// Adds all numbers of `others`. Returns whether any was new.
    fn add(&mut self, others: &Bits) -> bool {
        let mut is_new = false;
        for (word, &other) in self.0.iter_mut().zip(&others.0) {
            is_new |= other & !*word != 0;
            *word |= other;
        }
        is_new
    }

    /// The numbers, in ascending order.
    fn ones(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
                .take_while(|&word| word != 0)
                .map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }
}
