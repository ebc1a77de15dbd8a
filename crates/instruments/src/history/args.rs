//! The command line of `millstream history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use millstream_command::{size, time};
use millstream_history::format::Format;
use millstream_history::{Kind, Model};

/// The end of `millstream history check --help`.
const CHECK_HELP: &str = "\
Examples:
  millstream history check run.jsonl --spec queue
  millstream history check run.jsonl --spec queue:8 --html run.html
  millstream history check etcd_000.log --spec cas-register --time 10s
  millstream history check history.edn --spec key-value --json | jq .operations
  millstream history check c50-ok.txt --spec 'key-value:\"\"'

JSON lines have one operation per line; `return` is null or absent if it never returned, `key` names the object, `status` is \
ok, fail or info (unknown whether it took effect):
  {\"process\":3,\"op\":\"enqueue\",\"in\":17,\"out\":null,\"call\":1200,\"return\":1875}

Before the first write, a register or a key holds null, unless the specification gives another value after a colon: an \
integer, true, false or \"\" (the empty string, which many stores return for a key that was never written).

Operations of the specifications (an empty dequeue, pop, delete_min or alloc has `out` null):
  register read write            queue enqueue dequeue              mutex, semaphore acquire release
  cas-register read write cas    stack push pop                     rw-lock also acquire_read release_read
  key-value also append delete   priority-queue insert delete_min   event-count read advance wait
  multi-register txn             set add remove contains            ring publish consume
  counter add get                allocator alloc free               log append read
  fetch-and-add fetch_add read

Exit status:
  0  linearizable
  1  not linearizable: the counter-example is printed
  2  the arguments are wrong, or a file cannot be opened or written
  3  unknown: a limit was reached; how far it got is printed
  4  the history is malformed, or has operations that the specification does not have; the place is printed
  5  nothing to check: no operation has returned (0 with --allow-empty)";

/// `millstream history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The task for the history.
    #[command(subcommand)]
    pub command: HistoryCommand,
}

/// The subcommands of `millstream history`.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Decide whether a history is linearizable. The exit status is the verdict.
    ///
    /// Linearizable: each operation appears to take effect at one moment between its call and its return, and in the
    /// order of these moments the operations do what the specification says.
    Check(CheckArgs),
}

/// `millstream history check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArgs {
    /// The history; `-` is standard input.
    pub file: PathBuf,
    /// The kind of object: a name, with a capacity (queue:8) or an initial value (register:0, key-value:"") if it has one.
    #[arg(long, value_name = "SPEC", value_parser = spec)]
    pub spec: Model,
    /// The format of the history: json, jepsen, jepsen-independent (values are vectors `[key value]`) or etcd [default:
    /// guessed from its beginning].
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,
    /// Print the verdict as JSON, with the whole witness order or counter-example.
    #[arg(long)]
    pub json: bool,
    /// Also say whether the history is sequential (no two operations overlap) and sequentially consistent (explained by
    /// an order that keeps each process's operations in their own order). The exit status is still that of
    /// linearizability.
    #[arg(long)]
    pub compare: bool,
    /// Accept as linearizable a history in which no operation has returned.
    #[arg(long)]
    pub allow_empty: bool,
    /// Draw an interactive timeline: a page in one file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Draw the counter-example, or the first operations, as a picture.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The maximum amount of memory that the check may use, not counting the history itself.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    pub memory: u64,
    /// The maximum time that the check may take [default: as long as it needs].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub time: Option<Duration>,
    /// Print only the verdict: neither locate the earliest failure nor search for a smaller counter-example.
    #[arg(long)]
    pub no_explain: bool,
    /// The maximum processor time for explaining a failure [default: 1s, or twice the time of the verdict if that is
    /// longer].
    #[arg(long, value_name = "TIME", value_parser = time::parse, conflicts_with = "no_explain")]
    pub explain_time: Option<Duration>,
    /// The maximum amount of memory for explaining a failure, within --memory.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse, conflicts_with = "no_explain")]
    pub explain_memory: u64,
}

fn spec(text: &str) -> Result<Model, String> {
    text.parse().map_err(|error| {
        let near = Kind::ALL.iter().map(|kind| (strsim::jaro_winkler(kind.name(), text), kind.name()));
        match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((likeness, name)) if likeness > 0.8 => format!("{error}; did you mean `{name}`?"),
            _ => format!("{error}"),
        }
    })
}

fn format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn memory(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        0 => Err("the memory limit must be more than zero".to_owned()),
        bytes => Ok(bytes),
    }
}
