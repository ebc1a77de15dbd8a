//! The fibers of a flow at one moment, grouped by the call in which they wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use millstream_fiber::{Backtrace, Dump, Frame, Report, StackReport, State};

/// The fibers of a flow, as [`Control::fibers`](crate::Control::fibers) finds them.
///
/// [`Display`](fmt::Display) shows each group: fibers of one stage that wait in the same call.
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

/// Fibers of one stage in the same state and the same call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FiberGroup {
    /// The stage, or the name of a fiber that the stage's code started.
    pub stage: String,
    /// The number of fibers.
    pub fibers: u64,
    /// `running`, `ready`, `unstarted`, or the reason for the wait.
    pub doing: String,
    /// The call that waits, as `file:line:column`.
    pub at: Option<String>,
    /// The longest of the waits so far, in nanoseconds.
    pub longest_ns: u64,
    /// Up to [`FiberGroup::UNITS`] of the units, in descending order of their waits.
    pub units: Vec<u64>,
    /// The greatest depth of a stack, in bytes, rounded up to pages.
    pub deepest_bytes: u64,
    /// Whether the fibers are cancelled, so that they will unwind at their next wait.
    pub cancelled: bool,
    /// The frames on each stack, the innermost first, as `function at file:line`, without the engine's own frames.
    /// Empty if no backtrace was requested or taken.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub backtrace: Vec<String>,
}

impl FiberGroup {
    /// The maximum number of units that a group names.
    pub const UNITS: usize = 5;

    /// The maximum number of groups whose backtraces are shown: those of the largest groups.
    pub const BACKTRACES: usize = 64;
}

/// Fibers that delayed others, or could not be started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FiberTrouble {
    /// How often a fiber kept its thread for more than 10 ms without a wait.
    pub stalls: u64,
    /// A description of the latest stall.
    pub latest_stall: Option<String>,
    /// The frames on the stack of the fiber that stalled last, as in a [group](FiberGroup::backtrace).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub stalled_at: Vec<String>,
    /// The same frames, before their names are resolved.
    #[cfg_attr(feature = "serde", serde(skip))]
    stalled_in: Option<Backtrace>,
    /// How often a fiber could not be started.
    pub refused: u64,
    /// The latest reason why a fiber could not be started.
    pub latest_refusal: Option<String>,
}

impl FiberTrouble {
    /// Records a report of the runtime.
    pub(crate) fn note(&mut self, report: &Report) {
        match report {
            // The runtime's advice is left out, because it is for the author of the stage's code.
            Report::Stalled { fiber, unit, since, backtrace, .. } => {
                let unit = unit.map_or_else(String::new, |unit| format!(" (unit {unit})"));
                let ms = since.as_millis();
                let stall = format!("fiber `{fiber}`{unit} has kept its thread for {ms} ms and delayed other fibers");
                self.stalls += 1;
                self.latest_stall = Some(match backtrace {
                    Ok(_) => stall,
                    Err(reason) => format!("{stall} (no frames: {reason})"),
                });
                self.stalled_in = backtrace.as_ref().ok().cloned();
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

    /// Describes the number of fibers, the depth of their stacks, and their problems.
    #[must_use]
    pub fn summary(&self) -> String {
        let fibers = self.total();
        let mut text = format!("{fibers} fiber{}", if fibers == 1 { "" } else { "s" });
        if self.stack_bytes > 0 {
            let (deepest, all) = (self.deepest_bytes.div_ceil(1024), self.stack_bytes / 1024);
            text += &format!(", the deepest stack so far {deepest} of {all} KiB");
        }
        let FiberTrouble { stalls, latest_stall, stalled_at, refused, latest_refusal, .. } = &self.trouble;
        if let Some(latest) = latest_stall {
            text += &format!("\nstalled {stalls} ×, the latest: {latest}");
            stalled_at.iter().for_each(|frame| text += &format!("\n           {frame}"));
        }
        if let Some(latest) = latest_refusal {
            text += &format!("\nnot started {refused} ×, the latest: {latest}");
        }
        text
    }

    pub(crate) fn of(dump: Option<&Dump>, stacks: Option<StackReport>, mut trouble: FiberTrouble) -> Self {
        let mut found: Vec<Found<'_>> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for fiber in dump.into_iter().flat_map(|dump| &dump.fibers) {
            let (doing, at, since) = match fiber.state {
                State::Waiting { reason, at, since } => (reason.to_string(), Some(at.to_string()), since),
                State::Running => ("running".to_owned(), None, Duration::ZERO),
                State::Ready => ("ready".to_owned(), None, Duration::ZERO),
                _ => ("unstarted".to_owned(), None, Duration::ZERO),
            };
            let stage = fiber.name.as_deref().unwrap_or("(unnamed)").to_owned();
            let backtrace = fiber.backtrace.as_ref();
            let key = (stage, doing, at, fiber.is_cancelled, backtrace);
            let place = *places.entry(key).or_insert_with_key(|(stage, doing, at, cancelled, _)| {
                let (stage, doing, at, cancelled) = (stage.clone(), doing.clone(), at.clone(), *cancelled);
                let group = FiberGroup { stage, doing, at, cancelled, ..FiberGroup::default() };
                found.push(Found { group, units: Vec::new(), backtrace });
                found.len() - 1
            });
            let Found { group, units, .. } = &mut found[place];
            let since_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
            group.fibers += 1;
            group.longest_ns = group.longest_ns.max(since_ns);
            group.deepest_bytes = group.deepest_bytes.max(fiber.stack_used_bytes.unwrap_or(0) as u64);
            units.extend(fiber.unit.map(|unit| (since_ns, unit)));
        }
        found.sort_by(|Found { group: a, .. }, Found { group: b, .. }| {
            b.fibers.cmp(&a.fibers).then_with(|| a.stage.cmp(&b.stage))
        });
        let shown = found.iter_mut().filter(|found| found.backtrace.is_some()).take(FiberGroup::BACKTRACES);
        shown.for_each(|found| found.group.backtrace = found.backtrace.map(|taken| frames(taken)).unwrap_or_default());
        trouble.stalled_at = trouble.stalled_in.as_ref().map(frames).unwrap_or_default();
        Backtrace::forget_symbols();
        let groups = found.into_iter().map(Found::end).collect();
        let (stack_bytes, deepest_bytes) =
            stacks.map_or((0, 0), |stacks| (stacks.stack_bytes as u64, stacks.high_water_bytes as u64));
        Fibers { groups, stack_bytes, deepest_bytes, trouble }
    }
}

/// A group that is being built.
struct Found<'a> {
    group: FiberGroup,
    /// The waiting times of the fibers in nanoseconds, each with the unit.
    units: Vec<(u64, u64)>,
    backtrace: Option<&'a Arc<Backtrace>>,
}

impl Found<'_> {
    fn end(mut self) -> FiberGroup {
        self.units.sort_unstable_by_key(|&(since_ns, unit)| (std::cmp::Reverse(since_ns), unit));
        self.group.units = self.units.into_iter().take(FiberGroup::UNITS).map(|(_, unit)| unit).collect();
        self.group
    }
}

/// The frames of the stage's code. The engine's frames are left out, because they are the same on each stack.
fn frames(backtrace: &Backtrace) -> Vec<String> {
    const SOURCES: &str = file!().split_at(file!().len() - "fibers.rs".len()).0;
    let is_engine = |frame: &Frame| {
        let name = frame.function.trim_start_matches(['<', '&']);
        name.starts_with("millstream_flow::") || frame.place.as_deref().is_some_and(|place| place.contains(SOURCES))
    };
    let frames = backtrace.frames();
    let own = frames.iter().skip_while(|frame| is_engine(frame)).take_while(|frame| !is_engine(frame));
    own.map(ToString::to_string).collect()
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
        if let [units @ .., last] = &self.units[..] {
            f.write_str(if units.is_empty() { ", unit " } else { ", units " })?;
            units.iter().try_for_each(|unit| write!(f, "{unit}, "))?;
            write!(f, "{last}{}", if self.fibers > self.units.len() as u64 { ", …" } else { "" })?;
        }
        self.backtrace.iter().try_for_each(|frame| write!(f, "\n           {frame}"))
    }
}
