//! The net as an undirected diagram, and its blocks.
//!
//! A *point* has its own clock: it is an actor, a data decision in a tree, or the end of a reduce. A *line* connects two
//! points: it is an edge of the net, or a link from a clock to a data decision that lets only some of the clock's values pass.
//! A reduce has two points without a line between them, because its input and its output have no common clock.
//!
//! A *block* is a maximal set of lines in which any two lines lie on a common cycle. A line on no cycle is a separate block.

use std::collections::VecDeque;

use crate::clock::Pass;
use crate::net::{EdgeId, Kind, Net};

/// A line between two points. `edge` is its edge in the net, or `None` for a link to a data decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) ends: [usize; 2],
    pub(super) edge: Option<EdgeId>,
}

/// See the [module](self).
pub(super) struct Diagram {
    pub(super) lines: Vec<Line>,
    /// The numbers of the lines at each point.
    at: Vec<Vec<usize>>,
    /// For each reduce: the points of its input and its output.
    pub(super) reduces: Vec<[usize; 2]>,
}

impl Diagram {
    pub(super) fn of(net: &Net) -> Self {
        let actors = net.actors.len();
        let mut points = actors;
        let mut lines = Vec::new();
        let mut reduces = Vec::new();
        // The point of each actor's output, and the clock of each branch in its tree.
        let mut gives: Vec<usize> = (0..actors).collect();
        let mut decisions: Vec<Vec<usize>> = Vec::new();
        for (id, actor) in net.actors.iter().enumerate() {
            if actor.kind == Kind::Reduce {
                gives[id] = points;
                reduces.push([id, points]);
                points += 1;
            }
            let mut clocks: Vec<usize> = Vec::new();
            for branch in &actor.tree {
                let above = branch.parent.map_or(gives[id], |parent| clocks[parent]);
                if branch.pass == Pass::Data {
                    lines.push(Line { ends: [above, points], edge: None });
                    clocks.push(points);
                    points += 1;
                } else {
                    clocks.push(above);
                }
            }
            decisions.push(clocks);
        }
        for (id, edge) in net.edges.iter().enumerate() {
            let from = edge.leaf.map_or(gives[edge.producer], |leaf| decisions[edge.producer][leaf]);
            lines.push(Line { ends: [from, edge.consumer], edge: Some(id) });
        }
        let mut at = vec![Vec::new(); points];
        for (id, line) in lines.iter().enumerate() {
            line.ends.iter().for_each(|end| at[*end].push(id));
        }
        Self { lines, at, reduces }
    }

    pub(super) fn points(&self) -> usize {
        self.at.len()
    }

    fn other_end(&self, line: usize, point: usize) -> usize {
        let [a, b] = self.lines[line].ends;
        if a == point { b } else { a }
    }

    /// Returns the blocks, each with its lines in order (Hopcroft and Tarjan, 1973, without recursion).
    pub(super) fn blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks = Vec::new();
        let mut number = vec![usize::MAX; self.points()];
        let mut low = vec![0; self.points()];
        let mut next = 0;
        let mut open: Vec<usize> = Vec::new();
        for root in 0..self.points() {
            if number[root] != usize::MAX {
                continue;
            }
            (number[root], low[root]) = (next, next);
            next += 1;
            // For each point on the current path: the point, the line that led to it, and the number of its lines followed so
            // far.
            let mut stack = vec![(root, usize::MAX, 0)];
            while let Some((point, arrived, followed)) = stack.last_mut() {
                let (point, arrived) = (*point, *arrived);
                if let Some(&line) = self.at[point].get(*followed) {
                    *followed += 1;
                    let other = self.other_end(line, point);
                    if line == arrived {
                        continue;
                    }
                    if number[other] == usize::MAX {
                        open.push(line);
                        (number[other], low[other]) = (next, next);
                        next += 1;
                        stack.push((other, line, 0));
                    } else if number[other] < number[point] {
                        open.push(line);
                        low[point] = low[point].min(number[other]);
                    }
                    continue;
                }
                stack.pop();
                let Some((above, _, _)) = stack.last() else { break };
                low[*above] = low[*above].min(low[point]);
                if low[point] >= number[*above] {
                    let from = open.iter().rposition(|line| *line == arrived).expect("the line is open");
                    let mut block = open.split_off(from);
                    block.sort_unstable();
                    blocks.push(block);
                }
            }
        }
        blocks
    }

    /// Returns the shortest walk from one point to another along lines for which `allowed` returns `true`. A flag for each line
    /// says whether the walk follows it from its first end to its second; `allowed` also gets this flag. `jumps` are pairs of
    /// points between which the walk may move without a line.
    pub(super) fn walk(
        &self,
        from: usize,
        to: usize,
        allowed: impl Fn(usize, bool) -> bool,
        jumps: &[[usize; 2]],
    ) -> Option<Vec<(usize, bool)>> {
        let mut came: Vec<Option<(usize, Option<usize>)>> = vec![None; self.points()];
        let mut queue = VecDeque::from([from]);
        came[from] = Some((from, None));
        while let Some(point) = queue.pop_front() {
            if point == to {
                break;
            }
            let lines = self.at[point].iter().filter(|line| allowed(**line, self.lines[**line].ends[0] == point));
            let along = lines.map(|line| (self.other_end(*line, point), Some(*line)));
            let jumped = jumps.iter().filter(|jump| jump[0] == point).map(|jump| (jump[1], None));
            for (other, line) in along.chain(jumped) {
                if came[other].is_none() {
                    came[other] = Some((point, line));
                    queue.push_back(other);
                }
            }
        }
        let mut walk = Vec::new();
        let mut point = to;
        while point != from {
            let (before, line) = came[point]?;
            walk.extend(line.map(|line| (line, self.lines[line].ends[0] == before)));
            point = before;
        }
        walk.reverse();
        Some(walk)
    }
}
