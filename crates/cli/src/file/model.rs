//! The contents of a flow file, after it has been checked.
//!
//! A [`FlowFile`] is plain data: every name in it resolves, every size and time is a number, every template parses and has
//! its `{param.…}` fields filled in. Nothing here knows how a flow runs; [`crate::wire`] turns it into an engine flow,
//! [`crate::ops`] turns an [`OpSpec`] into code. The `span`s are byte ranges of [`FlowFile::text`], for errors that are found
//! later and still want to point at the line.

mod condition;
mod op;
mod pieces;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::condition::{Bound, Condition, TextTest};
pub(crate) use self::op::{
    CheckField, ExecSpec, ExecStderr, ExecStdin, ExecStdout, Fresh, HttpSpec, MaxBytes, Method, OpSpec, ParseFormat,
    ZstdMode,
};
pub(crate) use self::pieces::{Fold, GatherBy, GatherSpec, Reduce, SplitBy, SplitSpec};
use super::error::{Problem, Refusal};
use super::halt::HaltPolicy;
use super::template::{Field, Template};
use crate::payload::PIECE;

/// The engine's limits, which hold for flow files, too.
pub(crate) use millstream_flow::{DEFAULT_INFLIGHT, MAX_FIBERS, MAX_WORKERS};

/// A checked flow file.
#[derive(Debug, Clone)]
pub(crate) struct FlowFile {
    /// Where the file was read from, as it was given.
    pub path: PathBuf,
    /// The whole text, which every `span` indexes.
    pub text: Arc<str>,
    /// `name`, or the file's stem.
    pub name: String,
    /// The cap on units in flight; at least 1.
    pub inflight: u64,
    /// The cap on bytes in flight; none when absent.
    pub memory: Option<u64>,
    /// Threads that serve the stages; the machine's parallelism when absent.
    pub workers: Option<usize>,
    /// When the run halts, because units fail.
    pub halt: Option<HaltPolicy>,
    /// The state of the machine in which programs start.
    pub machine: MachineSpec,
    /// `[params]`, with the values given by `-p` in place of the defaults.
    pub params: BTreeMap<String, String>,
    /// `[resources]`, in the file's order.
    pub resources: Vec<ResourceSpec>,
    /// `[source]`.
    pub source: SourceSpec,
    /// Items of the source in one unit; 1 without `group`, and with one of bytes.
    pub group: usize,
    /// Where `[source]` stands in the text.
    pub source_span: Range<usize>,
    /// `[[stage]]`, in the file's order; at least one. Units enter at the first.
    pub stages: Vec<StageSpec>,
    /// Where `{input}` is used first; absent when the flow runs without an INPUT.
    pub input_span: Option<Range<usize>>,
    /// Harmless oddities that were hardly meant, such as a resource that no stage needs.
    pub warnings: Vec<Problem>,
}

/// `machine`: the state of the machine in which programs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MachineSpec {
    /// Runnable threads, at which none starts.
    pub load: Option<u64>,
    /// Bytes of available memory, below which none starts.
    pub memory_free: Option<u64>,
}

impl FlowFile {
    /// The largest payload that is brought into memory where an op can do without: an eighth of the byte budget, so that
    /// several units are in flight however large they are. Where the budget is small, what streaming itself takes.
    pub(crate) fn most_in_memory(&self) -> u64 {
        self.memory.map_or(u64::MAX, |memory| (memory / 8).max(PIECE as u64))
    }

    /// The warnings as they are shown on a terminal, if there are any.
    pub(crate) fn render_warnings(&self) -> Option<String> {
        if self.warnings.is_empty() {
            return None;
        }
        Some(Refusal::new(&self.path, self.text.clone(), self.warnings.clone()).render_as_warnings())
    }
}

/// Where units come from.
#[derive(Debug, Clone)]
pub(crate) enum SourceSpec {
    /// `walk = "ROOT"`: one unit a regular file below a folder (or the file itself).
    Walk {
        /// The folder; when it is exactly `{input}`, every INPUT of the command line is walked.
        root: Template,
        /// Take files and folders whose name starts with a dot (default true).
        hidden: bool,
        /// Take files that `.gitignore` and its kin exclude (default true).
        ignored: bool,
        /// Follow symbolic links (default false).
        follow: bool,
        /// Folders and files below the root that are left out, such as the one the flow writes to. One that does not exist, or
        /// lies elsewhere, leaves nothing out.
        except: Vec<Template>,
    },
    /// `lines = "FILE"` or `lines = "-"`: one unit a line.
    Lines {
        /// Standard input or a file.
        from: LinesFrom,
        /// Lines end with a NUL byte instead of a newline, as `find -print0` writes them.
        null: bool,
        /// One unit a block of whole lines, of about as many bytes.
        block: Option<usize>,
    },
    /// `args = true`: one unit an INPUT of the command line.
    Args,
}

/// Where lines are read from.
#[derive(Debug, Clone)]
pub(crate) enum LinesFrom {
    /// Standard input, `"-"`.
    Stdin,
    /// A file.
    File(Template),
}

/// One entry of `[resources]`.
#[derive(Debug, Clone)]
pub(crate) struct ResourceSpec {
    /// The name without `:*`.
    pub name: String,
    /// The kind of resource, and its amount.
    pub kind: ResourceKind,
    /// Whether a unit or a batch takes it.
    pub hold: Hold,
    /// For keyed resources: the most keys remembered at once (the engine's default when absent).
    pub max_keys: Option<u64>,
    /// The key in the text.
    pub span: Range<usize>,
}

/// The kinds of resource a flow file can declare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ResourceKind {
    /// `net = 16`: this number of tokens.
    Tokens(u64),
    /// `"host:*" = 2`: this number of tokens for each key.
    KeyedTokens(u64),
    /// `api = { rate = "50/s", burst = 10 }`: grants in time.
    Rate(RateSpec),
    /// `"host:*" = { rate = "5/s", burst = 2 }`: grants in time for each key.
    KeyedRate(RateSpec),
}

impl ResourceKind {
    /// Whether needs for it name a key.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self, Self::KeyedTokens(_) | Self::KeyedRate(_))
    }

    /// Whether it is a rate, which is spent and never given back.
    pub(crate) fn is_rate(&self) -> bool {
        matches!(self, Self::Rate(_) | Self::KeyedRate(_))
    }

    /// The largest amount one need can ever be granted: tokens, or a rate's burst.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Tokens(tokens) | Self::KeyedTokens(tokens) => *tokens,
            Self::Rate(rate) | Self::KeyedRate(rate) => rate.burst,
        }
    }
}

/// `{ rate = "50/s", burst = 10 }`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateSpec {
    /// Grants a second; greater than zero.
    pub per_second: f64,
    /// Grants that may come at once after a pause; at least 1, the default.
    pub burst: u64,
}

/// Who takes a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// `hold = "unit"`, the default: every unit takes its own.
    Unit,
    /// `hold = "batch"`: taken once for a whole batch of units, as a database connection is.
    Batch,
}

/// One `[[stage]]`.
#[derive(Debug, Clone)]
pub(crate) struct StageSpec {
    /// Unique in the flow.
    pub name: String,
    /// The work of the stage.
    pub op: OpSpec,
    /// The needs of a unit in this stage.
    pub needs: Vec<NeedSpec>,
    /// `retry`; no retries when absent.
    pub retry: Option<RetrySpec>,
    /// The longest one attempt may take.
    pub timeout: Option<Duration>,
    /// Whether the op may be run again on the same unit; the op's own nature when absent.
    pub idempotent: Option<bool>,
    /// Fewest and most workers at once; 0 to all of them when absent.
    pub workers: Option<(WorkersBound, WorkersBound)>,
    /// Whether the stage runs beside the CPU workers; the op's own nature when absent.
    pub blocking: Option<bool>,
    /// The fibers on which the units run; threads when absent.
    pub fibers: Option<FibersSpec>,
    /// Units a worker takes at once; when absent, as many as the stage does in a few microseconds by measured time.
    pub batch: Option<BatchSpec>,
    /// The queue's bound; the engine's default when absent.
    pub queue: Option<u64>,
    /// The fate of a unit that has failed for good.
    pub after_failure: AfterFailure,
    /// Where units go next. When the file does not say, the stage that follows in the file, or retirement after the last;
    /// here always resolved: `None` is retirement.
    pub next: Option<String>,
    /// For an op that [has one](OpSpec::has_else): the second exit; `None` retires the units that take it.
    pub otherwise: Option<String>,
    /// The unit's fields that the stage's templates use, and where in the text.
    pub fields: Vec<(Field, Range<usize>)>,
    /// The stage's name in the text.
    pub span: Range<usize>,
    /// The place of the op's name in the text.
    pub op_span: Range<usize>,
    /// For [`OpSpec::Exec`]: what `exec` says, in the text.
    pub exec_span: Option<Range<usize>>,
}

/// `fibers = 1000`, with `stack = "256KiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FibersSpec {
    /// The most units at once.
    pub most: usize,
    /// The size of a stack, in bytes of address space.
    pub stack_bytes: usize,
}

/// An end of `workers = "1..cores"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkersBound {
    /// A number.
    Count(usize),
    /// `cores`: as many as the flow has workers.
    Cores,
}

impl WorkersBound {
    /// The number it stands for in a flow of `workers` threads.
    pub(crate) fn resolve(self, workers: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Cores => workers,
        }
    }
}

/// One entry of a stage's `needs`.
#[derive(Debug, Clone)]
pub(crate) struct NeedSpec {
    /// The resource's name, which exists.
    pub resource: String,
    /// For a keyed resource: what names the key, `{host}` in `"host:{host}"`.
    pub key: Option<Template>,
    /// How much; at least 1 and never more than the resource has.
    pub amount: u64,
    /// Held until the unit leaves this stage, later in the flow; `None` gives it back when the unit leaves the stage that asked.
    pub until: Option<String>,
    /// The need's key in the text.
    pub span: Range<usize>,
}

/// `retry = { times = 3, backoff = "100ms..5s" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetrySpec {
    /// Attempts after the first; at least 1.
    pub times: u32,
    /// The first pause and the longest; it doubles in between. Default 100 ms to 5 s.
    pub backoff: Range<Duration>,
}

/// `batch = { size = 16, wait = "5ms" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchSpec {
    /// Most units a worker takes at once; at least 1.
    pub size: usize,
    /// How long a worker waits for a batch to fill; zero, the default, takes what is there.
    pub wait: Duration,
}

/// `after_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AfterFailure {
    /// `"dead-letter"`: the unit is kept with its reason.
    #[default]
    DeadLetter,
    /// `"skip"`: the unit is retired as skipped.
    Skip,
    /// `"stop"`: the unit is dead-lettered and the flow admits no more.
    Stop,
}
