//! The joins of a flow and the groups that wait there, as text and as JSON.

use millstream_command::screen::text;
use millstream_command::time;
use millstream_flow::{DEFAULT_MAX_GROUPS, Plan};
use millstream_runner::file::joins::{Count, Join, joins};
use millstream_runner::file::model::{FlowFile, GatherBy, GatherSpec, OpSpec, Reduce};
use serde::Serialize;

/// The maximum number of a fork's paths that the page names.
const MAX_WAYS: usize = 8;

/// A stage that gathers, with the maximum numbers of groups and bytes that wait there.
#[derive(Debug, Serialize)]
pub(super) struct Gathering<'a> {
    stage: &'a str,
    /// `parent`, `text` or `all`.
    by: &'static str,
    /// The maximum number of groups that are open at once.
    max_groups: u64,
    /// The number of content bytes at which the oldest group is closed; `null` if there is no such limit.
    max_bytes: Option<u64>,
    forks: Vec<Fork<'a>>,
    #[serde(skip)]
    spec: &'a GatherSpec,
}

/// A stage whose pieces come to the join.
#[derive(Debug, Serialize)]
struct Fork<'a> {
    stage: &'a str,
    /// The minimum and the maximum number of pieces that come from one unit; the maximum is `null` if it depends on the
    /// data.
    pieces: [Option<u64>; 2],
    ways: Vec<Way<'a>>,
    #[serde(skip)]
    count: Count,
}

#[derive(Debug, Serialize)]
struct Way<'a> {
    /// The first stage after the fork.
    stage: &'a str,
    pieces: [Option<u64>; 2],
    #[serde(skip)]
    count: Count,
}

/// The stages that gather.
pub(super) fn gatherings<'a>(file: &'a FlowFile, plan: &Plan) -> Vec<Gathering<'a>> {
    let joins = joins(&file.stages);
    let splits = file.stages.iter().filter(|stage| matches!(stage.op, OpSpec::Split(_))).count() as u64;
    let gathers = file.stages.iter().enumerate().filter_map(|(index, stage)| match &stage.op {
        OpSpec::Gather(spec) => Some((index, stage, spec)),
        _ => None,
    });
    gathers
        .map(|(index, stage, spec)| {
            let (by, max_groups) = match spec.by {
                GatherBy::Parent => ("parent", plan.inflight.saturating_add(splits)),
                GatherBy::Key(_) => ("text", spec.max_groups.unwrap_or(DEFAULT_MAX_GROUPS)),
                GatherBy::All => ("all", 1),
            };
            let half = Some(plan.memory / 2).filter(|_| plan.memory != u64::MAX && spec.by != GatherBy::Parent);
            let forks = joins.iter().filter(|join| join.join == index).map(|join| Fork::of(file, join)).collect();
            Gathering { stage: &stage.name, by, max_groups, max_bytes: half, forks, spec }
        })
        .collect()
}

impl<'a> Fork<'a> {
    fn of(file: &'a FlowFile, join: &Join) -> Self {
        let range = |count: Count| [Some(count.least), count.most];
        let way = |(stage, count): &(usize, Count)| Way {
            stage: &file.stages[*stage].name,
            pieces: range(*count),
            count: *count,
        };
        Self {
            stage: &file.stages[join.fork].name,
            pieces: range(join.pieces),
            ways: join.ways.iter().map(way).collect(),
            count: join.pieces,
        }
    }

    fn in_words(&self) -> String {
        let name = text::printable(self.stage);
        let pieces = match self.count {
            Count { least: 0, most: None } => "all pieces".to_owned(),
            Count { most: Some(1), .. } => format!("{} piece", self.count.in_words()),
            _ => format!("{} pieces", self.count.in_words()),
        };
        let said = format!("{pieces} of each unit of `{name}`");
        if self.ways.len() < 2 {
            return said;
        }
        let ways = self.ways.iter().filter(|way| way.count.most != Some(0));
        let mut ways: Vec<String> =
            ways.map(|way| format!("{} by `{}`", way.count.in_words(), text::printable(way.stage))).collect();
        let others = ways.len().saturating_sub(MAX_WAYS);
        if others > 1 {
            ways.truncate(MAX_WAYS);
            ways.push(format!("some by {others} others"));
        }
        format!("{said}, {}", ways.join(" and "))
    }
}

impl Gathering<'_> {
    /// The name of the join, the number of pieces, the waiting groups and their contents.
    pub(super) fn in_words(&self, plan: &Plan) -> (&str, String) {
        let come: Vec<String> = self.forks.iter().map(Fork::in_words).collect();
        let come = if come.is_empty() { String::new() } else { format!("joins {}. ", come.join(", and ")) };
        let groups = text::counted(self.max_groups, "group");
        let waits = match self.spec.by {
            GatherBy::Parent => {
                format!("At most {groups} wait, each until no other piece of its unit is in the flow.")
            }
            GatherBy::Key(_) => {
                format!("At most {groups} wait, each {}; beyond that number, the oldest is closed early.", self.ends())
            }
            GatherBy::All => format!("One group waits {}.", self.ends()),
        };
        (self.stage, format!("{come}{waits} {}", self.contents(plan)))
    }

    /// The event that ends a group's wait.
    fn ends(&self) -> String {
        let GatherSpec { units, bytes, wait, .. } = self.spec;
        let units = units.map(|units| format!("for {}", text::counted(units, "unit")));
        let bytes = bytes.map(|bytes| format!("for {} of contents", text::bytes(bytes)));
        let wait = wait.map(|wait| format!("for {}", time::show(wait)));
        let ends: Vec<String> = units.into_iter().chain(bytes).chain(wait).collect();
        if ends.is_empty() { "until no unit can come any more".to_owned() } else { ends.join(" or ") }
    }

    fn contents(&self, plan: &Plan) -> String {
        if !matches!(self.spec.reduce, Reduce::Concat { .. }) {
            return "A group keeps no contents.".to_owned();
        }
        match (&self.spec.by, self.max_bytes) {
            (_, Some(half)) => {
                format!("Contents have at most {}, or the oldest group is closed early.", text::bytes(half))
            }
            (GatherBy::Parent, None) if plan.memory != u64::MAX => {
                let memory = text::bytes(plan.memory);
                format!("Contents are in the {memory} of `memory`, which they exceed where one unit needs more.")
            }
            _ => "Contents have no cap: set `memory`, or give `--memory`.".to_owned(),
        }
    }
}
