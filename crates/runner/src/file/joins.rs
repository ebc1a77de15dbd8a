//! Joins: the stages at which the pieces of a unit come together again, and the groups that wait there.
//!
//! A stream language joins by position: the n-th value of one path waits for the n-th value of the other, so paths of
//! different rates need ever more buffer space. A flow joins by identity: by the number of the unit that was split, or
//! by a text.
//!
//! # Why no join hangs
//! A group by parent waits for no particular piece; it waits until no other piece of its unit is in the flow. A piece
//! that leaves through a `filter`, is skipped or dies is no longer in the flow. So whatever happens to the pieces, the
//! wait ends, and the rates of the paths do not matter. A piece that is still on its way waits for no group: the engine
//! counts neither open groups nor units that wait for their pieces among the units in flight, and closes groups when
//! nothing else can move.
//!
//! # What waits by parent
//! The cap on units in flight bounds the open groups of a join. While a group is open, at least one piece of its unit,
//! or a piece of such a piece, is in flight and waits in no group. Suppose that all of them wait in groups. These are
//! groups by parent, since [`graph`](super::graph) refuses other groups between the fork and the join. The innermost of
//! these groups has all remaining pieces of its unit, so the engine closes it, and the unit that it becomes is in
//! flight. No piece belongs to two units. So a join has at most as many open groups as units may be in flight, and one
//! more for each fork, which may produce one piece beyond that cap to make progress.
//!
//! # What waits by text
//! A group by text, or of all units, may wait for units that never come, but at most until the end of the run. The
//! number of such groups is limited by `max_groups`, and their contents by half of the byte budget; beyond either
//! limit, the oldest group is closed early. If the text differs from unit to unit, a group gets the pieces of one unit
//! only. [`check`] refuses such a join if no unit can have as many pieces as a group waits for, and [`warn`] reports it
//! if the number of pieces depends on the data.

use std::collections::HashMap;
use std::ops::Add;

use super::error::Problem;
use super::graph::reached;
use super::model::{AfterFailure, GatherBy, GatherSpec, OpSpec, SourceSpec, StageSpec};
use super::template::Field;

/// The number of pieces of one unit that come to a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The minimum.
    pub least: u64,
    /// The maximum; `None` if it depends on the data.
    pub most: Option<u64>,
}

impl Count {
    const NONE: Self = Self::exactly(0);
    const ANY: Self = Self { least: 0, most: None };

    const fn exactly(number: u64) -> Self {
        Self { least: number, most: Some(number) }
    }

    /// The range that covers both counts.
    fn or(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.zip(other.most).map(|(most, other)| most.max(other)),
        }
    }

    /// The count after each of these pieces has become `each` pieces.
    fn times(self, each: Self) -> Self {
        let most = match (self.most, each.most) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (most, each) => most.zip(each).map(|(most, each)| most.saturating_mul(each)),
        };
        Self { least: self.least.saturating_mul(each.least), most }
    }

    /// The number of groups that these pieces form: one, if there are any.
    fn one_group(self) -> Self {
        Self { least: self.least.min(1), most: Some(self.most.map_or(1, |most| most.min(1))) }
    }

    /// The count in words: `2`, `0 to 2`, `any number`.
    pub fn in_words(self) -> String {
        match self {
            Self { least, most: Some(most) } if least == most => most.to_string(),
            Self { least, most: Some(most) } if least + 1 == most => format!("{least} or {most}"),
            Self { least, most: Some(most) } => format!("{least} to {most}"),
            Self { least: 0, most: None } => "any number".to_owned(),
            Self { least, most: None } => format!("{least} or more"),
        }
    }
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.zip(other.most).map(|(most, other)| most.saturating_add(other)),
        }
    }
}

/// A stage that splits or copies units, together with a stage where their pieces come together again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The stage that splits, by its index.
    pub fork: usize,
    /// The stage that gathers, by its index.
    pub join: usize,
    /// The paths from the fork to the join, each with its first stage and the number of pieces that take it.
    pub ways: Vec<(usize, Count)>,
    /// The number of pieces of one unit that come to the join.
    pub pieces: Count,
}

/// The joins of a flow, in the order of the stages.
pub fn joins(stages: &[StageSpec]) -> Vec<Join> {
    let mut graph = Graph::new(stages);
    (0..stages.len()).filter(|stage| gather(&stages[*stage]).is_some()).flat_map(|join| graph.joins_at(join)).collect()
}

fn gather(stage: &StageSpec) -> Option<&GatherSpec> {
    match &stage.op {
        OpSpec::Gather(spec) => Some(spec),
        _ => None,
    }
}

/// Refuses joins by a text that differs from unit to unit, if no group can ever have the units that it waits for and
/// nothing else ends its wait.
pub(super) fn check(stages: &[StageSpec], source: &SourceSpec, group: usize) -> Vec<Problem> {
    let hopeless = waiting(stages, source, group)
        .into_iter()
        .filter(|waiting| waiting.is_unlimited && waiting.most().is_some_and(|most| most < waiting.units))
        .filter(|waiting| !waiting.spans_inputs);
    hopeless.map(|waiting| waiting.refuse(stages)).collect()
}

/// Warns of joins by a text that differs from unit to unit, if the data decide whether a group gets the units that it
/// waits for. There is no warning if the flow limits the wait by `wait`, `bytes` or `max_groups`.
pub(super) fn warn(stages: &[StageSpec], source: &SourceSpec, group: usize) -> Vec<Problem> {
    let open = waiting(stages, source, group)
        .into_iter()
        .filter(|waiting| waiting.spans_inputs || waiting.most().is_none_or(|most| most >= waiting.units))
        .filter(|waiting| waiting.join.pieces.least < waiting.units && waiting.is_unlimited);
    open.map(|waiting| waiting.warn(stages)).collect()
}

/// A join by a text that differs from unit to unit, with the number of units for which a group waits.
struct Waiting {
    join: Join,
    units: u64,
    is_unlimited: bool,
    /// Whether files below different INPUTs may have the same text, because the flow takes every INPUT and the text is
    /// only the part of a path below its INPUT.
    spans_inputs: bool,
}

fn waiting(stages: &[StageSpec], source: &SourceSpec, group: usize) -> Vec<Waiting> {
    let mut found = Vec::new();
    // Only a walk yields each path once. With other sources, a path does not identify one unit.
    let SourceSpec::Walk { root, .. } = source else { return found };
    if group > 1 {
        return found;
    }
    let takes_all_inputs = root.is_only(&Field::Input);
    let keyed = stages.iter().enumerate().filter_map(|(index, stage)| {
        let spec = gather(stage)?;
        let (GatherBy::Key(key), Some(units)) = (&spec.by, spec.units) else { return None };
        Some((index, spec, key, units))
    });
    let mut keyed = keyed.peekable();
    if keyed.peek().is_none() {
        return found;
    }
    let mut graph = Graph::new(stages);
    for (index, spec, key, units) in keyed {
        // If the key has a field other than a path, the pieces of one unit may go to different groups, so a group may
        // get fewer pieces than the unit has.
        let is_by_unit_alone = key.fields().all(|(field, _)| is_path(field));
        let is_unlimited = spec.wait.is_none() && spec.bytes.is_none() && spec.max_groups.is_none();
        for join in graph.joins_at(index) {
            // A copy has the fields of its file as its own; any other piece has them as fields of its parent.
            let is_copy = stages[join.fork].op.copies().is_some();
            let tells_apart = |field: &Field| is_path(field) && (is_copy || matches!(field, Field::Parent(_)));
            let spans_inputs =
                takes_all_inputs && key.fields().all(|(field, _)| !tells_apart(field) || is_below_input(field));
            if key.fields().any(|(field, _)| tells_apart(field)) && graph.is_plain(&join) {
                let least = if is_by_unit_alone { join.pieces.least } else { 0 };
                let join = Join { pieces: Count { least, ..join.pieces }, ..join };
                found.push(Waiting { join, units, is_unlimited, spans_inputs });
            }
        }
    }
    found
}

/// Whether the field is the path of a file of the source. A copy has the path as its own field, any other piece as a
/// field of its parent.
fn is_path(field: &Field) -> bool {
    match field {
        Field::Path | Field::Rel => true,
        Field::Parent(field) => matches!(**field, Field::Path | Field::Rel),
        _ => false,
    }
}

/// Whether the field is the part of a path below an INPUT.
fn is_below_input(field: &Field) -> bool {
    match field {
        Field::Rel => true,
        Field::Parent(field) => **field == Field::Rel,
        _ => false,
    }
}

impl Waiting {
    fn most(&self) -> Option<u64> {
        self.join.pieces.most
    }

    fn refuse(self, stages: &[StageSpec]) -> Problem {
        let (fork, join) = (&stages[self.join.fork], &stages[self.join.join]);
        let pieces = self.join.pieces.in_words();
        let message = format!(
            "no group of `{}` ever has {} units: `{}` sends it {pieces} of each file, and `by` tells the files apart",
            join.name, self.units, fork.name
        );
        let most = self.most().unwrap_or(0);
        let mut help = "write in its place, for example\n  by = \"parent\"\n    without `units`: a group is closed when no other piece of its file is in the flow".to_owned();
        if most > 0 {
            help += &format!("\n  units = {most}\n    a group is closed when it has all that comes");
        }
        self.labeled(stages, Problem::new(message)).help(help)
    }

    fn warn(self, stages: &[StageSpec]) -> Problem {
        let (fork, join) = (&stages[self.join.fork], &stages[self.join.join]);
        let pieces = self.join.pieces.in_words();
        let what = if self.spans_inputs {
            "the group of a file below one INPUT alone"
        } else {
            "the group of a file with fewer"
        };
        let message = format!(
            "`{}` waits for {} units of each file, and `{}` sends it {pieces}: {what} waits for the end of the run",
            join.name, self.units, fork.name
        );
        let help = "write in its place, for example\n  by = \"parent\"\n    without `units`: a group is closed when no other piece of its file \
                    is in the flow\n  wait = \"1m\"\n    a group is closed after a minute\n  max_groups = 100000\n    beyond that number, the oldest group is \
                    closed"
            .to_owned();
        self.labeled(stages, Problem::new(message)).help(help)
    }

    /// Points at the join, at the fork, and at the first stage of each path.
    fn labeled(&self, stages: &[StageSpec], problem: Problem) -> Problem {
        let (fork, join) = (&stages[self.join.fork], &stages[self.join.join]);
        let mut problem = problem.at(join.op_span.clone(), format!("waits for {}", self.units));
        problem = problem.at(fork.op_span.clone(), "forks");
        for (stage, count) in &self.join.ways {
            problem = problem.at(stages[*stage].span.clone(), format!("brings {}", count.in_words()));
        }
        problem
    }
}

/// The depth at which paths are no longer followed; the count beyond it is taken to depend on the data.
const MAX_DEPTH: usize = 2048;

/// The number of steps, for all joins together, after which paths are no longer followed.
const MAX_STEPS: usize = 1 << 20;

/// The maximum number of forks that are searched for one join. Only a join with a single fork can be refused or
/// reported.
const MAX_FORKS: usize = 8;

/// The stages with the number of pieces that go from one to another.
struct Graph<'a> {
    stages: &'a [StageSpec],
    /// For each stage, the stages to which a unit may go next.
    exits: Vec<Vec<usize>>,
    /// For each pair of stages, whether the units of the first, or units made from them, may reach the second.
    after: Vec<Vec<bool>>,
    /// The known counts from a stage to a join; `None` while one is being determined.
    counts: HashMap<(usize, usize), Option<Count>>,
    /// The joins by parent of a fork, each with the number of groups per unit; `None` while they are being determined.
    inner: HashMap<usize, Option<Vec<(usize, Count)>>>,
    depth: usize,
    steps: usize,
}

impl<'a> Graph<'a> {
    fn new(stages: &'a [StageSpec]) -> Self {
        let index: HashMap<&str, usize> =
            stages.iter().enumerate().map(|(index, stage)| (stage.name.as_str(), index)).collect();
        let exits: Vec<Vec<usize>> = stages
            .iter()
            .map(|stage| match stage.op.copies() {
                Some(copies) => copies.iter().map(|name| index[&**name]).collect(),
                None => stage.next.iter().chain(&stage.otherwise).map(|name| index[name.as_str()]).collect(),
            })
            .collect();
        let after = (0..stages.len()).map(|stage| reached(&exits, &exits[stage], None)).collect();
        Self { stages, exits, after, counts: HashMap::new(), inner: HashMap::new(), depth: 0, steps: 0 }
    }

    fn is_fork(&self, stage: usize) -> bool {
        matches!(self.stages[stage].op, OpSpec::Split(_))
    }

    fn is_by_parent(&self, stage: usize) -> bool {
        gather(&self.stages[stage]).is_some_and(|spec| spec.by == GatherBy::Parent)
    }

    /// Returns one [`Join`] for each fork whose pieces come to the stage `join`, up to [`MAX_FORKS`].
    fn joins_at(&mut self, join: usize) -> Vec<Join> {
        let forks = (0..self.stages.len()).filter(|stage| self.is_fork(*stage) && self.after[*stage][join]);
        let forks: Vec<usize> = forks.collect();
        let joins = forks.into_iter().map(|fork| {
            let ways = self.ways(fork, join);
            let pieces = sum(&ways);
            Join { fork, join, ways, pieces }
        });
        joins.filter(|join| join.pieces.most != Some(0)).take(MAX_FORKS).collect()
    }

    /// The paths from a fork to a join, each with the number of pieces of one unit that take this path.
    fn ways(&mut self, fork: usize, join: usize) -> Vec<(usize, Count)> {
        let pieces = if self.stages[fork].op.copies().is_some() { Count::exactly(1) } else { Count::ANY };
        let exits = self.exits[fork].clone();
        exits.into_iter().map(|exit| (exit, pieces.times(self.arrivals(exit, join)))).collect()
    }

    /// The number of units that reach the join for each unit that reaches the stage. Units that a `gather` in between
    /// makes are not counted.
    fn arrivals(&mut self, stage: usize, join: usize) -> Count {
        if stage == join {
            return Count::exactly(1);
        }
        // A group is a new unit, which is not counted.
        if gather(&self.stages[stage]).is_some() || !self.after[stage][join] {
            return Count::NONE;
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Count::ANY;
        }
        match self.counts.get(&(stage, join)) {
            Some(Some(count)) => return *count,
            // The count is being determined already: the stages form a cycle.
            Some(None) => return Count::ANY,
            None if self.depth == MAX_DEPTH => return Count::ANY,
            None => {}
        }
        self.depth += 1;
        self.counts.insert((stage, join), None);
        let mut count = if self.is_fork(stage) { self.through(stage, join) } else { self.along(stage, join) };
        if self.stages[stage].after_failure == AfterFailure::Skip {
            count.least = 0;
        }
        self.counts.insert((stage, join), Some(count));
        self.depth -= 1;
        count
    }

    /// The [`arrivals`](Self::arrivals) from a stage that sends each unit to one of its exits.
    fn along(&mut self, stage: usize, join: usize) -> Count {
        let spec = &self.stages[stage];
        let leaves = spec.next.is_none() || spec.op.has_else() && spec.otherwise.is_none();
        let exits = self.exits[stage].clone();
        let counts: Vec<Count> = exits.into_iter().map(|exit| self.arrivals(exit, join)).collect();
        counts.into_iter().chain(leaves.then_some(Count::NONE)).reduce(Count::or).unwrap_or(Count::NONE)
    }

    /// The [`arrivals`](Self::arrivals) from a fork. They are the pieces of the fork, which do not count if the join is
    /// by parent, and the groups that earlier joins make of these pieces.
    fn through(&mut self, fork: usize, join: usize) -> Count {
        let pieces = if self.is_by_parent(join) { Count::NONE } else { sum(&self.ways(fork, join)) };
        let Some(inner) = self.inner_joins(fork) else { return Count::ANY };
        self.steps += inner.len();
        inner.into_iter().filter(|(inner, _)| *inner != join).fold(pieces, |sum, (inner, groups)| {
            let next = self.exits[inner].first().copied();
            sum + next.map_or(Count::NONE, |next| groups.times(self.arrivals(next, join)))
        })
    }

    /// The joins by parent of a fork, each with the number of groups that one unit forms there; `None` in a cycle.
    fn inner_joins(&mut self, fork: usize) -> Option<Vec<(usize, Count)>> {
        if let Some(known) = self.inner.get(&fork) {
            return known.clone();
        }
        if self.steps > MAX_STEPS {
            return None;
        }
        self.inner.insert(fork, None);
        let joins: Vec<usize> =
            (0..self.stages.len()).filter(|stage| self.is_by_parent(*stage) && self.after[fork][*stage]).collect();
        let groups = joins.into_iter().map(|join| (join, sum(&self.ways(fork, join)).one_group()));
        let groups: Vec<(usize, Count)> = groups.filter(|(_, groups)| groups.most != Some(0)).collect();
        self.inner.insert(fork, Some(groups.clone()));
        Some(groups)
    }

    /// Whether the fork gets each unit of the source at most once and nothing else, the join gets only pieces of the
    /// fork, and no stage between them splits or gathers.
    fn is_plain(&self, join: &Join) -> bool {
        let (fork, join) = (join.fork, join.join);
        let changes = |stage: usize| self.is_fork(stage) || gather(&self.stages[stage]).is_some();
        let mut stages = 0..self.stages.len();
        let is_plain = stages.all(|stage| {
            let is_before = self.after[stage][fork];
            let is_between = self.after[fork][stage] && self.after[stage][join] && stage != join && stage != fork;
            !(is_before && (changes(stage) || stage == fork) || is_between && changes(stage))
        });
        is_plain && !reached(&self.exits, &[0], Some(fork))[join]
    }
}

fn sum(ways: &[(usize, Count)]) -> Count {
    ways.iter().fold(Count::NONE, |sum, (_, count)| sum + *count)
}
