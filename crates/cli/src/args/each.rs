//! `millstream each`: one program for each of many items.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millstream_command::time;
use millstream_runner::file::names::Names;
use millstream_runner::file::template::Template;
use millstream_runner::file::{self, HaltPolicy};

use super::flow::OutputArgs;
use super::values::memory;

/// The maximum number of programs that `millstream each` runs at once: the maximum number of threads that a stage gets
/// for its needs.
const MAX_JOBS: u64 = millstream_flow::MAX_WORKERS_BY_NEEDS as u64;

/// `millstream each`.
#[derive(Debug, Args)]
#[command(after_help = "\
In the program's arguments:
  {} or {path}   the item
  {/}  {name}    its last component        a/b.tar.gz -> b.tar.gz
  {/.} {stem}    name without extension    a/b.tar.gz -> b.tar
  {//} {dir}     the folder it is in       a/b.tar.gz -> a
  {host} {url}   of an item that is a URL; and every other field of flow files

Examples:
  millstream each gzip -9 ::: *.log
  millstream each -j4 --walk photos --name '*.jpg' --creates thumbs/{/} convert {} -resize 200 thumbs/{/}
  millstream each --needs 'host:{host}=2' --rate 20/s --retry 3 curl -fsSO {} < urls.txt
  find . -name '*.wav' -print0 | millstream each -0 --timeout 5m flac {}
  millstream each --pipe --block 10MiB -k grep -c error < access.log
  millstream each --shell 'wc -l < {} | tr -d \" \"' ::: *.txt

`--save FLOW.toml` writes the flow file that the command line stands for. While the command runs, `millstream status` and `millstream set RUN resource.jobs=8` reach it.

Exit status:
  0  the program succeeded for every item
  1  it failed for some items: their number and the file of dead letters are printed; `millstream retry` runs them again
  2  the arguments are wrong: nothing was run
  3  the run was interrupted, or the reader of its standard output went away
  4  the report, dead letters, standard output or the dry run could not be written")]
pub(crate) struct EachArgs {
    /// Run up to N programs at once [default: the machine's cores].
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<u64>,
    /// Each item ends with a NUL byte, as `find -print0` writes it.
    #[arg(short = '0', long, conflicts_with = "walk")]
    pub null: bool,
    /// Give a program N items at once, each as an argument of its own, in place of `{}`.
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub group: Option<u32>,
    /// Feed each program a block of standard input, or of the files of `--lines`: whole lines of about `--block` bytes
    /// in all, or `-N` lines.
    #[arg(long, conflicts_with_all = ["walk", "creates", "results", "tag"])]
    pub pipe: bool,
    /// The size of a block [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = memory, requires = "pipe", conflicts_with = "group")]
    pub block: Option<u64>,
    /// Read items from a file, one per line, in place of standard input; `-` is standard input.
    #[arg(short = 'a', long, value_name = "FILE", conflicts_with = "walk")]
    pub lines: Vec<PathBuf>,
    /// Take every regular file below a folder as an item.
    #[arg(long, value_name = "DIR")]
    pub walk: Vec<PathBuf>,
    /// With `--walk`: take only files whose name matches: '*.jpg', '*.{jpg,png}'. May be given several times.
    #[arg(long, value_name = "PATTERN", requires = "walk", value_parser = name)]
    pub name: Vec<String>,
    /// Run a program only when it gets one of N tokens: `gpu=2`; with a key, one of N tokens for each value of the key:
    /// `host:{host}=2`.
    #[arg(long, value_name = "NAME[:KEY]=N", value_parser = need)]
    pub needs: Vec<EachNeed>,
    /// Start no more programs than this: 20/s, 600/m.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "delay")]
    pub rate: Option<String>,
    /// Let this time pass between two starts: 250ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub delay: Option<Duration>,
    /// Retry a program that fails, up to N times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub retry: Option<u32>,
    /// The pause before the second attempt, and the longest one [default: 100ms..5s].
    #[arg(long, value_name = "TIME..TIME", value_parser = time::parse_range, requires = "retry")]
    pub backoff: Option<Range<Duration>>,
    /// Kill a program that takes longer than this, with all processes that it has started.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub timeout: Option<Duration>,
    /// Start no more programs once this many, or this share of them, have failed for good: 5, 10%. With the prefix
    /// `now,`, also end the programs that run.
    #[arg(long, value_name = "[now,]N|N%", value_parser = HaltPolicy::parse)]
    pub halt: Option<HaltPolicy>,
    /// Start no program while this many threads of the machine are runnable: 8, or 100% of the cores.
    #[arg(long, value_name = "N|N%", value_parser = file::parse::machine::load_limit)]
    pub load: Option<u64>,
    /// Start no program while less memory than this is available: 1GiB, 512MiB, …
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memfree: Option<u64>,
    /// Leave out an item if this file, which the program makes from it, exists and is not older than the item:
    /// thumbs/{/}.
    #[arg(long, value_name = "FILE", conflicts_with = "group")]
    pub creates: Option<String>,
    /// The first argument is a script for /bin/sh, in which {} and other fields are quoted; the others are its $1, $2, …
    #[arg(long)]
    pub shell: bool,
    /// Precede every line of output with its item and a tab.
    #[arg(long, conflicts_with_all = ["results", "ungroup", "group"])]
    pub tag: bool,
    /// Print outputs in the order of their items, not in the order in which programs end.
    #[arg(short, long, conflicts_with_all = ["results", "ungroup"])]
    pub keep_order: bool,
    /// Pass output on as it comes; the lines of different programs may then mix.
    #[arg(short, long, conflicts_with = "results")]
    pub ungroup: bool,
    /// Write a program's output to DIR/ITEM/stdout and DIR/ITEM/stderr, which appear when the program has ended.
    #[arg(long, value_name = "DIR", conflicts_with = "group")]
    pub results: Option<PathBuf>,
    /// Start no program while this much output waits for its reader: 64MiB, 1GB, … [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Print the command lines and run none of them.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Write the equivalent flow file, and run nothing.
    #[arg(long, value_name = "FLOW.toml", conflicts_with = "dry_run")]
    pub save: Option<PathBuf>,
    /// Write dead letters to this file, as JSON lines [default: beside the report, or PROGRAM.dead-letters.jsonl here].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The program and its arguments; then, after `:::`, the items.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

impl EachArgs {
    /// How many items a program takes at once, and in which form.
    pub(crate) fn takes(&self) -> Takes {
        match (self.pipe, self.group) {
            (true, _) => Takes::Input,
            (false, Some(2..)) => Takes::Items,
            (false, _) => Takes::Item,
        }
    }

    /// Whether programs write to the command's own standard output.
    pub(crate) fn inherits(&self) -> bool {
        self.ungroup
    }

    /// The rate of starts, as a flow file writes it.
    pub(crate) fn starts_per_second(&self) -> Option<String> {
        let of_delay = |delay: Duration| format!("{}/s", 1.0 / delay.as_secs_f64());
        self.rate.clone().or_else(|| self.delay.map(of_delay))
    }
}

/// How many items of `millstream each` a program takes at once, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One item, as an argument.
    Item,
    /// Several items, each an argument.
    Items,
    /// Several lines, as its standard input.
    Input,
}

/// `--needs`: a resource with tokens, perhaps for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EachNeed {
    /// The resource's name.
    pub resource: String,
    /// The template of the key.
    pub key: Option<String>,
    /// The tokens, for each key if there are keys.
    pub capacity: u64,
}

fn jobs(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("zero programs at once would run nothing".to_owned()),
        Ok(count) if count <= MAX_JOBS => Ok(count),
        Ok(_) => Err(format!("at most {MAX_JOBS} programs at once")),
        Err(_) => Err("expected a number of programs".to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    Names::pattern(text).map(|_| text.to_owned())
}

fn rate(text: &str) -> Result<String, String> {
    time::parse_rate(text).map(|_| text.to_owned())
}

fn pause(text: &str) -> Result<Duration, String> {
    match time::parse(text)? {
        Duration::ZERO => Err("zero is too short a time to wait".to_owned()),
        time => Ok(time),
    }
}

fn need(text: &str) -> Result<EachNeed, String> {
    let expected = || "expected NAME=N, or NAME:KEY=N with a template as the key, such as `host:{host}=2`".to_owned();
    let (need, capacity) = text.rsplit_once('=').ok_or_else(expected)?;
    let (resource, key) = need.split_once(':').map_or((need, None), |(name, key)| (name, Some(key)));
    if resource.is_empty() || resource.contains(['{', '}', '*']) || key.is_some_and(str::is_empty) {
        return Err(expected());
    }
    if ["jobs", "starts"].contains(&resource) {
        return Err(format!("`{resource}` is what `--{}` sets", if resource == "jobs" { "jobs" } else { "rate" }));
    }
    if let Some(key) = key {
        Template::parse(key).map_err(|error| format!("{}; {}", error.message, error.help))?;
    }
    match capacity.parse() {
        Ok(0) => Err("zero tokens would let nothing run".to_owned()),
        Ok(capacity) => Ok(EachNeed { resource: resource.to_owned(), key: key.map(str::to_owned), capacity }),
        Err(_) => Err(expected()),
    }
}
