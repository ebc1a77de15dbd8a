//! The static checks: what makes a flow safe to run, proved before it runs.
//!
//! The heart is the **resource order**. A unit that holds one resource across stages (class 3) while a later
//! stage asks for another could deadlock with a unit that does it the other way round. So the checks follow
//! every path through the stages, note each pair "holds *a*, asks for *b*", and refuse the flow if those
//! pairs form a cycle, naming it. If they do not, a topological order of them exists, and the engine's grants
//! follow it. A bounded queue is a resource like any other here: its places are asked for by the stages
//! before it and held until the unit leaves it.

use std::collections::VecDeque;
use std::fmt;

/// One pair of the resource order: while a unit holds `holds`, stage `stage` asks for `asks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldAndAsk {
    /// The resource a unit may hold when it waits in `stage`.
    pub holds: String,
    /// The resource that `stage` asks for.
    pub asks: String,
    /// The stage that asks.
    pub stage: String,
}

impl fmt::Display for HoldAndAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` asks for {} while holding {}", self.stage, self.asks, self.holds)
    }
}

/// A cycle of needs, as its steps one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedsCycle(pub Vec<HoldAndAsk>);

impl fmt::Display for NeedsCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            write!(f, "{}{step}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// Why a flow was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BuildError {
    #[error("two stages are called `{stage}`: give one of them another name")]
    DuplicateStage { stage: String },
    #[error("two resources are called `{resource}`: give one of them another name")]
    DuplicateResource { resource: String },
    #[error(
        "stage `{stage}` was declared by inlet() but has no code: define it by stage() or update(), and end with to()"
    )]
    UndefinedStage { stage: String },
    #[error("stage `{stage}` was defined twice")]
    DefinedTwice { stage: String },
    #[error("stage `{stage}` uses an inlet, a resource or an exit of another flow")]
    Foreign { stage: String },
    #[error("no unit can reach stage `{stage}` from `{entry}`")]
    Unreachable { stage: String, entry: String },
    #[error("a unit in stage `{stage}` can never retire: no path leads from it to the exit")]
    NeverRetires { stage: String },
    #[error("resource `{resource}` has a capacity of zero: nothing could ever be granted")]
    ZeroCapacity { resource: String },
    #[error("resource `{resource}` has a rate of {per_second}/s with a burst of {burst}: both must be more than zero")]
    BadRate { resource: String, per_second: f64, burst: u64 },
    #[error("resource `{resource}` may have no key: its bound on keys is zero")]
    ZeroKeys { resource: String },
    #[error("stage `{stage}` needs {amount} of `{resource}`, which has only {capacity}: it could never be granted")]
    NeedTooLarge { stage: String, resource: String, amount: u64, capacity: u64 },
    #[error("stage `{stage}` needs zero of `{resource}`: drop the need, or say how much")]
    NeedOfZero { stage: String, resource: String },
    #[error("stage `{stage}` needs `{resource}`, which is keyed: say which key (Need::keyed)")]
    KeyMissing { stage: String, resource: String },
    #[error("stage `{stage}` gives a key for `{resource}`, which has no keys (Need::tokens)")]
    KeyUnexpected { stage: String, resource: String },
    #[error("stage `{stage}` takes `{resource}` once per batch, but its key or amount differs by unit")]
    BatchNeedByUnit { stage: String, resource: String },
    #[error("stage `{stage}` holds `{resource}` until `{until}`, but no path leads there")]
    UntilUnreachable { stage: String, resource: String, until: String },
    #[error(
        "stage `{stage}` needs `{resource}` twice, held differently: give all its needs of one resource the same hold"
    )]
    MixedHolds { stage: String, resource: String },
    #[error("stage `{stage}` needs {keys} keys of `{resource}` for one unit, but only {max_keys} may exist at once")]
    TooFewKeys { stage: String, resource: String, keys: usize, max_keys: usize },
    #[error(
        "stage `{stage}` has workers {floor}..={ceiling}: the ceiling must be from 1 to 65536 and at least the floor"
    )]
    Workers { stage: String, floor: usize, ceiling: usize },
    #[error("stage `{stage}` has a batch size of {size}: it must be from 1 to {most}")]
    BatchSize { stage: String, size: usize, most: usize },
    #[error("stage `{stage}` has a queue bound of zero: no unit could ever enter it")]
    ZeroQueue { stage: String },
    #[error("the cap on units in flight is zero: nothing could ever be admitted")]
    ZeroInflight,
    #[error("the byte budget is zero: nothing could ever be admitted")]
    ZeroMemory,
    #[error("the flow has zero workers: nothing could ever run")]
    ZeroWorkers,
    #[error("{count} {what}: at most {most} are possible")]
    TooMany { what: &'static str, count: usize, most: usize },
    #[error("a cycle of needs could deadlock: {0}")]
    NeedsCycle(NeedsCycle),
}

/// What the checks look at: stages, their needs and edges.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) entry: u16,
    /// The resource that bounds the entry's queue: admission gives every unit a place of it.
    pub(crate) entry_place: Option<u16>,
    pub(crate) stages: Vec<Node>,
    /// Names of the resources.
    pub(crate) resources: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) next: Vec<u16>,
    pub(crate) retires: bool,
    pub(crate) asks: Vec<Asked>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) resource: u16,
    /// Until which stage it is held; `None`: for the asking stage's own run.
    pub(crate) until: Option<u16>,
    /// It is a place in that stage's queue: given back at once by a unit that goes elsewhere.
    pub(crate) place: bool,
}

/// What the checks proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Each resource's place in the resource order.
    pub(crate) ranks: Vec<u16>,
    /// The pairs the order respects.
    pub(crate) pairs: Vec<HoldAndAsk>,
    /// Each stage's distance to the exit.
    pub(crate) distance: Vec<usize>,
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
            for &Asked { resource, until, .. } in &stage.asks {
                if let Some(until) = until.filter(|&until| !self.reach(s as u16)[usize::from(until)]) {
                    return Err(BuildError::UntilUnreachable {
                        stage: stage.name.clone(),
                        resource: self.resources[usize::from(resource)].clone(),
                        until: self.stages[usize::from(until)].name.clone(),
                    });
                }
            }
        }
        let pairs = self.pairs();
        let ranks = self.ranks(&pairs)?;
        let pairs = pairs.iter().map(|&(holds, asks, stage)| self.describe(holds, asks, stage)).collect();
        Ok(Proof { ranks, pairs, distance })
    }

    /// Which stages a unit in `from` may come to.
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
        let mut distance = vec![usize::MAX; self.stages.len()];
        let exits = self.stages.iter().enumerate().filter(|(_, stage)| stage.retires).map(|(s, _)| s);
        let mut open: VecDeque<usize> = exits.collect();
        open.iter().for_each(|&s| distance[s] = 0);
        while let Some(stage) = open.pop_front() {
            for (s, node) in self.stages.iter().enumerate() {
                if distance[s] == usize::MAX && node.next.contains(&(stage as u16)) {
                    distance[s] = distance[stage] + 1;
                    open.push_back(s);
                }
            }
        }
        distance
    }

    /// All `(holds, asks, stage)`, by following what a unit may hold along every edge to a fixed point.
    fn pairs(&self) -> Vec<(u16, u16, u16)> {
        // held[s]: (resource, until) that a unit may hold when it enters the queue of s.
        let mut held: Vec<Vec<(u16, u16)>> = vec![Vec::new(); self.stages.len()];
        held[usize::from(self.entry)].extend(self.entry_place.map(|place| (place, self.entry)));
        let mut open = VecDeque::from([self.entry]);
        let mut seen = vec![false; self.stages.len()];
        while let Some(s) = open.pop_front() {
            seen[usize::from(s)] = true;
            let node = &self.stages[usize::from(s)];
            let mut leaves = held[usize::from(s)].clone();
            leaves.extend(node.asks.iter().filter_map(|asked| Some((asked.resource, asked.until?))));
            leaves.retain(|&(_, until)| until != s);
            let places: Vec<u16> = node.asks.iter().filter(|asked| asked.place).map(|asked| asked.resource).collect();
            for &next in &node.next {
                let there = &mut held[usize::from(next)];
                let before = there.len();
                for &pair in &leaves {
                    let elsewhere = places.contains(&pair.0) && pair.1 != next;
                    if !elsewhere && !there.contains(&pair) {
                        there.push(pair);
                    }
                }
                if there.len() > before || !seen[usize::from(next)] {
                    open.push_back(next);
                }
            }
        }
        let mut pairs = Vec::new();
        for (s, node) in self.stages.iter().enumerate() {
            for &(holds, _) in &held[s] {
                for asked in &node.asks {
                    let pair = (holds, asked.resource, s as u16);
                    if !pairs.contains(&pair) {
                        pairs.push(pair);
                    }
                }
            }
        }
        pairs
    }

    /// A topological order of "holds before asks", or the cycle that forbids it.
    fn ranks(&self, pairs: &[(u16, u16, u16)]) -> Result<Vec<u16>, BuildError> {
        let n = self.resources.len();
        let mut ranks = vec![u16::MAX; n];
        for rank in 0..n {
            // The first resource that no unranked one must precede; declaration order breaks ties.
            let free = (0..n).find(|&r| {
                ranks[r] == u16::MAX
                    && pairs
                        .iter()
                        .all(|&(holds, asks, _)| usize::from(asks) != r || ranks[usize::from(holds)] != u16::MAX)
            });
            match free {
                Some(resource) => ranks[resource] = rank as u16,
                None => return Err(BuildError::NeedsCycle(self.cycle(pairs, &ranks))),
            }
        }
        Ok(ranks)
    }

    /// A cycle among the resources without a rank: each of them is asked for by holders of another.
    fn cycle(&self, pairs: &[(u16, u16, u16)], ranks: &[u16]) -> NeedsCycle {
        let unranked = |r: u16| ranks[usize::from(r)] == u16::MAX;
        let asked_by = |r: u16| pairs.iter().find(|&&(holds, asks, _)| asks == r && unranked(holds));
        let mut path: Vec<(u16, u16, u16)> = Vec::new();
        let start = pairs.iter().find(|&&(holds, asks, _)| unranked(holds) && unranked(asks));
        let mut at = start.map_or(0, |&(_, asks, _)| asks);
        while let Some(&step) = asked_by(at) {
            if let Some(begin) = path.iter().position(|&(_, asks, _)| asks == step.1) {
                path.drain(..begin);
                break;
            }
            path.push(step);
            at = step.0;
        }
        path.reverse();
        NeedsCycle(path.iter().map(|&(holds, asks, stage)| self.describe(holds, asks, stage)).collect())
    }

    fn describe(&self, holds: u16, asks: u16, stage: u16) -> HoldAndAsk {
        HoldAndAsk {
            holds: self.resources[usize::from(holds)].clone(),
            asks: self.resources[usize::from(asks)].clone(),
            stage: self.stages[usize::from(stage)].name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, next: &[u16], retires: bool, asks: &[(u16, Option<u16>)]) -> Node {
        Node {
            name: name.into(),
            next: next.to_vec(),
            retires,
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
        // x holds a until z; y asks b and holds it until w; z... w asks a while b is held.
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
    fn a_loop_that_asks_again_for_what_it_holds_is_refused() {
        let g = graph(vec![node("page", &[0, 1], false, &[(0, Some(1))]), node("end", &[], true, &[])]);
        let Err(BuildError::NeedsCycle(cycle)) = g.check() else { panic!("not refused") };
        assert_eq!(cycle.to_string(), "`page` asks for a while holding a");
    }

    #[test]
    fn a_loop_that_gives_back_first_is_accepted() {
        let g = graph(vec![node("page", &[0, 1], false, &[(0, None)]), node("end", &[], true, &[])]);
        assert!(g.check().is_ok());
    }

    #[test]
    fn a_stage_without_a_way_out_is_refused() {
        let g = graph(vec![node("x", &[1], true, &[]), node("y", &[1], false, &[])]);
        assert_eq!(g.check(), Err(BuildError::NeverRetires { stage: "y".into() }));
    }

    #[test]
    fn holding_until_a_stage_that_is_not_ahead_is_refused() {
        let g = graph(vec![node("x", &[1], false, &[]), node("y", &[], true, &[(0, Some(0))])]);
        assert!(matches!(g.check(), Err(BuildError::UntilUnreachable { .. })));
    }
}
