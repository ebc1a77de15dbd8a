//! The checks of a flow's graph, and their results.

use std::collections::VecDeque;

use super::error::{BuildError, NeedsCycle};
use super::graph::{Asked, Graph, Node};
use super::pairs::PlanPairs;

/// The results of the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The rank of each resource in the resource order.
    pub(crate) ranks: Vec<u16>,
    /// The pairs that the order respects.
    pub(crate) pairs: PlanPairs,
    /// Each stage's distance to the exit.
    pub(crate) distance: Vec<usize>,
    /// For each stage, the number of stages that a unit may reach from it.
    pub(crate) leads_to: Vec<usize>,
}

impl Graph {
    pub(crate) fn check(&self) -> Result<Proof, BuildError> {
        let reached = self.reach(self.entry);
        if let Some(stage) = reached.iter().position(|reached| !reached) {
            let entry = self.stages[usize::from(self.entry)].name.clone();
            return Err(BuildError::Unreachable { stage: self.stages[stage].name.clone(), entry });
        }
        let distance = self.distances();
        if let Some(stage) = distance.iter().position(|&d| d == usize::MAX) {
            return Err(BuildError::NeverRetires { stage: self.stages[stage].name.clone() });
        }
        for (s, stage) in self.stages.iter().enumerate() {
            if stage.asks.iter().all(|asked| asked.until.is_none()) {
                continue;
            }
            let reached = self.reach(s as u16);
            for &Asked { resource, until, .. } in &stage.asks {
                if let Some(until) = until.filter(|&until| !reached[usize::from(until)]) {
                    return Err(BuildError::UntilUnreachable {
                        stage: stage.name.clone(),
                        resource: self.resources[usize::from(resource)].clone(),
                        until: self.stages[usize::from(until)].name.clone(),
                    });
                }
            }
        }
        self.check_splits()?;
        self.check_holds_through(|node| node.splits).map_err(|(stage, resource, until, split)| {
            BuildError::HeldThroughSplit { stage, resource, until, split }
        })?;
        self.check_holds_through(|node| node.gathers).map_err(|(stage, resource, until, gather)| {
            BuildError::HeldThroughGather { stage, resource, until, gather }
        })?;
        let pairs = PlanPairs::of(self);
        let ranks = pairs.ranks().map_err(|cycle| BuildError::NeedsCycle(NeedsCycle(cycle)))?;
        let reached = |stage| self.reach(stage).into_iter().filter(|&reached| reached).count();
        let leads_to = (0..self.stages.len() as u16).map(reached).collect();
        Ok(Proof { ranks, pairs, distance, leads_to })
    }

    /// Checks that a unit to be split has no slot in a bounded queue, and asks for none. So its children never wait
    /// for a slot that the unit itself holds.
    fn check_splits(&self) -> Result<(), BuildError> {
        let named = |stage: u16| self.stages[usize::from(stage)].name.clone();
        for (split, node) in (0..).zip(&self.stages).filter(|(_, node)| node.splits) {
            // If a queue is bounded, the previous stages ask for a slot in it.
            let place = |node: &Node| node.asks.iter().filter(|asked| asked.place).find_map(|asked| asked.until);
            if let Some(next) = place(node) {
                return Err(BuildError::QueueAfterSplit { stage: named(split), next: named(next) });
            }
            let bounded = self.stages.iter().flat_map(|node| &node.asks).any(|a| a.place && a.until == Some(split));
            if bounded || (split == self.entry && self.entry_place.is_some()) {
                return Err(BuildError::QueueAtSplit { stage: named(split) });
            }
        }
        Ok(())
    }

    /// Checks that no unit holds a need through a stage in which units wait for others. The error has the names of the
    /// stage that asks, the resource, the stage after which it is released, and the stage in which units wait.
    fn check_holds_through(&self, waits: impl Fn(&Node) -> bool) -> Result<(), (String, String, String, String)> {
        let named = |stage: u16| self.stages[usize::from(stage)].name.clone();
        for (waiting, _) in (0..).zip(&self.stages).filter(|(_, node)| waits(node)) {
            let beyond = self.reach(waiting);
            for (s, stage) in (0..).zip(&self.stages) {
                for &Asked { resource, until, place } in &stage.asks {
                    // A unit releases its slot in the stage's own queue when it begins to wait in that stage.
                    let ends_here = place && until == Some(waiting);
                    let Some(until) = until.filter(|&until| !ends_here && beyond[usize::from(until)]) else { continue };
                    // The stage asks for a slot in the next queue only after the wait.
                    if (s == waiting && place) || !self.reach_before(s, until)[usize::from(waiting)] {
                        continue;
                    }
                    let resource = self.resources[usize::from(resource)].clone();
                    return Err((named(s), resource, named(until), named(waiting)));
                }
            }
        }
        Ok(())
    }

    /// The stages that a unit may visit on its way from `from` to `until`, including both.
    fn reach_before(&self, from: u16, until: u16) -> Vec<bool> {
        let mut reached = vec![false; self.stages.len()];
        let mut open = vec![from];
        while let Some(stage) = open.pop() {
            if !std::mem::replace(&mut reached[usize::from(stage)], true) && (stage != until || stage == from) {
                open.extend(&self.stages[usize::from(stage)].next);
            }
        }
        reached
    }

    /// The stages that a unit in `from` may reach.
    fn reach(&self, from: u16) -> Vec<bool> {
        let mut reached = vec![false; self.stages.len()];
        let mut open = vec![from];
        while let Some(stage) = open.pop() {
            if !std::mem::replace(&mut reached[usize::from(stage)], true) {
                open.extend(&self.stages[usize::from(stage)].next);
            }
        }
        reached
    }

    fn distances(&self) -> Vec<usize> {
        let mut before = vec![Vec::new(); self.stages.len()];
        for (s, node) in self.stages.iter().enumerate() {
            node.next.iter().for_each(|&next| before[usize::from(next)].push(s));
        }
        let mut distance = vec![usize::MAX; self.stages.len()];
        let exits = self.stages.iter().enumerate().filter(|(_, stage)| stage.retires).map(|(s, _)| s);
        let mut open: VecDeque<usize> = exits.collect();
        open.iter().for_each(|&s| distance[s] = 0);
        while let Some(stage) = open.pop_front() {
            for &s in &before[stage] {
                if distance[s] == usize::MAX {
                    distance[s] = distance[stage] + 1;
                    open.push_back(s);
                }
            }
        }
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::graph::Node;

    fn node(name: &str, next: &[u16], retires: bool, asks: &[(u16, Option<u16>)]) -> Node {
        Node {
            name: name.into(),
            next: next.to_vec(),
            retires,
            splits: false,
            gathers: false,
            asks: asks.iter().map(|&(resource, until)| Asked { resource, until, place: false }).collect(),
        }
    }

    fn graph(stages: Vec<Node>) -> Graph {
        Graph { entry: 0, entry_place: None, stages, resources: vec!["a".into(), "b".into(), "c".into()] }
    }

    #[test]
    fn holding_in_one_order_is_accepted_and_ranked() {
        let g = graph(vec![
            node("x", &[1], false, &[(2, Some(1))]),
            node("y", &[2], false, &[(0, Some(2))]),
            node("z", &[], true, &[(1, None)]),
        ]);
        let proof = g.check().unwrap();
        assert!(proof.ranks[2] < proof.ranks[0] && proof.ranks[0] < proof.ranks[1]);
        assert_eq!(proof.distance, [2, 1, 0]);
    }

    #[test]
    fn a_cycle_is_refused_and_named() {
        // The left branch holds `a` and then asks for `b`; the right branch holds `b` and then asks for `a`.
        let g = graph(vec![
            node("x", &[1, 2], false, &[]),
            node("left", &[3], false, &[(0, Some(3))]),
            node("right", &[4], false, &[(1, Some(4))]),
            node("left2", &[], true, &[(1, None)]),
            node("right2", &[], true, &[(0, None)]),
        ]);
        let Err(BuildError::NeedsCycle(cycle)) = g.check() else { panic!("not refused") };
        let text = cycle.to_string();
        assert!(text.contains("`left2` asks for b while holding a"), "{text}");
        assert!(text.contains("`right2` asks for a while holding b"), "{text}");
        assert_eq!(cycle.0.len(), 2);
    }

    #[test]
    fn a_loop_that_asks_for_a_held_resource_is_refused() {
        let g = graph(vec![node("page", &[0, 1], false, &[(0, Some(1))]), node("end", &[], true, &[])]);
        let Err(BuildError::NeedsCycle(cycle)) = g.check() else { panic!("not refused") };
        assert_eq!(cycle.to_string(), "`page` asks for a while holding a");
    }

    #[test]
    fn a_loop_that_releases_its_resource_first_is_accepted() {
        let g = graph(vec![node("page", &[0, 1], false, &[(0, None)]), node("end", &[], true, &[])]);
        assert!(g.check().is_ok());
    }

    /// A graph in which every stage holds its own resource to the end.
    fn holding_to_the_end(stages: u16) -> Graph {
        let last = stages - 1;
        let node = |s: u16| {
            let next: Vec<u16> = (s < last).then_some(s + 1).into_iter().collect();
            node(&s.to_string(), &next, s == last, &[(s, Some(last))])
        };
        let resources = (0..stages).map(|r| r.to_string()).collect();
        Graph { entry: 0, entry_place: None, stages: (0..stages).map(node).collect(), resources }
    }

    #[test]
    fn holding_to_the_end_makes_a_pair_of_every_two_stages() {
        let proof = holding_to_the_end(40).check().unwrap();
        assert_eq!(proof.ranks, (0..40).collect::<Vec<u16>>());
        let mut expected = (0..40).flat_map(|s| (0..s).map(move |held| (held.to_string(), s.to_string())));
        assert!(proof.pairs.iter().map(|pair| (pair.holds, pair.stage)).eq(expected.by_ref()));
    }

    #[test]
    fn a_thousand_stages_that_hold_to_the_end_are_checked_quickly() {
        let graph = holding_to_the_end(1000);
        let began = std::time::Instant::now();
        assert!(graph.check().is_ok());
        // The check takes a few milliseconds with sets of bits. A search for each pair among all others would take
        // seconds.
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_stage_from_which_no_unit_retires_is_refused() {
        let g = graph(vec![node("x", &[1], true, &[]), node("y", &[1], false, &[])]);
        assert_eq!(g.check(), Err(BuildError::NeverRetires { stage: "y".into() }));
    }

    #[test]
    fn holding_until_a_stage_that_is_not_ahead_is_refused() {
        let g = graph(vec![node("x", &[1], false, &[]), node("y", &[], true, &[(0, Some(0))])]);
        assert!(matches!(g.check(), Err(BuildError::UntilUnreachable { .. })));
    }
}
