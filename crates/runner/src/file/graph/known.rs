//! Finds out whether a unit can have a value for a field when it comes to a stage, by following the paths to the stage
//! backwards.
//!
//! A stage adds fields (`parse`, `set`, `sha256`), passes on the existing ones, or makes another unit. A piece sees the
//! fields of the unit from which it was split as `{parent.FIELD}`, so after a `split` the question is whether that unit
//! has FIELD. A group of pieces represents their unit, so its fields are those that the pieces see as `{parent.FIELD}`.
//! In other groups, the fields of the single units are lost.
//!
//! The answer is "no" only if no path can lead to a value. What members a JSON object has is not known before the run, so
//! after a stage that parses JSON, every member is assumed to have a value.

use std::collections::{BTreeSet, HashSet};

use regex::bytes::Regex;

use super::Graph;
use crate::file::model::{GatherBy, OpSpec, ParseFormat, SourceSpec, SplitBy};
use crate::file::template::Field;

/// The maximum number of prefixes `parent.` and `copy.STAGE.` that are followed; a field with more of them is assumed to
/// have a value.
const MAX_DEPTH: usize = 16;

/// The question of whether a unit that comes to a stage can have a value for a field. With `copied_for`, the unit is
/// the copy for that stage, or was made from that copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    stage: usize,
    field: Field,
    copied_for: Option<String>,
}

/// The answer of one stage.
enum Answer {
    Yes,
    No,
    /// The answer is "yes" if the answer to one of these questions is "yes".
    Ask(Vec<Question>),
}

/// The search for a value.
pub(super) struct Search<'g, 'a> {
    graph: &'g Graph<'a>,
    source: Option<&'g SourceSpec>,
    grouped: bool,
    /// The names of the members, groups and set fields that a unit does have, as suggestions.
    pub(super) near: BTreeSet<String>,
    /// The stages that gather units by a text, after which the units' fields are lost.
    pub(super) lost_in: BTreeSet<usize>,
}

impl<'g, 'a> Search<'g, 'a> {
    pub(super) fn new(graph: &'g Graph<'a>, source: Option<&'g SourceSpec>, grouped: bool) -> Self {
        Self { graph, source, grouped, near: BTreeSet::new(), lost_in: BTreeSet::new() }
    }

    /// Whether a unit that comes to the stage can have a value for the field.
    pub(super) fn finds(&mut self, stage: usize, field: &Field) -> bool {
        let first = Question { stage, field: field.clone(), copied_for: None };
        let mut seen = HashSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some(question) = open.pop() {
            if question.stage == 0 && self.source_has(&question) {
                return true;
            }
            for before in 0..self.graph.nodes.len() {
                if !self.graph.exits[before].contains(&question.stage) || self.is_of_another_copy(before, &question) {
                    continue;
                }
                match self.answer(before, &question) {
                    Answer::Yes => return true,
                    Answer::No => {}
                    Answer::Ask(questions) if questions.iter().any(|asked| depth(&asked.field) > MAX_DEPTH) => {
                        return true;
                    }
                    Answer::Ask(questions) => {
                        open.extend(questions.into_iter().filter(|asked| seen.insert(asked.clone())));
                    }
                }
            }
        }
        false
    }

    /// Whether the copy in question never comes to this stage, and the stage does not make that copy itself.
    fn is_of_another_copy(&self, stage: usize, question: &Question) -> bool {
        let Some(copied) = &question.copied_for else { return false };
        // A name that is not a stage is reported elsewhere.
        let Some(&copied) = self.graph.index.get(copied.as_str()) else { return false };
        let splits = matches!(self.graph.nodes[stage].op, Some(OpSpec::Split(_)));
        !splits && stage != copied && !self.graph.after[copied][stage]
    }

    fn source_has(&self, question: &Question) -> bool {
        let walks = matches!(self.source, Some(SourceSpec::Walk { .. }));
        match &question.field {
            _ if self.source.is_none() => true,
            Field::Line | Field::Url | Field::Host => !walks && !self.grouped,
            Field::Items => self.grouped,
            field if field.is_of_one_item() => !self.grouped,
            field => !is_found_later(field),
        }
    }

    /// Whether a unit has a value for the field when it leaves `stage` on the way to the stage of the question.
    fn answer(&mut self, stage: usize, question: &Question) -> Answer {
        let Question { field, copied_for, .. } = question;
        let ask = |field: Field| Question { stage, field, copied_for: copied_for.clone() };
        let same = || Answer::Ask(vec![ask(field.clone())]);
        let Some(op) = self.graph.nodes[stage].op else { return Answer::Yes };
        match (op, field) {
            (OpSpec::Split(spec), _) => self.of_piece(stage, &spec.by, question),
            (OpSpec::Gather(spec), _) if spec.by == GatherBy::Parent => self.of_family(stage, question),
            (OpSpec::Gather(spec), _) => self.of_group(stage, &spec.by, field),
            (OpSpec::Blake3, Field::Blake3 | Field::Shard) | (OpSpec::Sha256, Field::Sha256) => Answer::Yes,
            (OpSpec::Parse { format: ParseFormat::Json }, Field::Json(_)) => Answer::Yes,
            (OpSpec::Parse { format: ParseFormat::Regex(expression) }, Field::Json(name)) => {
                let Ok(expression) = Regex::new(expression) else { return Answer::Yes };
                if expression.capture_names().flatten().any(|group| group == name) {
                    return Answer::Yes;
                }
                self.near.extend(expression.capture_names().flatten().map(str::to_owned));
                // The groups of this expression replace all fields that the unit has from earlier `parse` stages. A
                // name that is not among them can have a value only in the parent unit.
                Answer::Ask(vec![ask(Field::Parent(Box::new(field.clone())))])
            }
            (OpSpec::Set { fields, .. }, Field::Set(name)) => self.sets(fields.iter().map(|(set, _)| set), name, same),
            (OpSpec::Http(spec), Field::Set(name)) => self.sets(spec.fields.iter().map(|(set, _)| set), name, same),
            _ => same(),
        }
    }

    fn sets<'f>(&mut self, sets: impl Iterator<Item = &'f String>, name: &str, same: impl Fn() -> Answer) -> Answer {
        let mut near = Vec::new();
        for set in sets {
            if set == name {
                return Answer::Yes;
            }
            near.push(set.clone());
        }
        self.near.extend(near);
        same()
    }

    /// Whether a piece that the stage makes has a value for the field.
    fn of_piece(&mut self, stage: usize, by: &SplitBy, question: &Question) -> Answer {
        let Question { field, copied_for, stage: to } = question;
        let of_unit = |field: &Field| Answer::Ask(vec![Question { stage, field: field.clone(), copied_for: None }]);
        let is_copy = matches!(by, SplitBy::Copies(_));
        // The question is about the copy for the stage `copied`. A `split` makes no copies, and a copy for another
        // stage is not that copy.
        if copied_for.as_ref().is_some_and(|copied| !is_copy || self.graph.nodes[*to].name != copied) {
            return Answer::No;
        }
        match (field, by) {
            (Field::Parent(field), _) => of_unit(field),
            (Field::Part | Field::Size | Field::Mode | Field::Input | Field::Param(_), _) => Answer::Yes,
            (Field::Json(_), SplitBy::Json | SplitBy::Table { header: true, .. }) => Answer::Yes,
            (Field::Json(name), SplitBy::Table { header: false, .. }) if name.parse::<u64>().is_ok() => Answer::Yes,
            (Field::Json(_) | Field::Set(_) | Field::Copy(..), _) => of_unit(field),
            (Field::Blake3 | Field::Shard | Field::Sha256, _) if is_copy => of_unit(field),
            (Field::Blake3 | Field::Shard | Field::Sha256 | Field::Count | Field::Key | Field::Items, _) => Answer::No,
            (_, SplitBy::Lines | SplitBy::Nul) => Answer::Yes,
            (Field::Line | Field::Url | Field::Host, SplitBy::Tar | SplitBy::Zip) => Answer::No,
            (_, SplitBy::Tar | SplitBy::Zip) => Answer::Yes,
            _ => of_unit(field),
        }
    }

    /// Whether a group of pieces that the stage makes has a value for the field. A unit that is not a piece forms a
    /// group of its own.
    fn of_family(&self, stage: usize, question: &Question) -> Answer {
        let field = &question.field;
        let ask = |field: Field| Question { stage, field, copied_for: None };
        match field {
            Field::Count | Field::Size | Field::Mode | Field::Input | Field::Param(_) => Answer::Yes,
            // The field has a value if the copy has one on arrival at this stage, or if the unit that was split has one
            // from an earlier `gather`.
            Field::Copy(copied, of_copy) => Answer::Ask(vec![
                Question { stage, field: (**of_copy).clone(), copied_for: Some(copied.clone()) },
                ask(Field::Parent(Box::new(field.clone()))),
            ]),
            Field::Json(_) => Answer::Ask(vec![ask(Field::Parent(Box::new(field.clone())))]),
            _ => {
                let of_unit = ask(Field::Parent(Box::new(field.clone())));
                let may_be_whole = self.may_be_whole(stage);
                Answer::Ask(std::iter::once(of_unit).chain(may_be_whole.then(|| ask(field.clone()))).collect())
            }
        }
    }

    /// Whether a unit that is not a piece may come to the stage.
    fn may_be_whole(&self, stage: usize) -> bool {
        let joins = |node: usize| {
            matches!(self.graph.nodes[node].op, Some(OpSpec::Gather(spec)) if spec.by == GatherBy::Parent)
                && self.graph.after[node][stage]
        };
        let splits = |node: usize| matches!(self.graph.nodes[node].op, Some(OpSpec::Split(_)));
        stage == 0 || (0..self.graph.nodes.len()).any(joins) || (!splits(0) && self.graph.leads_to(0, stage, splits))
    }

    /// Whether a group that is not by parent has a value for the field when it leaves the stage. The group counts as a
    /// piece of the unit from which its first member was split.
    fn of_group(&mut self, stage: usize, by: &GatherBy, field: &Field) -> Answer {
        let ask = |field: &Field| Answer::Ask(vec![Question { stage, field: field.clone(), copied_for: None }]);
        match field {
            Field::Count | Field::Items | Field::Size | Field::Input | Field::Param(_) => Answer::Yes,
            Field::Key if matches!(by, GatherBy::Key(_)) => Answer::Yes,
            Field::Part | Field::Parent(_) => ask(field),
            Field::Json(_) | Field::Set(_) | Field::Copy(..) => {
                self.lost_in.insert(stage);
                ask(&Field::Parent(Box::new(field.clone())))
            }
            _ => {
                self.lost_in.insert(stage);
                Answer::No
            }
        }
    }
}

/// Whether units that come from the source have no value for the field, so that only a stage can give them one.
fn is_found_later(field: &Field) -> bool {
    matches!(
        field,
        Field::Json(_)
            | Field::Set(_)
            | Field::Part
            | Field::Parent(_)
            | Field::Copy(..)
            | Field::Count
            | Field::Key
            | Field::Blake3
            | Field::Sha256
            | Field::Shard
    )
}

/// The number of prefixes `parent.` and `copy.STAGE.` of the field.
fn depth(field: &Field) -> usize {
    match field {
        Field::Parent(inner) | Field::Copy(_, inner) => 1 + depth(inner),
        _ => 0,
    }
}
