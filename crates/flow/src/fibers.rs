//! The fibers of a flow at one moment, grouped by what they wait for.

use std::fmt;
use std::time::Duration;

use millstream_fiber::{Dump, Report, StackReport, State};

/// The fibers of a flow, as [`Control::fibers`](crate::Control::fibers) finds them.
///
/// [`Display`](fmt::Display) shows equal fibers as a group: the same stage, waiting at the same call.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Fibers {
    /// The groups, the largest first.
    pub groups: Vec<FiberGroup>,
    /// The size of each fiber's stack, in bytes of address space; 0 before the first fiber.
    pub stack_bytes: u64,
    /// The greatest depth that any stack has reached, in bytes.
    pub deepest_bytes: u64,
    /// Fibers that kept their thread for more than 10 ms, or could not be started.
    pub trouble: FiberTrouble,
}

/// Fibers that do the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FiberGroup {
    /// The stage, or the name that the stage's code gave a fiber of its own.
    pub stage: String,
    /// The number of fibers.
    pub fibers: u64,
    /// `running`, `ready`, `unstarted`, or the reason of the wait.
    pub doing: String,
    /// The call that waits, as `file:line:column`.
    pub at: Option<String>,
    /// The longest of the waits so far, in nanoseconds.
    pub longest_ns: u64,
    /// Some of the units, up to [`FiberGroup::UNITS`], those that have waited longest first.
    pub units: Vec<u64>,
    /// The greatest depth of a stack, in bytes, rounded up to pages.
    pub deepest_bytes: u64,
    /// The fibers will unwind at their next wait.
    pub cancelled: bool,
}

impl FiberGroup {
    /// The most units that a group names.
    pub const UNITS: usize = 5;
}

/// Fibers that held others up, or could not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FiberTrouble {
    /// How often a fiber kept its thread for more than 10 ms without a wait.
    pub stalls: u64,
    /// The latest of these, in words.
    pub latest_stall: Option<String>,
    /// How often a fiber could not be started.
    pub refused: u64,
    /// The latest reason.
    pub latest_refusal: Option<String>,
}

impl FiberTrouble {
    /// Notes what the runtime reports.
    pub(crate) fn note(&mut self, report: &Report) {
        match report {
            // The advice of the runtime is for the code of a stage, which a reader of this may not have written.
            Report::Stalled { fiber, unit, since, .. } => {
                let unit = unit.map_or_else(String::new, |unit| format!(" (unit {unit})"));
                let ms = since.as_millis();
                let stall =
                    format!("fiber `{fiber}`{unit} has kept its thread for {ms} ms, and others waited for that");
                self.stalls += 1;
                self.latest_stall = Some(stall);
            }
            _ => self.refuse(report.to_string()),
        }
    }

    pub(crate) fn refuse(&mut self, text: String) {
        self.refused += 1;
        self.latest_refusal = Some(text);
    }
}

impl Fibers {
    /// The number of fibers.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.groups.iter().map(|group| group.fibers).sum()
    }

    /// The number of fibers, the depth of their stacks, and their trouble, in words.
    #[must_use]
    pub fn summary(&self) -> String {
        let fibers = self.total();
        let mut text = format!("{fibers} fiber{}", if fibers == 1 { "" } else { "s" });
        if self.stack_bytes > 0 {
            let (deepest, all) = (self.deepest_bytes.div_ceil(1024), self.stack_bytes / 1024);
            text += &format!(", the deepest stack so far {deepest} of {all} KiB");
        }
        let FiberTrouble { stalls, latest_stall, refused, latest_refusal } = &self.trouble;
        if let Some(latest) = latest_stall {
            text += &format!("\nstalled {stalls} ×, the latest: {latest}");
        }
        if let Some(latest) = latest_refusal {
            text += &format!("\nnot started {refused} ×, the latest: {latest}");
        }
        text
    }

    pub(crate) fn of(dump: Option<&Dump>, stacks: Option<StackReport>, trouble: FiberTrouble) -> Self {
        let mut found: Vec<(FiberGroup, Vec<(u64, u64)>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for fiber in dump.into_iter().flat_map(|dump| &dump.fibers) {
            let (doing, at, since) = match fiber.state {
                State::Waiting { reason, at, since } => (reason.to_string(), Some(at.to_string()), since),
                State::Running => ("running".to_owned(), None, Duration::ZERO),
                State::Ready => ("ready".to_owned(), None, Duration::ZERO),
                _ => ("unstarted".to_owned(), None, Duration::ZERO),
            };
            let stage = fiber.name.as_deref().unwrap_or("(unnamed)").to_owned();
            let key = (stage, doing, at, fiber.is_cancelled);
            let place = *places.entry(key).or_insert_with_key(|(stage, doing, at, cancelled)| {
                let (stage, doing, at, cancelled) = (stage.clone(), doing.clone(), at.clone(), *cancelled);
                found.push((FiberGroup { stage, doing, at, cancelled, ..FiberGroup::default() }, Vec::new()));
                found.len() - 1
            });
            let (group, units) = &mut found[place];
            let since_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
            group.fibers += 1;
            group.longest_ns = group.longest_ns.max(since_ns);
            group.deepest_bytes = group.deepest_bytes.max(fiber.stack_used_bytes.unwrap_or(0) as u64);
            units.extend(fiber.unit.map(|unit| (since_ns, unit)));
        }
        let mut groups: Vec<FiberGroup> = found
            .into_iter()
            .map(|(mut group, mut units)| {
                units.sort_unstable_by_key(|&(since_ns, unit)| (std::cmp::Reverse(since_ns), unit));
                group.units = units.into_iter().take(FiberGroup::UNITS).map(|(_, unit)| unit).collect();
                group
            })
            .collect();
        groups.sort_by(|a, b| b.fibers.cmp(&a.fibers).then_with(|| a.stage.cmp(&b.stage)));
        let (stack_bytes, deepest_bytes) =
            stacks.map_or((0, 0), |stacks| (stacks.stack_bytes as u64, stacks.high_water_bytes as u64));
        Fibers { groups, stack_bytes, deepest_bytes, trouble }
    }
}

impl fmt::Display for Fibers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        self.groups.iter().try_for_each(|group| write!(f, "\n{group}"))
    }
}

impl fmt::Display for FiberGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6} × `{}` {}", self.fibers, self.stage, self.doing)?;
        if let Some(at) = &self.at {
            write!(f, " at {at}, for up to {:.1?}", Duration::from_nanos(self.longest_ns))?;
        }
        if self.deepest_bytes > 0 {
            write!(f, ", stack up to {} KiB", self.deepest_bytes / 1024)?;
        }
        if self.cancelled {
            f.write_str(", cancelled")?;
        }
        let [units @ .., last] = &self.units[..] else { return Ok(()) };
        f.write_str(if units.is_empty() { ", unit " } else { ", units " })?;
        units.iter().try_for_each(|unit| write!(f, "{unit}, "))?;
        write!(f, "{last}{}", if self.fibers > self.units.len() as u64 { ", …" } else { "" })
    }
}
