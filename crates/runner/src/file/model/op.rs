//! Ops, and the options of each.

use std::sync::Arc;
use std::time::Duration;

use super::{Condition, GatherSpec, SplitBy, SplitSpec};
use crate::file::template::Template;

/// The work of a stage.
#[derive(Debug, Clone)]
pub enum OpSpec {
    /// `read`: the content of a file becomes the payload. Memory for the payload is reserved before the file is read.
    Read {
        /// The file; default `{path}`.
        path: Template,
        /// The size of the largest file that is accepted; no limit if absent.
        max_bytes: Option<u64>,
    },
    /// `write`: the payload becomes a file, under a temporary name that is renamed when complete. Parent folders are made.
    Write {
        /// The file's name.
        path: Template,
        /// Replace an existing file. If neither this nor `skip_existing` is set, the file is kept and the unit fails.
        overwrite: bool,
        /// An existing file counts as written, which suits content-addressed stores.
        skip_existing: bool,
        /// The file's permissions, octal; if absent, they derive from those of the unit's file.
        mode: Option<Template>,
    },
    /// `blake3`: sets `{blake3}` to the payload's hash.
    Blake3,
    /// `sha256`: sets `{sha256}` to the payload's hash.
    Sha256,
    /// `zstd`: compresses or decompresses the payload.
    Zstd {
        /// The direction.
        mode: ZstdMode,
    },
    /// `gzip`: compresses or decompresses the payload.
    Gzip {
        /// The direction.
        mode: GzipMode,
    },
    /// `exec`: runs a program.
    Exec(ExecSpec),
    /// `http-get` and `http`: the response's body becomes the payload. A status of 400 or more is a failure: permanent for 4xx
    /// except 408 and 429; for other statuses, `retry` applies.
    Http(HttpSpec),
    /// `filter`: units for which the condition is false leave by [`StageSpec::otherwise`](super::StageSpec::otherwise).
    Filter {
        /// The condition.
        when: Condition,
    },
    /// `unique`: units whose text has occurred before leave by [`StageSpec::otherwise`](super::StageSpec::otherwise).
    Unique {
        /// The text.
        by: Template,
        /// The maximum number of texts that are kept.
        max_keys: u64,
    },
    /// `print`: the payload goes to the command's standard output.
    Print {
        /// The text before every line, followed by a tab; none if absent.
        tag: Option<Template>,
        /// Payloads are printed in the order of admission.
        ordered: bool,
    },
    /// `append`: adds one line per unit to a file, in the order in which units arrive at the stage.
    Append {
        /// The file; if the path contains fields of the unit, there is a file for each of their values.
        path: Template,
        /// The line; a newline is added.
        line: Template,
        /// Whether the file starts empty in every run.
        fresh: Fresh,
    },
    /// `check`: a permanent failure if a field differs from its expected value.
    Check {
        /// The field.
        field: CheckField,
        /// The expected value.
        equals: Template,
    },
    /// `set`: sets the payload, or fields, to values that are made from other fields.
    Set {
        /// The new payload; the payload is unchanged if absent.
        payload: Option<Template>,
        /// Fields by name, each a `{set.NAME}`.
        fields: Vec<(String, Template)>,
    },
    /// `stream`: a program of streams computes a new payload from the payload's values.
    Stream {
        /// The program.
        expression: String,
        /// The size of the largest payload that is made.
        max_bytes: u64,
    },
    /// `split`: the unit becomes several, one for each piece of its payload.
    Split(SplitSpec),
    /// `gather`: several units become one.
    Gather(GatherSpec),
    /// `parse`: reads the payload, or the line if there is no payload, into fields.
    Parse {
        /// The format of the text that is read.
        format: ParseFormat,
    },
}

impl OpSpec {
    /// The op's name in a flow file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Zstd { .. } => "zstd",
            Self::Gzip { .. } => "gzip",
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
    pub fn copies(&self) -> Option<&[Arc<str>]> {
        match self {
            Self::Split(spec) => spec.copies(),
            _ => None,
        }
    }

    /// Whether the stage has a second exit.
    pub fn has_else(&self) -> bool {
        matches!(self, Self::Filter { .. } | Self::Unique { .. })
    }

    /// Whether the stage prints outputs of its units.
    pub fn prints(&self) -> bool {
        match self {
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Print) || matches!(spec.stderr, ExecStderr::Print),
            Self::Print { .. } => true,
            _ => false,
        }
    }

    /// Whether the stage's outputs are printed in the order of admission.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Exec(ExecSpec { ordered: true, .. }) | Self::Print { ordered: true, .. })
    }

    /// Whether every unit has a payload after this op, though it may be empty.
    pub fn gives_payload(&self) -> bool {
        match self {
            Self::Http(spec) => spec.method != Method::Head,
            Self::Read { .. } | Self::Set { payload: Some(_), .. } | Self::Gather(_) | Self::Stream { .. } => true,
            Self::Split(spec) => spec.copies().is_none(),
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Payload),
            Self::Write { .. }
            | Self::Blake3
            | Self::Sha256
            | Self::Zstd { .. }
            | Self::Gzip { .. }
            | Self::Filter { .. }
            | Self::Unique { .. }
            | Self::Print { .. }
            | Self::Append { .. }
            | Self::Check { .. }
            | Self::Set { payload: None, .. }
            | Self::Parse { .. } => false,
        }
    }

    /// Whether a unit's payload may be larger after this op than before.
    pub fn grows_payload(&self) -> bool {
        match self {
            Self::Http(spec) => spec.method != Method::Head,
            Self::Read { .. }
            | Self::Zstd { .. }
            | Self::Gzip { .. }
            | Self::Set { payload: Some(_), .. }
            | Self::Stream { .. } => true,
            Self::Exec(spec) => matches!(spec.stdout, ExecStdout::Payload),
            Self::Write { .. }
            | Self::Blake3
            | Self::Sha256
            | Self::Filter { .. }
            | Self::Unique { .. }
            | Self::Print { .. }
            | Self::Append { .. }
            | Self::Check { .. }
            | Self::Set { payload: None, .. }
            | Self::Split(_)
            | Self::Gather(_)
            | Self::Parse { .. } => false,
        }
    }
}

/// The keys of the `exec` op.
#[derive(Debug, Clone)]
pub struct ExecSpec {
    /// Program and arguments; at least one element. With `shell`, the first is the script and the others are `$1`, `$2`, ….
    pub argv: Vec<Template>,
    /// Run as `/bin/sh -c SCRIPT sh ARGUMENT…`. The parser refuses a unit's fields in the script, because there a file's
    /// name could run commands; as arguments they are safe.
    pub shell: bool,
    /// The program's standard input.
    pub stdin: ExecStdin,
    /// The destination of the program's standard output.
    pub stdout: ExecStdout,
    /// The destination of the program's standard error.
    pub stderr: ExecStderr,
    /// The text before every line that is printed, followed by a tab; none if absent.
    pub tag: Option<Template>,
    /// Outputs are printed in the order of admission.
    pub ordered: bool,
    /// Variables that are added to the environment.
    pub env: Vec<(String, Template)>,
    /// The program's working folder; this process's folder if absent.
    pub dir: Option<Template>,
}

/// The content of an `exec` program's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecStdin {
    /// `"payload"`, the default: the payload, empty when there is none.
    Payload,
    /// `"items"`: the items of a group, one per line.
    Items,
    /// `"null"`: nothing.
    Null,
}

/// The destination of an `exec` program's standard output.
#[derive(Debug, Clone)]
pub enum ExecStdout {
    /// `"payload"`, the default: the output becomes the payload.
    Payload,
    /// `{ file = "PATH" }`: the output goes to a file, which gets its name when the program has succeeded or, with
    /// `failed = true`, when it has ended.
    File {
        /// The file.
        path: Template,
        /// Whether the file of a failed program is also kept.
        failed: bool,
    },
    /// `"print"`: when the program has ended, its output goes to this process's standard output in one piece. The
    /// output of a program that has failed for good is printed as well.
    Print,
    /// `"null"`: the output is discarded, and the payload is unchanged.
    Null,
    /// `"inherit"`: the output goes directly to this process's standard output.
    Inherit,
}

/// The destination of an `exec` program's standard error.
#[derive(Debug, Clone)]
pub enum ExecStderr {
    /// `"message"`, the default: if the program fails, the end of the text goes into the failure's message.
    Message,
    /// `"print"`: the same, and when the program has ended, the text goes to this process's standard error in one
    /// piece.
    Print,
    /// `{ file = "PATH" }`: the same, and the text goes to a file, which gets its name when the program has ended.
    File(Template),
    /// `"inherit"`: the text goes directly to this process's standard error.
    Inherit,
}

/// The keys of the ops `http-get` and `http`.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The URL, `http://` or `https://`.
    pub url: Template,
    /// The size of the largest body that is accepted; the op's default if absent.
    pub max_bytes: Option<u64>,
    /// The longest pause that a server's `Retry-After` can impose; the op's default if absent.
    pub max_retry_after: Option<Duration>,
    /// The maximum number of redirects for one unit; the op's default if absent.
    pub max_redirects: Option<u64>,
    /// Whether a redirect from `https` to `http` is followed.
    pub downgrade: bool,
    /// Request headers, sent only to the server that `url` names.
    pub headers: Vec<(String, Template)>,
    /// The method: `GET` for `http-get`, or the `method` of the `http` stage.
    pub method: Method,
    /// The request's body, if the method has one; the payload if absent.
    pub body: Option<Template>,
    /// Fields by name, each a `{set.NAME}`, and the response headers from which they get their values.
    pub fields: Vec<(String, String)>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The response's body becomes the payload.
    Get,
    /// The response has no body.
    Head,
    /// A request with a body; it is repeated only by a retry.
    Post,
    /// A request with a body; it may be repeated.
    Put,
    /// A request with a body; like `POST`, it is repeated only by a retry.
    Patch,
    /// A request without a body; it may be repeated.
    Delete,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The method's name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request changes nothing at the server.
    #[cfg(feature = "http")]
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// Whether two identical requests have the same effect as one.
    #[cfg(feature = "http")]
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }

    /// Whether the request has a body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// `mode` and `level` of the `zstd` op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZstdMode {
    /// `mode = "compress"`, the default.
    Compress {
        /// 1 (fastest) to 22 (smallest); default 3.
        level: i32,
    },
    /// `mode = "decompress"`.
    Decompress {
        /// The size of the largest content that is accepted; no limit if absent.
        max_bytes: Option<MaxBytes>,
    },
}

/// `mode` and `level` of the `gzip` op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GzipMode {
    /// `mode = "compress"`, the default.
    Compress {
        /// 1 (fastest) to 9 (smallest); default 6.
        level: u32,
    },
    /// `mode = "decompress"`.
    Decompress {
        /// The size of the largest content that is accepted; no limit if absent.
        max_bytes: Option<MaxBytes>,
    },
}

/// The `max_bytes` of a stage that decompresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaxBytes {
    /// `"64MiB"`: the same for every unit.
    Size(u64),
    /// `"{json.size}"`: the value of a field of the unit, in bytes.
    Field(Template),
}

/// `fresh` of the `append` op. The lines of a fresh file are gathered under a temporary name, and replace an earlier
/// file at the end of a complete run; an interrupted run leaves the earlier file as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// `false`, the default: lines are added to the file.
    No,
    /// `true`: an earlier file is replaced only if the run had units and no unit died.
    IfNoneDied,
    /// `"always"`: an earlier file is replaced by every complete run.
    Always,
}

/// The field that the `check` op compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckField {
    /// `"blake3"`: the hash that a `blake3` stage has set.
    Blake3,
    /// `"sha256"`: the hash that a `sha256` stage has set.
    Sha256,
    /// `"size"`: the number of the payload's bytes.
    Size,
}

/// The format that the `parse` op reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseFormat {
    /// `"json"`: an object; its members become the fields `{json.MEMBER}`.
    Json,
    /// `"regex"`: a text that this regular expression matches; its named groups become fields `{json.NAME}`.
    Regex(String),
}
