//! Checks of the graph that the stages form: every stage is reached, every unit can leave, and what a template asks for has
//! been found out before.

use std::collections::BTreeSet;

use super::error::Problem;
use super::model::{CheckField, FlowFile, OpSpec, SourceSpec, StageSpec};
use super::template::Field;

/// What is wrong with the graph of a flow whose names all resolve.
pub(super) fn check(flow: &FlowFile) -> Vec<Problem> {
    let graph = Graph::new(flow);
    let mut problems = Vec::new();
    let entered = graph.from(0);
    let without_payload = graph.without_payload();
    for (index, stage) in flow.stages.iter().enumerate() {
        if index != 0 && !entered.contains(&index) {
            let problem = Problem::new(format!("no unit ever reaches stage `{}`", stage.name))
                .at(stage.span.clone(), "never reached");
            problems.push(problem.help(format!("name it in another stage: `next = \"{}\"`", stage.name)));
        }
        if !graph.can_leave(index) {
            let problem = Problem::new(format!("a unit that enters stage `{}` never leaves the flow", stage.name));
            let problem = problem.at(stage.span.clone(), "goes round in a circle");
            problems
                .push(problem.help("end the circle with a `filter` whose `else` leads out, or with `next = \"end\"`"));
        }
        for need in &stage.needs {
            let Some(until) = &need.until else { continue };
            if !graph.from(index).contains(&graph.index(until)) {
                let message = format!(
                    "`{}` is held until `{until}`, and units never go there from `{}`",
                    need.resource, stage.name
                );
                let problem = Problem::new(message).at(need.span.clone(), "would be held to the end");
                problems.push(problem.help("name a stage that comes later, or leave `until` out"));
            }
        }
        problems.extend(graph.unknown_values(index));
        if without_payload.contains(&index) && takes_payload(&stage.op, &flow.source) {
            let message =
                format!("units come to `{}` without a payload, and `{}` takes one", stage.name, stage.op.name());
            let problem = Problem::new(message).at(stage.op_span.clone(), "has nothing to take");
            problems.push(problem.help("add a stage with `op = \"read\"` before it"));
        }
    }
    problems
}

/// Stages by index, with the edges between them.
struct Graph<'a> {
    flow: &'a FlowFile,
    /// The stages that each stage leads to.
    exits: Vec<Vec<usize>>,
    /// Whether units retire after the stage.
    retires: Vec<bool>,
}

impl<'a> Graph<'a> {
    fn new(flow: &'a FlowFile) -> Self {
        let mut graph = Self { flow, exits: Vec::new(), retires: Vec::new() };
        for stage in &flow.stages {
            let edges = edges(stage);
            graph.exits.push(edges.iter().flatten().map(|name| graph.index(name)).collect());
            graph.retires.push(edges.contains(&None));
        }
        graph
    }

    fn index(&self, name: &str) -> usize {
        self.flow
            .stages
            .iter()
            .position(|stage| stage.name == name)
            .expect("the parser has resolved every stage's name")
    }

    /// The stages that a unit can come to after stage `start`.
    fn from(&self, start: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = self.exits[start].clone();
        while let Some(stage) = open.pop() {
            if seen.insert(stage) {
                open.extend(&self.exits[stage]);
            }
        }
        seen
    }

    /// The stages that a unit can come to before any stage has given it a payload.
    fn without_payload(&self) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![0];
        while let Some(stage) = open.pop() {
            if seen.insert(stage) && !self.flow.stages[stage].op.gives_payload() {
                open.extend(&self.exits[stage]);
            }
        }
        seen
    }

    fn can_leave(&self, stage: usize) -> bool {
        self.retires[stage] || self.from(stage).iter().any(|later| self.retires[*later])
    }

    /// Fields of a stage that no unit has a value for when it comes there.
    fn unknown_values(&self, index: usize) -> Vec<Problem> {
        let stage = &self.flow.stages[index];
        let walks = matches!(self.flow.source, SourceSpec::Walk { .. });
        let checked = match stage.op {
            OpSpec::Check { field: CheckField::Blake3, .. } => Some((Field::Blake3, stage.span.clone())),
            OpSpec::Check { field: CheckField::Sha256, .. } => Some((Field::Sha256, stage.span.clone())),
            _ => None,
        };
        let mut problems = Vec::new();
        for (field, span) in stage.fields.iter().cloned().chain(checked) {
            let (op, source): (&str, fn(&OpSpec) -> bool) = match field {
                Field::Blake3 | Field::Shard => ("blake3", |op| matches!(op, OpSpec::Blake3)),
                Field::Sha256 => ("sha256", |op| matches!(op, OpSpec::Sha256)),
                Field::Json(_) => ("parse", |op| matches!(op, OpSpec::Parse { .. })),
                Field::Line | Field::Host if walks => {
                    let problem =
                        Problem::new(format!("`{{{field}}}` is a line's, and this flow's units are files of a walk"));
                    let problem = problem.at(span, "no unit has it").at(self.flow.source_span.clone(), "the source");
                    problems.push(problem.help("use {path}, or `lines` as the source"));
                    continue;
                }
                _ => continue,
            };
            let before = |earlier: usize| source(&self.flow.stages[earlier].op) && self.from(earlier).contains(&index);
            if !(0..self.flow.stages.len()).any(before) {
                let message = format!("`{{{field}}}` has no value here: no `{op}` stage comes before `{}`", stage.name);
                problems.push(
                    Problem::new(message)
                        .at(span, "not known yet")
                        .help(format!("add a stage with `op = \"{op}\"` before it")),
                );
            }
        }
        problems
    }
}

/// Whether the op would work on nothing when a unit of this source has no payload.
fn takes_payload(op: &OpSpec, source: &SourceSpec) -> bool {
    match op {
        OpSpec::Blake3 | OpSpec::Sha256 | OpSpec::Zstd { .. } | OpSpec::Write { .. } => true,
        OpSpec::Check { field, .. } => *field == CheckField::Size,
        // A unit of the other sources has a line, which `parse` reads in place of a payload.
        OpSpec::Parse { .. } => matches!(source, SourceSpec::Walk { .. }),
        _ => false,
    }
}

/// Where units go after a stage; `None` is retirement.
fn edges(stage: &StageSpec) -> Vec<Option<String>> {
    match stage.op {
        OpSpec::Filter { .. } => vec![stage.next.clone(), stage.otherwise.clone()],
        _ => vec![stage.next.clone()],
    }
}
