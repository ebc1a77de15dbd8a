//! The contents of a flow file, after it has been checked.
//!
//! A [`FlowFile`] is plain data: every name in it resolves, every size and time is a number, every template parses and has
//! its `{param.…}` fields filled in. Nothing here knows how a flow runs; [`crate::wire`] turns it into an engine flow,
//! [`crate::ops`] turns an [`OpSpec`] into code. The `span`s are byte ranges of [`FlowFile::text`], for errors that are found
//! later and still want to point at the line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::{Problem, Refusal};
use regex::bytes::Regex;

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

/// The work of a stage.
#[derive(Debug, Clone)]
pub(crate) enum OpSpec {
    /// `read`: the file becomes the payload; its memory is reserved first.
    Read {
        /// The file; default `{path}`.
        path: Template,
        /// The largest file taken.
        max_bytes: Option<u64>,
    },
    /// `write`: the payload becomes a file, under a temporary name that is renamed when complete. Parent folders are made.
    Write {
        /// The file's name.
        path: Template,
        /// Replace an existing file. Without it (and without `skip_existing`) an existing file is a failure and is kept.
        overwrite: bool,
        /// An existing file counts as written, as content-addressed stores want it.
        skip_existing: bool,
        /// The file's permissions, octal.
        mode: Option<Template>,
    },
    /// `blake3`: sets `{blake3}` to the payload's hash.
    Blake3,
    /// `sha256`: sets `{sha256}` to the payload's hash.
    Sha256,
    /// `zstd`: compresses or decompresses the payload.
    Zstd {
        /// Which of the two.
        mode: ZstdMode,
    },
    /// `exec`: runs a program.
    Exec(ExecSpec),
    /// `http-get` and `http`: the response's body becomes the payload. A status of 400 or more is a failure: permanent for 4xx except 408
    /// and 429, retried by policy for the others.
    Http(HttpSpec),
    /// `filter`: units for which the condition does not hold leave by [`StageSpec::otherwise`].
    Filter {
        /// The condition.
        when: Condition,
    },
    /// `unique`: units whose text has come before leave by [`StageSpec::otherwise`].
    Unique {
        /// The text.
        by: Template,
        /// The most texts that are kept.
        max_keys: u64,
    },
    /// `print`: the payload goes to the command's standard output.
    Print {
        /// Precedes every line, with a tab.
        tag: Option<Template>,
        /// Payloads come in the order of admission.
        ordered: bool,
    },
    /// `append`: adds one line a unit to one file, in order of arrival; each batch is flushed.
    Append {
        /// The file, the same for all units.
        path: Template,
        /// The line; a newline is added.
        line: Template,
        /// Whether the file starts empty in every run.
        fresh: Fresh,
    },
    /// `check`: a permanent failure when a field differs from what it should be.
    Check {
        /// The field.
        field: CheckField,
        /// The expected value.
        equals: Template,
    },
    /// `set`: gives fields, or the payload, a value that is made from others.
    Set {
        /// The new payload.
        payload: Option<Template>,
        /// Fields by name, each a `{set.NAME}`.
        fields: Vec<(String, Template)>,
    },
    /// `stream`: a program of streams makes another payload of the payload's values.
    Stream {
        /// The program.
        expression: String,
        /// The largest payload made.
        max_bytes: u64,
    },
    /// `split`: the unit becomes several, one for each piece of its payload.
    Split(SplitSpec),
    /// `gather`: several units become one.
    Gather(GatherSpec),
    /// `parse`: reads the payload, or the line when there is no payload, into fields.
    Parse {
        /// Its format.
        format: ParseFormat,
    },
}

impl OpSpec {
    /// The op's name in a flow file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Zstd { .. } => "zstd",
            Self::Exec(_) => "exec",
            Self::Http(HttpSpec { method: Method::Get, .. }) => "http-get",
            Self::Http(_) => "http",
            Self::Filter { .. } => "filter",
            Self::Unique { .. } => "unique",
            Self::Append { .. } => "append",
            Self::Check { .. } => "check",
            Self::Parse { .. } => "parse",
            Self::Split(SplitSpec { by: SplitBy::Copies(_), .. }) => "copy",
            Self::Split(_) => "split",
            Self::Gather(_) => "gather",
            Self::Print { .. } => "print",
            Self::Set { .. } => "set",
            Self::Stream { .. } => "stream",
        }
    }

    /// The stages that get a copy of each unit, if the stage copies.
    pub(crate) fn copies(&self) -> Option<&[Arc<str>]> {
        match self {
            Self::Split(spec) => spec.copies(),
            _ => None,
        }
    }

    /// Whether the stage has a second exit.
    pub(crate) fn has_else(&self) -> bool {
        matches!(self, Self::Filter { .. } | Self::Unique { .. })
    }

    /// Whether the stage prints what its units have to say.
    pub(crate) fn prints(&self) -> bool {
        match self {
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Print) || matches!(spec.stderr, ExecStderr::Print),
            Self::Print { .. } => true,
            _ => false,
        }
    }

    /// Whether the stage's outputs are printed in the order of admission.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, Self::Exec(ExecSpec { ordered: true, .. }) | Self::Print { ordered: true, .. })
    }

    /// Whether every unit has a payload after it, though that may be empty.
    pub(crate) fn gives_payload(&self) -> bool {
        match self {
            Self::Http(spec) => spec.method != Method::Head,
            Self::Read { .. } | Self::Set { payload: Some(_), .. } | Self::Gather(_) | Self::Stream { .. } => true,
            Self::Split(spec) => spec.copies().is_none(),
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Payload),
            _ => false,
        }
    }

    /// Whether a unit's payload may be larger after it than before.
    pub(crate) fn grows_payload(&self) -> bool {
        match self {
            Self::Http(spec) => spec.method != Method::Head,
            Self::Read { .. } | Self::Zstd { .. } | Self::Set { payload: Some(_), .. } | Self::Stream { .. } => true,
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Payload),
            _ => false,
        }
    }
}

/// The keys of the `exec` op.
#[derive(Debug, Clone)]
pub(crate) struct ExecSpec {
    /// Program and arguments; at least one element. With `shell`, the first is the script and the others are `$1`, `$2`, ….
    pub argv: Vec<Template>,
    /// Run as `/bin/sh -c SCRIPT sh ARGUMENT…`. The parser refuses a unit's fields in the script, because there a file's
    /// name could run commands; as arguments they are safe.
    pub shell: bool,
    /// Its standard input.
    pub stdin: ExecStdin,
    /// Its standard output.
    pub stdout: ExecStdout,
    /// Its standard error.
    pub stderr: ExecStderr,
    /// Precedes every line that is printed, with a tab.
    pub tag: Option<Template>,
    /// Outputs are printed in the order of admission.
    pub ordered: bool,
    /// Variables added to the environment.
    pub env: Vec<(String, Template)>,
    /// Its working folder; this process's when absent.
    pub dir: Option<Template>,
}

/// The keys of the ops `http-get` and `http`.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "the flow is refused, but read in full"))]
pub(crate) struct HttpSpec {
    /// The URL, `http://` or `https://`.
    pub url: Template,
    /// The largest body taken; the op's default when absent.
    pub max_bytes: Option<u64>,
    /// The longest pause that a server's `Retry-After` is obeyed for; the op's default when absent.
    pub max_retry_after: Option<Duration>,
    /// Redirects followed for one unit; the op's default when absent.
    pub max_redirects: Option<u64>,
    /// Whether a redirect from `https` to `http` is followed.
    pub downgrade: bool,
    /// Request headers, for the server that `url` names and no other.
    pub headers: Vec<(String, Template)>,
    /// `GET` of `http-get`, or what `http` says.
    pub method: Method,
    /// The request's body, of a method that has one; the payload when absent.
    pub body: Option<Template>,
    /// Fields by name, each a `{set.NAME}`, and the response headers that they get their values from.
    pub fields: Vec<(String, String)>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// The answer's body becomes the payload.
    Get,
    /// The answer has no body.
    Head,
    /// A request with a body, which is not made twice for any reason but a retry.
    Post,
    /// A request with a body, which may be made again.
    Put,
}

impl Method {
    /// Its name in a request.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// Whether the request has a body.
    pub(crate) fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }
}

/// `mode` and `level` of the `zstd` op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ZstdMode {
    /// `mode = "compress"`, the default.
    Compress {
        /// 1 (fastest) to 22 (smallest); default 3.
        level: i32,
    },
    /// `mode = "decompress"`.
    Decompress {
        /// The largest content taken; no limit when absent.
        max_bytes: Option<MaxBytes>,
    },
}

/// The `max_bytes` of a `zstd` stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MaxBytes {
    /// `"64MiB"`: the same for every unit.
    Size(u64),
    /// `"{json.size}"`: what a field of the unit says, in bytes.
    Field(Template),
}

/// Standard input of an `exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecStdin {
    /// `"payload"`, the default: the payload, empty when there is none.
    Payload,
    /// `"items"`: the items of a group, a line each.
    Items,
    /// `"null"`: nothing.
    Null,
}

/// Standard output of an `exec`.
#[derive(Debug, Clone)]
pub(crate) enum ExecStdout {
    /// `"payload"`, the default: it becomes the payload.
    Payload,
    /// `{ file = "PATH" }`: it goes to a file, which is put in place when the program has succeeded, or, with
    /// `failed = true`, when it has ended.
    File {
        /// The file.
        path: Template,
        /// A program that fails has its file, too.
        failed: bool,
    },
    /// `"print"`: it goes to this process's standard output, whole, also when the program has failed for good.
    Print,
    /// `"null"`: it is thrown away, and the payload stays what it was.
    Null,
    /// `"inherit"`: it goes to this process's standard output.
    Inherit,
}

/// Standard error of an `exec`.
#[derive(Debug, Clone)]
pub(crate) enum ExecStderr {
    /// `"message"`, the default: its end goes into the failure's message, if the program fails.
    Message,
    /// `"print"`: the same, and it goes to this process's standard error, whole.
    Print,
    /// `{ file = "PATH" }`: the same, and it goes to a file, which is put in place when the program has ended.
    File(Template),
    /// `"inherit"`: it goes to this process's standard error.
    Inherit,
}

/// `when` of the `filter` op.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// `{ exists = "PATH" }`: something has this name.
    Exists(Template),
    /// `{ missing = "PATH" }`: nothing has this name.
    Missing(Template),
    /// `{ has = "{json.ms}" }`: the unit has a value for every field in the text.
    Has(Template),
    /// `{ stale = "PATH", than = "PATH" }`: nothing has the first name, or a file that is older than the second.
    Stale {
        /// The file that is made.
        target: Template,
        /// The file that it is made from.
        than: Template,
    },
    /// `{ number = "TEXT", at_least = 1, below = 10 }`: the text is a number within all bounds.
    Number {
        /// The number.
        number: Template,
        /// The bounds; at least one.
        bounds: Vec<(Bound, Template)>,
    },
    /// `{ date = "TEXT", at_least = "2026-01-31", below = "2026-02-28T12:00:00Z" }`: the text is a date within all bounds.
    Date {
        /// The date.
        date: Template,
        /// The bounds; at least one.
        bounds: Vec<(Bound, Template)>,
    },
    /// `{ content = "PATH" }`: a regular file has this name and the payload's content.
    Content {
        /// The file.
        path: Template,
        /// Its content is the payload's when it is decompressed.
        zstd: bool,
    },
    /// `{ text = "{ext}", equals = "rs" }` and the like.
    Text {
        /// The tested text.
        text: Template,
        /// How.
        test: TextTest,
    },
    /// `{ size = "1KiB..1MiB" }`: the unit's size in bytes; the lower end is included, the upper is not.
    Size {
        /// At least this many bytes.
        at_least: u64,
        /// Fewer than this many; no upper end when absent.
        below: Option<u64>,
    },
    /// `{ not = { … } }`.
    Not(Box<Condition>),
    /// `{ all = [{ … }, …] }`.
    All(Vec<Condition>),
    /// `{ any = [{ … }, …] }`.
    Any(Vec<Condition>),
}

/// A bound of a [`Condition::Number`] or a [`Condition::Date`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// `equals`.
    Equals,
    /// `at_least`.
    AtLeast,
    /// `above`.
    Above,
    /// `at_most`.
    AtMost,
    /// `below`.
    Below,
}

/// How a [`Condition::Text`] compares; bytes, case-sensitive.
#[derive(Debug, Clone)]
pub(crate) enum TextTest {
    /// `matches`: somewhere in the text, unless the expression says where.
    Matches(Regex),
    /// `equals`.
    Equals(Template),
    /// `one_of`.
    OneOf(Vec<Template>),
    /// `contains`.
    Contains(Template),
    /// `starts_with`.
    StartsWith(Template),
    /// `ends_with`.
    EndsWith(Template),
}

/// `fresh` of the `append` op. Lines of a fresh file are gathered under a temporary name and take its place at the end of
/// a complete run; an interrupted run leaves the earlier file as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// `false`, the default: lines are added to the file.
    No,
    /// `true`: an earlier file is replaced only if the run had units and none of them died.
    IfNoneDied,
    /// `"always"`: an earlier file is replaced by every complete run.
    Always,
}

/// The field that the `check` op compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckField {
    /// `"blake3"`: the hash that a `blake3` stage has set.
    Blake3,
    /// `"sha256"`: the hash that a `sha256` stage has set.
    Sha256,
    /// `"size"`: the payload's bytes.
    Size,
}

/// See [`OpSpec::Split`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SplitSpec {
    /// The kind of its pieces.
    pub by: SplitBy,
    /// The largest piece taken.
    pub max_bytes: usize,
}

/// A piece of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SplitBy {
    /// A line.
    Lines,
    /// The bytes up to a NUL byte.
    Nul,
    /// The bytes up to a text.
    Separator(Vec<u8>),
    /// The bytes up to a text that this regular expression matches.
    Matches(String),
    /// About this number of bytes, up to the end of a line.
    Blocks(usize),
    /// An element of an array, or one of the values behind one another.
    Json,
    /// A row of a table, whose cells this byte separates.
    Table {
        /// The byte.
        separator: u8,
        /// Whether the first row names the columns.
        header: bool,
    },
    /// A file of an archive.
    Tar,
    /// `copy`: the unit itself, once for each of these stages, to which it goes.
    Copies(Vec<Arc<str>>),
}

impl SplitSpec {
    /// The stages that get a copy, if the pieces are copies.
    pub(crate) fn copies(&self) -> Option<&[Arc<str>]> {
        match &self.by {
            SplitBy::Copies(stages) => Some(stages),
            _ => None,
        }
    }
}

/// See [`OpSpec::Gather`].
#[derive(Debug, Clone)]
pub(crate) struct GatherSpec {
    /// Which units join one group.
    pub by: GatherBy,
    /// A group of this many units is closed.
    pub units: Option<u64>,
    /// A group whose members weigh this much is closed.
    pub bytes: Option<u64>,
    /// A group is closed this long after its first member.
    pub wait: Option<Duration>,
    /// The most groups that are open at once.
    pub max_groups: Option<u64>,
    /// Whether the pieces of a unit go on together even if one of them has failed.
    pub partial: bool,
    /// The content that each unit brings; `None`: its payload.
    pub item: Option<Template>,
    /// The payload that the contents become.
    pub reduce: Reduce,
}

/// The units that join one group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GatherBy {
    /// All of them.
    All,
    /// The pieces of one unit.
    Parent,
    /// Those with the same text.
    Key(Template),
}

/// The payload of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reduce {
    /// Its members' contents, each with this behind it.
    Concat {
        /// The bytes behind each.
        after: Vec<u8>,
    },
    /// The lines of its members, each of whose contents is sorted, in one order.
    Merge,
    /// The number of its members.
    Count,
    /// One number made of those of its units.
    Number(Fold),
}

/// The number that a group makes of those of its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Their mean.
    Mean,
}

/// The format that the `parse` op reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseFormat {
    /// `"json"`: an object; its members become the fields `{json.MEMBER}`.
    Json,
}
