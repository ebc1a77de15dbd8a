//! Checks of the graph that the stages form: every stage is reachable, every unit can leave, and every field has a
//! value where a template uses it.
//!
//! If the file has other mistakes, parts of a stage may be unknown. The unknown parts are assumed to be right.

mod known;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use regex::bytes::Regex;

use super::error::Problem;
use super::model::{
    CheckField, Condition, ExecStdin, GatherBy, NeedSpec, OpSpec, ParseFormat, Reduce, SourceSpec, SplitBy,
};
use super::parse::HTTP;
use super::suggest;
use super::template::Field;

/// The facts about a stage that the graph's checks need.
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) span: Range<usize>,
    /// The name of the op, if such an op exists.
    pub(super) op_name: Option<&'a str>,
    pub(super) op_span: Range<usize>,
    pub(super) op: Option<&'a OpSpec>,
    pub(super) needs: &'a [NeedSpec],
    pub(super) fields: &'a [(Field, Range<usize>)],
    pub(super) exits: Vec<Exit>,
}

/// The exit of a stage.
pub(super) enum Exit {
    Stage(String),
    End,
    /// The exit could not be read: it may lead to any stage, or to the end.
    Unknown,
}

impl Node<'_> {
    fn may_be(&self, op: &str) -> bool {
        self.op_name.is_none_or(|name| name == op)
    }

    fn may_give_payload(&self) -> bool {
        self.op.is_none_or(OpSpec::gives_payload)
    }
}

/// Finds the mistakes in the graph of these stages. `source_span` is the position of the source, for messages.
pub(super) fn check(
    nodes: &[Node<'_>],
    source: Option<&SourceSpec>,
    grouped: bool,
    source_span: &Range<usize>,
) -> Vec<Problem> {
    let graph = Graph::new(nodes);
    let walks = matches!(source, Some(SourceSpec::Walk { .. }));
    let mut problems = Vec::new();
    let without_payload = graph.without_payload();
    for (index, stage) in nodes.iter().enumerate() {
        if index != 0 && !graph.after[0][index] {
            let problem = Problem::new(format!("no unit ever reaches stage `{}`", stage.name))
                .at(stage.span.clone(), "never reached");
            problems.push(problem.help(format!("name it in another stage: `next = \"{}\"`", stage.name)));
        }
        if !graph.can_leave(index) {
            let problem = Problem::new(format!("a unit that enters stage `{}` never leaves the flow", stage.name));
            let problem = problem.at(stage.span.clone(), "is in a cycle without an exit");
            problems
                .push(problem.help("end the cycle with a `filter` whose `else` leads out, or with `next = \"end\"`"));
        }
        for need in stage.needs {
            let Some(until) = &need.until else { continue };
            if !graph.after[index][graph.index(until)] {
                let message = format!(
                    "`{}` is held until `{until}`, and units never go there from `{}`",
                    need.resource, stage.name
                );
                let problem = Problem::new(message).at(need.span.clone(), "would be held to the end");
                problems.push(problem.help("name a stage that comes later, or leave `until` out"));
            }
        }
        let unknown = graph.unknown_values(index, walks, source_span);
        if source.is_some() && (graph.splits_before(index, |_| true) || graph.gathers_before(index)) {
            let has_problem = |span: &Range<usize>| {
                unknown.iter().any(|problem| problem.labels.iter().any(|(place, _)| place == span))
            };
            for (field, span) in stage.fields.iter().filter(|(_, span)| !has_problem(span)) {
                problems.extend(graph.never_known(index, field, span, known::Search::new(&graph, source, grouped)));
            }
        }
        problems.extend(unknown);
        if source.is_some() && !graph.splits_before(index, |_| true) && !graph.gathers_before(index) {
            problems.extend(of_groups(stage, grouped, source_span));
        }
        if let Some(mixed) = graph.mixes_families(index) {
            let whole = &nodes[mixed];
            let message = format!(
                "`{}` mixes the pieces of several units, but `{}` is to put the pieces of each unit together",
                stage.name, whole.name
            );
            let problem = Problem::new(message)
                .at(stage.op_span.clone(), "mixes pieces")
                .at(whole.op_span.clone(), "misses some");
            problems.push(problem.help(format!(
                "gather the pieces after `{}`, or send them to `{}` by another path",
                whole.name, whole.name
            )));
        }
        if graph.gathers_no_family(index) {
            let message =
                format!("`{}` gathers the pieces of one unit, but no `split` stage comes before it", stage.name);
            let problem = Problem::new(message).at(stage.op_span.clone(), "no unit is a piece");
            problems
                .push(problem.help("add a stage with `op = \"split\"` or `\"copy\"` before it, or gather by a text"));
        }
        if let Some(op) = stage.op.filter(|op| without_payload.contains(&index) && takes_payload(op, walks)) {
            let message = format!("units come to `{}` without a payload, but `{}` takes one", stage.name, op.name());
            let problem = Problem::new(message).at(stage.op_span.clone(), "has nothing to take");
            // `print` adds no newline.
            let end = if matches!(op, OpSpec::Print { .. }) { "\\n" } else { "" };
            problems.push(problem.help(if walks {
                "add a stage with `op = \"read\"` before it".to_owned()
            } else {
                format!(
                    "add a stage before it: `op = \"set\"` with `payload = \"{{path}}{end}\"` for the text of the unit itself, \
                     `op = \"read\"` where that is the path of a file"
                )
            }));
        }
    }
    problems
}

/// Warnings about programs that get no data of a unit: no field in their arguments, and nothing on standard input.
pub(super) fn unfed(nodes: &[Node<'_>]) -> Vec<Problem> {
    let without_payload = Graph::new(nodes).without_payload();
    let is_of_unit = |(field, _): &(Field, Range<usize>)| !matches!(field, Field::Param(_) | Field::Input);
    let stages = nodes.iter().enumerate().filter(|(index, stage)| {
        let takes_payload = matches!(stage.op, Some(OpSpec::Exec(spec)) if spec.stdin == ExecStdin::Payload);
        takes_payload && without_payload.contains(index) && !stage.fields.iter().any(is_of_unit)
    });
    let warnings = stages.map(|(_, stage)| {
        Problem::new(format!(
            "the program of `{}` gets no data of the unit: no field is in its arguments, and its standard input is empty, as units come \
             without a payload",
            stage.name
        ))
        .at(stage.op_span.clone(), "does the same for every unit")
        .help("write a field such as `{path}` among the arguments, or give units a payload before it: `op = \"set\"` with `payload = \"{path}\"`")
    });
    warnings.collect()
}

/// The stages reachable from `from`, including those in `from`, on paths that avoid `without`.
pub(super) fn reached(exits: &[Vec<usize>], from: &[usize], without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; exits.len()];
    let mut open = Vec::new();
    let mut come = |stages: &[usize], open: &mut Vec<usize>| {
        let new = stages.iter().filter(|&&stage| Some(stage) != without && !std::mem::replace(&mut seen[stage], true));
        open.extend(new);
    };
    come(from, &mut open);
    while let Some(stage) = open.pop() {
        come(&exits[stage], &mut open);
    }
    seen
}

/// Stages by index, with the edges between them.
struct Graph<'a> {
    nodes: &'a [Node<'a>],
    /// The stages that each stage leads to.
    exits: Vec<Vec<usize>>,
    /// For each stage, the stages that a unit can reach after it.
    after: Vec<Vec<bool>>,
    /// Whether units retire after the stage.
    retires: Vec<bool>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    fn new(nodes: &'a [Node<'a>]) -> Self {
        let index: HashMap<&str, usize> =
            nodes.iter().enumerate().rev().map(|(index, node)| (node.name, index)).collect();
        let exits_of = |node: &Node<'_>| {
            let mut exits = Vec::new();
            for exit in &node.exits {
                match exit {
                    Exit::Stage(name) => exits.push(index[name.as_str()]),
                    Exit::Unknown => exits.extend(0..nodes.len()),
                    Exit::End => {}
                }
            }
            exits
        };
        let exits: Vec<Vec<usize>> = nodes.iter().map(exits_of).collect();
        let after = exits.iter().map(|own| reached(&exits, own, None)).collect();
        let retires = nodes.iter().map(|node| node.exits.iter().any(|exit| !matches!(exit, Exit::Stage(_)))).collect();
        Self { nodes, exits, after, retires, index }
    }

    fn index(&self, name: &str) -> usize {
        self.index[name]
    }

    /// The stages that a unit can reach before any stage has given it a payload.
    fn without_payload(&self) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![0];
        while let Some(stage) = open.pop() {
            if seen.insert(stage) && !self.nodes[stage].may_give_payload() {
                open.extend(&self.exits[stage]);
            }
        }
        seen
    }

    fn can_leave(&self, stage: usize) -> bool {
        self.retires[stage] || self.after[stage].iter().zip(&self.retires).any(|(comes, retires)| *comes && *retires)
    }

    /// The fields that a stage uses although no unit that reaches it has a value for them.
    fn unknown_values(&self, index: usize, walks: bool, source_span: &Range<usize>) -> Vec<Problem> {
        let stage = &self.nodes[index];
        let checked = match stage.op {
            Some(OpSpec::Check { field: CheckField::Blake3, .. }) => Some((Field::Blake3, stage.span.clone())),
            Some(OpSpec::Check { field: CheckField::Sha256, .. }) => Some((Field::Sha256, stage.span.clone())),
            _ => None,
        };
        let mut problems = Vec::new();
        for (field, span) in stage.fields.iter().cloned().chain(checked) {
            let op = match field {
                Field::Blake3 | Field::Shard => "blake3",
                Field::Sha256 => "sha256",
                Field::Json(_)
                    if self.splits_before(index, |by| matches!(by, SplitBy::Json | SplitBy::Table { .. })) =>
                {
                    continue;
                }
                Field::Json(ref name) if self.groups_before(index).is_some() => {
                    problems.extend(self.never_matched(index, name, span));
                    continue;
                }
                Field::Json(_) => "parse",
                Field::Part | Field::Parent(_) if self.splits_before(index, |_| true) => continue,
                Field::Part | Field::Parent(_) => "split",
                Field::Copy(ref stage, _) => {
                    problems.extend(self.never_copied(index, stage, &field, span));
                    continue;
                }
                Field::Count | Field::Key => "gather",
                Field::Set(ref name) => {
                    problems.extend(self.never_set(index, name, span));
                    continue;
                }
                Field::Line | Field::Url | Field::Host
                    if walks && !self.splits_before(index, |by| matches!(by, SplitBy::Lines | SplitBy::Nul)) =>
                {
                    let problem = Problem::new(format!(
                        "`{{{field}}}` belongs to a line, but this flow's units are files from a walk"
                    ));
                    let problem = problem.at(span, "no unit has it").at(source_span.clone(), "the source");
                    problems.push(problem.help("use {path}, or `lines` as the source, or `split` the files by lines"));
                    continue;
                }
                _ => continue,
            };
            let before = |earlier: usize| self.nodes[earlier].may_be(op) && self.after[earlier][index];
            if !(0..self.nodes.len()).any(before) {
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

impl Graph<'_> {
    /// Whether a stage before this one splits units in the given way.
    fn splits_before(&self, index: usize, way: impl Fn(&SplitBy) -> bool) -> bool {
        let splits = |node: &Node<'_>| match node.op {
            Some(OpSpec::Split(spec)) => way(&spec.by),
            Some(_) => false,
            None => node.may_be("split") || node.may_be("copy"),
        };
        (0..self.nodes.len()).any(|earlier| splits(&self.nodes[earlier]) && self.after[earlier][index])
    }

    /// Whether the stage gathers pieces, but no stage before it makes pieces.
    fn gathers_no_family(&self, index: usize) -> bool {
        self.nodes[index].op.is_some_and(gathers_families) && !self.splits_before(index, |_| true)
    }

    /// The later stage that would gather pieces by their unit although this stage has mixed the pieces of several
    /// units; `None` if there is no such stage.
    fn mixes_families(&self, index: usize) -> Option<usize> {
        let op = self.nodes[index].op?;
        if !matches!(op, OpSpec::Gather(_)) || gathers_families(op) || !self.splits_before(index, |_| true) {
            return None;
        }
        let mut seen = BTreeSet::new();
        let mut open = self.exits[index].clone();
        while let Some(stage) = open.pop() {
            match self.nodes[stage].op {
                // This split makes pieces of the group, so a `gather` by parent after it gathers these pieces.
                Some(OpSpec::Split(_)) => continue,
                Some(op) if gathers_families(op) => return Some(stage),
                _ if seen.insert(stage) => open.extend(&self.exits[stage]),
                _ => {}
            }
        }
        None
    }

    /// Whether a stage before this one gathers units.
    fn gathers_before(&self, index: usize) -> bool {
        (0..self.nodes.len()).any(|earlier| self.nodes[earlier].may_be("gather") && self.after[earlier][index])
    }

    /// The problem that no unit here can have a field of its copy for stage `to`: no such copy was made, or the copies
    /// are not gathered yet.
    fn never_copied(&self, index: usize, to: &str, field: &Field, span: Range<usize>) -> Option<Problem> {
        let copies = |by: &SplitBy| matches!(by, SplitBy::Copies(stages) if stages.iter().any(|stage| **stage == *to));
        let problem = Problem::new(format!("`{{{field}}}` has no value here"));
        if !self.splits_before(index, copies) {
            let problem = problem.at(span, format!("no `copy` stage before has `{to}` in its `to`"));
            return Some(problem.help(format!("a copy is called after the stage it goes to: `to = [\"{to}\", …]`")));
        }
        let joins =
            |earlier: &usize| self.nodes[*earlier].op.is_none_or(gathers_families) && self.after[*earlier][index];
        if (0..self.nodes.len()).any(|earlier| joins(&earlier)) {
            return None;
        }
        let help = "gather the copies before it: `op = \"gather\"` with `by = \"parent\"`";
        Some(problem.at(span, "the copies are still apart").help(help))
    }

    /// The named groups of regular expressions whose fields a unit may still have in this stage. They come from the
    /// `parse` stages before it. `None` if there is no such stage, or if one of them reads JSON, whose members are not
    /// known.
    fn groups_before(&self, index: usize) -> Option<Vec<String>> {
        // A later `parse` replaces all fields, but a piece or a gathered unit may have the fields of its parent from
        // before that `parse`.
        let may_replace = !self.gathers_before(index) && !self.splits_before(index, |_| true);
        let parses = |stage: usize| self.nodes[stage].may_be("parse");
        let mut expressions = Vec::new();
        for earlier in (0..self.nodes.len()).filter(|&earlier| parses(earlier) && self.after[earlier][index]) {
            if may_replace && !self.leads_to(earlier, index, parses) {
                continue;
            }
            match self.nodes[earlier].op {
                Some(OpSpec::Parse { format: ParseFormat::Regex(expression) }) => expressions.push(expression),
                _ => return None,
            }
        }
        if expressions.is_empty() {
            return None;
        }
        let expressions = expressions.into_iter().filter_map(|expression| Regex::new(expression).ok());
        let names = |expression: Regex| expression.capture_names().flatten().map(str::to_owned).collect::<Vec<_>>();
        Some(expressions.flat_map(names).collect())
    }

    /// Whether a unit can come from one stage to another without passing a stage that is `barred`.
    fn leads_to(&self, from: usize, to: usize, barred: impl Fn(usize) -> bool) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.exits[from].clone();
        while let Some(stage) = open.pop() {
            if stage == to {
                return true;
            }
            if !barred(stage) && seen.insert(stage) {
                open.extend(&self.exits[stage]);
            }
        }
        false
    }

    /// The problem that no `parse` stage before this one has a group of this name; `None` if one may have it.
    fn never_matched(&self, index: usize, name: &str, span: Range<usize>) -> Option<Problem> {
        let groups = self.groups_before(index)?;
        if groups.iter().any(|group| group == name) {
            return None;
        }
        let stage = self.nodes[index].name;
        let message =
            format!("`{{json.{name}}}` has no value here: no `parse` stage before `{stage}` names such a group");
        let help = match suggest::closest(name, groups.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{{json.{near}}}`?"),
            None => format!("the groups are {}", groups.join(", ")),
        };
        Some(Problem::new(message).at(span, "no group has this name").help(help))
    }

    /// The problem that no unit has the field when it comes to this stage, on any path.
    fn never_known(
        &self,
        index: usize,
        field: &Field,
        span: &Range<usize>,
        mut search: known::Search<'_, '_>,
    ) -> Option<Problem> {
        if search.finds(index, field) {
            return None;
        }
        let stage = self.nodes[index].name;
        let message = format!("`{{{field}}}` has no value here: no unit that comes to `{stage}` has it");
        let problem = Problem::new(message).at(span.clone(), "never known here");
        let near = field.member().and_then(|name| suggest::closest(name, search.near.iter().map(String::as_str)));
        let names: Vec<&str> = search.near.iter().map(String::as_str).collect();
        Some(problem.help(match (near, search.lost_in.first()) {
            (Some(near), _) => format!("did you mean `{{{}}}`?", field.with_member(near)),
            (None, _) if !names.is_empty() => format!("the names here are {}", names.join(", ")),
            (None, Some(&gathers)) => format!(
                "a group of `{}` has {{key}}, {{count}} and {{items}}, and none of the fields of its units",
                self.nodes[gathers].name
            ),
            (None, None) => format!("add a stage before `{stage}` that gives the unit this field"),
        }))
    }

    /// The problem that no stage before this one sets the field.
    fn never_set(&self, index: usize, name: &str, span: Range<usize>) -> Option<Problem> {
        let may_set = |node: &Node<'_>| match node.op {
            Some(OpSpec::Set { fields, .. }) => fields.iter().any(|(set, _)| set == name),
            Some(OpSpec::Http(spec)) => spec.fields.iter().any(|(set, _)| set == name),
            Some(_) => false,
            None => node.may_be("set") || node.may_be(HTTP),
        };
        let before = |earlier: usize| may_set(&self.nodes[earlier]) && self.after[earlier][index];
        if (0..self.nodes.len()).any(before) {
            return None;
        }
        let stage = self.nodes[index].name;
        let message = format!("`{{set.{name}}}` has no value here: no stage before `{stage}` sets it");
        let help = format!("add a stage with `op = \"set\"` and `fields = {{ {name} = \"…\" }}` before it");
        Some(Problem::new(message).at(span, "not known yet").help(help))
    }
}

/// The problem that a field belongs to one item although the units are groups, or to a group although the units are
/// single items.
fn of_groups<'a>(
    stage: &'a Node<'_>,
    grouped: bool,
    source_span: &'a Range<usize>,
) -> impl Iterator<Item = Problem> + 'a {
    stage.fields.iter().filter_map(move |(field, span)| {
        if grouped && field.is_of_one_item() {
            let problem =
                Problem::new(format!("`{{{field}}}` belongs to one item, but this flow's units are groups of items"));
            let problem = problem.at(span.clone(), "of which item?").at(source_span.clone(), "the source");
            return Some(problem.help("use {items}, or leave `group` out"));
        }
        if !grouped && *field == Field::Items {
            let problem = Problem::new("`{items}` belongs to a group, but this flow's units are single items");
            let problem = problem.at(span.clone(), "no unit has it").at(source_span.clone(), "the source");
            return Some(problem.help("add `group = 100` to the source, or use {path}"));
        }
        None
    })
}

/// Whether the op puts the pieces of a unit together.
fn gathers_families(op: &OpSpec) -> bool {
    matches!(op, OpSpec::Gather(spec) if spec.by == GatherBy::Parent)
}

/// Whether the op needs a payload as its input. In a flow over a walk, `parse` is such an op, since units of a walk
/// have no line.
fn takes_payload(op: &OpSpec, walks: bool) -> bool {
    match op {
        OpSpec::Blake3
        | OpSpec::Sha256
        | OpSpec::Zstd { .. }
        | OpSpec::Gzip { .. }
        | OpSpec::Write { .. }
        | OpSpec::Print { .. }
        | OpSpec::Stream { .. } => true,
        OpSpec::Http(spec) => spec.method.has_body() && spec.body.is_none(),
        OpSpec::Split(spec) => spec.copies().is_none(),
        OpSpec::Check { field, .. } => *field == CheckField::Size,
        OpSpec::Gather(spec) => spec.item.is_none() && spec.reduce != Reduce::Count,
        OpSpec::Filter { when } => compares_content(when),
        // A unit of another source has a line, which `parse` reads in place of a payload.
        OpSpec::Parse { .. } => walks,
        OpSpec::Read { .. } | OpSpec::Exec(_) | OpSpec::Unique { .. } | OpSpec::Append { .. } | OpSpec::Set { .. } => {
            false
        }
    }
}

/// Whether a condition compares the payload with a file.
fn compares_content(when: &Condition) -> bool {
    match when {
        Condition::Content { .. } => true,
        Condition::Not(inner) => compares_content(inner),
        Condition::All(inner) | Condition::Any(inner) => inner.iter().any(compares_content),
        Condition::Exists(_)
        | Condition::Missing(_)
        | Condition::Has(_)
        | Condition::Stale { .. }
        | Condition::Number { .. }
        | Condition::Date { .. }
        | Condition::Text { .. }
        | Condition::Size { .. } => false,
    }
}
