//! The contents of a flow file, after it has been checked.
//!
//! A [`FlowFile`] is plain data: every name in it resolves, every size and time is a number, every template parses and
//! has its `{param.…}` fields filled in. Nothing here runs a flow: [`crate::wire`] turns a `FlowFile` into an engine
//! flow, and [`crate::ops`] turns an [`OpSpec`] into code. The `span`s are byte ranges of [`FlowFile::text`], so later
//! errors can still point at the line.

mod condition;
mod op;
mod pieces;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::condition::{Bound, Condition, TextTest};
pub use self::op::{
    CheckField, ExecSpec, ExecStderr, ExecStdin, ExecStdout, Fresh, GzipMode, HttpSpec, MaxBytes, Method, OpSpec,
    ParseFormat, ZstdMode,
};
pub use self::pieces::{Fold, GatherBy, GatherSpec, Reduce, SplitBy, SplitSpec};
use super::error::{Problem, Refusal};
use super::halt::HaltPolicy;
use super::names::Names;
use super::template::{Field, Template};
use crate::payload::PIECE;

/// The engine's limits, which apply to flow files as well.
pub use millstream_flow::{DEFAULT_INFLIGHT, MAX_FIBERS, MAX_WORKERS};

/// A checked flow file.
#[derive(Debug, Clone)]
pub struct FlowFile {
    /// The path from which the file was read, as it was given.
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
    /// The condition under which the run halts because units fail; none when absent.
    pub halt: Option<HaltPolicy>,
    /// `machine`: the limits on the machine's load and free memory beyond which no program starts.
    pub machine: MachineSpec,
    /// `[params]`, with the values given by `-p` in place of the defaults.
    pub params: BTreeMap<String, String>,
    /// `[resources]`, in the file's order.
    pub resources: Vec<ResourceSpec>,
    /// `[source]`.
    pub source: SourceSpec,
    /// The number of the source's items in one unit: 1 if `group` is absent or is a number of bytes.
    pub group: usize,
    /// The position of `[source]` in the text.
    pub source_span: Range<usize>,
    /// `[[stage]]`, in the file's order; at least one. Units enter at the first.
    pub stages: Vec<StageSpec>,
    /// The first use of `{input}`; absent if the flow runs without an INPUT.
    pub input_span: Option<Range<usize>>,
    /// Harmless but probably unintended things, such as a resource that no stage needs.
    pub warnings: Vec<Problem>,
}

/// `machine`: the limits on the machine's load and free memory beyond which no program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineSpec {
    /// The number of runnable threads at or above which no program starts; no limit if absent.
    pub load: Option<u64>,
    /// The number of available bytes below which no program starts; no limit if absent.
    pub memory_free: Option<u64>,
}

impl FlowFile {
    /// The largest payload that an op brings into memory although it could stream it: an eighth of the byte budget, but
    /// at least the memory that streaming itself takes. So the budget has room for several units, however large their
    /// payloads are.
    pub fn most_in_memory(&self) -> u64 {
        self.memory.map_or(u64::MAX, |memory| (memory / 8).max(PIECE as u64))
    }

    /// The warnings as they are shown on a terminal, if there are any.
    pub fn render_warnings(&self) -> Option<String> {
        if self.warnings.is_empty() {
            return None;
        }
        Some(Refusal::new(&self.path, self.text.clone(), self.warnings.clone()).render_as_warnings())
    }
}

/// The source of units.
#[derive(Debug, Clone)]
pub enum SourceSpec {
    /// `walk = "ROOT"`: one unit for each regular file below a folder (or for the file itself).
    Walk {
        /// The folder; if it is exactly `{input}`, every INPUT of the command line is walked.
        root: Template,
        /// Take files and folders whose name starts with a dot (default true).
        hidden: bool,
        /// Take files that `.gitignore` and similar files exclude (default true).
        ignored: bool,
        /// Follow symbolic links (default false).
        follow: bool,
        /// Folders and files below the root that are left out, such as the folder to which the flow writes. A path that
        /// does not exist, or is not below the root, has no effect.
        except: Vec<Template>,
        /// Patterns for the names of files; a file that matches none is left out (default: all files are taken).
        names: Names,
    },
    /// `lines = "FILE"` or `lines = "-"`: one unit for each line.
    Lines {
        /// Standard input or a file.
        from: LinesFrom,
        /// Lines end with a NUL byte instead of a newline, as `find -print0` writes them.
        null: bool,
        /// The size of a block of whole lines, in bytes; each block is a unit. If absent, each line is a unit (or an
        /// item of a group).
        block: Option<usize>,
    },
    /// `args = true`: one unit for each INPUT of the command line.
    Args,
}

/// The file from which lines are read.
#[derive(Debug, Clone)]
pub enum LinesFrom {
    /// Standard input, `"-"`.
    Stdin,
    /// A file.
    File(Template),
}

/// One entry of `[resources]`.
#[derive(Debug, Clone)]
pub struct ResourceSpec {
    /// The name without `:*`.
    pub name: String,
    /// The kind of resource, and its amount.
    pub kind: ResourceKind,
    /// Whether each unit or each batch acquires it.
    pub hold: Hold,
    /// For keyed resources: the maximum number of keys remembered at once (the engine's default if absent).
    pub max_keys: Option<u64>,
    /// The position of the key in the text.
    pub span: Range<usize>,
}

/// The kinds of resource a flow file can declare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ResourceKind {
    /// `net = 16`: this number of tokens.
    Tokens(u64),
    /// `"host:*" = 2`: this number of tokens for each key.
    KeyedTokens(u64),
    /// `api = { rate = "50/s", burst = 10 }`: this many grants in a period.
    Rate(RateSpec),
    /// `"host:*" = { rate = "5/s", burst = 2 }`: this many grants in a period, for each key.
    KeyedRate(RateSpec),
}

impl ResourceKind {
    /// Whether the resource has keys. Each need for a resource with keys names a key.
    pub fn is_keyed(&self) -> bool {
        matches!(self, Self::KeyedTokens(_) | Self::KeyedRate(_))
    }

    /// Whether the resource is a rate. Units spend the grants of a rate, and never release them.
    pub fn is_rate(&self) -> bool {
        matches!(self, Self::Rate(_) | Self::KeyedRate(_))
    }

    /// The largest amount that one need can ever be granted: the number of tokens (for each key, if there are keys), or
    /// the burst of a rate.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Tokens(tokens) | Self::KeyedTokens(tokens) => *tokens,
            Self::Rate(rate) | Self::KeyedRate(rate) => rate.burst,
        }
    }
}

/// `{ rate = "50/s", burst = 10 }`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSpec {
    /// Grants per second; greater than zero.
    pub per_second: f64,
    /// Grants that may come at once after a pause; at least 1, the default.
    pub burst: u64,
}

/// The holder of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// `hold = "unit"`, the default: acquired for each unit.
    Unit,
    /// `hold = "batch"`: acquired once for a whole batch of units, as a database connection is.
    Batch,
}

/// One `[[stage]]`.
#[derive(Debug, Clone)]
pub struct StageSpec {
    /// Unique in the flow.
    pub name: String,
    /// The work of the stage.
    pub op: OpSpec,
    /// The needs of a unit in this stage.
    pub needs: Vec<NeedSpec>,
    /// `retry`; no retries when absent.
    pub retry: Option<RetrySpec>,
    /// The maximum duration of an attempt; no limit if absent.
    pub timeout: Option<Duration>,
    /// Whether the op may be run again on the same unit; if absent, the op decides.
    pub idempotent: Option<bool>,
    /// The minimum and maximum number of workers at once; if absent, the op and its needs decide.
    pub workers: Option<(WorkersBound, WorkersBound)>,
    /// Whether the stage has threads of its own, in addition to the flow's workers; if absent, the op decides.
    pub blocking: Option<bool>,
    /// The fibers on which the units run; threads when absent.
    pub fibers: Option<FibersSpec>,
    /// The number of units that a worker takes at once; if absent, the engine derives the number from measured times.
    pub batch: Option<BatchSpec>,
    /// The queue's bound; the engine's default when absent.
    pub queue: Option<u64>,
    /// The fate of a unit that has failed for good.
    pub after_failure: AfterFailure,
    /// The next stage of a unit; `None` means retirement. If the file names no next stage, it is the following one in
    /// the file, or retirement after the last.
    pub next: Option<String>,
    /// The second exit of an op that [has one](OpSpec::has_else); `None` retires the units that leave by it.
    pub otherwise: Option<String>,
    /// The fields of the unit that the stage's templates use, with their positions in the text.
    pub fields: Vec<(Field, Range<usize>)>,
    /// The position of the stage's name in the text.
    pub span: Range<usize>,
    /// The position of the op's name in the text.
    pub op_span: Range<usize>,
    /// For [`OpSpec::Exec`]: the position of the value of `exec` in the text.
    pub exec_span: Option<Range<usize>>,
}

/// `fibers = 1000`, with `stack = "256KiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FibersSpec {
    /// The maximum number of units that the stage runs at once, each on a fiber.
    pub most: usize,
    /// The size of a stack, in bytes of address space.
    pub stack_bytes: usize,
}

/// The minimum or the maximum of a stage's `workers`, such as `1` or `cores` in `workers = "1..cores"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkersBound {
    /// A number.
    Count(usize),
    /// `cores`: as many as the flow has workers.
    Cores,
}

impl WorkersBound {
    /// The number of workers that the bound stands for in a flow with `workers` threads.
    pub fn resolve(self, workers: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Cores => workers,
        }
    }
}

/// One entry of a stage's `needs`.
#[derive(Debug, Clone)]
pub struct NeedSpec {
    /// The name of a resource that the flow file declares.
    pub resource: String,
    /// For a keyed resource: the template of the key, `{host}` in `"host:{host}"`.
    pub key: Option<Template>,
    /// The amount; at least 1, and at most what the resource has.
    pub amount: u64,
    /// The unit holds the amount until it leaves this later stage; `None` means until it leaves the stage of the need.
    pub until: Option<String>,
    /// The position of the need's key in the text.
    pub span: Range<usize>,
}

/// `retry = { times = 3, backoff = "100ms..5s" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySpec {
    /// The number of attempts after the first; at least 1.
    pub times: u32,
    /// The first pause and the longest; the pause doubles in between. Default 100 ms to 5 s.
    pub backoff: Range<Duration>,
}

/// `batch = { size = 16, wait = "5ms" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSpec {
    /// The maximum number of units that a worker takes at once; at least 1.
    pub size: usize,
    /// The time that a worker waits for a batch to fill; with zero, the default, it takes only the units that wait
    /// already.
    pub wait: Duration,
}

/// `after_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterFailure {
    /// `"dead-letter"`: the unit becomes a dead letter, with the reason of its failure.
    #[default]
    DeadLetter,
    /// `"skip"`: the unit is retired as skipped.
    Skip,
    /// `"stop"`: the unit becomes a dead letter, and the flow admits no more units.
    Stop,
}
