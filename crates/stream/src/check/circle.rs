//! A circle of edges as a fork, a join, and two paths between them.

use crate::net::{EdgeId, Net};

use super::diagram::Diagram;

/// An edge of a path, and whether the path follows it from its producer to its consumer.
pub(super) type Step = (EdgeId, bool);

/// See the [module](self). A path follows its first and its last edge forwards; between them, one over several forks and
/// joins may go back.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    /// The actor with the smallest number, which gives to both paths.
    pub(super) fork: usize,
    /// The last branch of its tree that both paths share.
    pub(super) shared: Option<usize>,
    /// The actor with the largest number, which takes from both.
    pub(super) join: usize,
    pub(super) paths: [Vec<Step>; 2],
}

impl Circle {
    /// The circle of a closed way through the diagram.
    pub(super) fn of(net: &Net, diagram: &Diagram, way: &[(usize, bool)]) -> Self {
        let steps: Vec<Step> =
            way.iter().filter_map(|(line, forward)| Some((diagram.lines[*line].edge?, *forward))).collect();
        let actor = |(edge, forward): Step| if forward { net.edges[edge].producer } else { net.edges[edge].consumer };
        let place = |wanted: usize| steps.iter().position(|step| actor(*step) == wanted).expect("it is on the circle");
        let fork = steps.iter().map(|step| actor(*step)).min().expect("a circle has edges");
        let join = steps.iter().map(|step| actor(*step)).max().expect("a circle has edges");
        let mut around = steps.clone();
        around.rotate_left(place(fork));
        let there = around.iter().position(|step| actor(*step) == join).expect("it is on the circle");
        let back = around.split_off(there).into_iter().rev().map(|(edge, forward)| (edge, !forward)).collect();
        let mut paths = [around, back];
        // The path into the first input of the join comes first.
        paths.sort_by_key(|path| path.last().map(|(edge, _)| net.edges[*edge].port));
        let [first, second] = [0, 1].map(|path| net.path(paths[path][0].0).collect::<Vec<_>>());
        let shared = first.into_iter().find(|branch| second.contains(branch));
        Self { fork, shared, join, paths }
    }

    /// The last edge of a path.
    pub(super) fn last_edge(&self, path: usize) -> EdgeId {
        self.paths[path].last().expect("a path has edges").0
    }
}
