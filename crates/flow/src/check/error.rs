//! The faults that the build of a flow finds.

use std::fmt;

/// One pair of the resource order: stage `stage` asks for `asks` while the unit holds `holds`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldAndAsk {
    /// The resource that a unit may hold when it waits in `stage`.
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

/// A cycle of needs, as the list of its steps.
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

/// The reason why a flow was refused.
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
        "stage `{stage}` has workers {floor}..={ceiling}: the ceiling must be from 1 to {most} and at least the floor"
    )]
    Workers { stage: String, floor: usize, ceiling: usize, most: usize },
    #[error("stage `{stage}` has a stack of {bytes} bytes: it must be from {least} to {most}")]
    Stack { stage: String, bytes: usize, least: usize, most: usize },
    #[error(
        "stage `{stage}` sets the size of a stack, and does not run on fibers: say how many (StageBuilder::fibers)"
    )]
    StackWithoutFibers { stage: String },
    #[error("the flow has zero threads for its fibers: nothing could ever run on one")]
    ZeroFiberThreads,
    #[error("stage `{stage}` has a batch size of {size}: it must be from 1 to {most}")]
    BatchSize { stage: String, size: usize, most: usize },
    #[error("stage `{stage}` has a queue bound of zero: no unit could ever enter it")]
    ZeroQueue { stage: String },
    #[error(
        "stage `{stage}` splits its units and has a queue bound, which its units could not keep: they wait for room in the \
         flow; bound the flow's units in flight instead"
    )]
    QueueAtSplit { stage: String },
    #[error(
        "stage `{stage}` splits its units into `{next}`, whose queue has a bound: a unit may have more children than \
         the queue has slots; drop the bound"
    )]
    QueueAfterSplit { stage: String, next: String },
    #[error(
        "stage `{stage}` holds `{resource}` until `{until}`, but `{split}` on the way there splits its units, and a unit \
         that is split holds nothing: end the hold before `{split}`"
    )]
    HeldThroughSplit { stage: String, resource: String, until: String, split: String },
    #[error(
        "stage `{stage}` holds `{resource}` until `{until}`, but `{gather}` on the way there gathers its units, and a unit \
         that waits in a group holds nothing: end the hold before `{gather}`"
    )]
    HeldThroughGather { stage: String, resource: String, until: String, gather: String },
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
