//! The flow file that is equivalent to a command line.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::words::{Command, WordsError, template_of};
use crate::args::EachArgs;
use crate::shell_word;
use millstream_command::time;
use millstream_runner::file::model::DEFAULT_INFLIGHT;

/// The source of the items.
pub(super) enum Source {
    /// The command line.
    Items(Vec<OsString>),
    /// Lines of files, or of standard input.
    Lines { files: Vec<PathBuf>, null: bool },
    /// Files below folders.
    Walk(Vec<PathBuf>),
}

impl Source {
    /// The source that the arguments name.
    ///
    /// # Errors
    /// The arguments name two sources.
    pub(super) fn of(args: &EachArgs, command: &Command) -> Result<Self, WordsError> {
        match &command.items {
            Some(_) if !args.walk.is_empty() => Err(WordsError::TwoSources("--walk")),
            Some(_) if !args.lines.is_empty() => Err(WordsError::TwoSources("--lines")),
            Some(_) if args.null => Err(WordsError::TwoSources("--null")),
            Some(items) => Ok(Self::Items(items.clone())),
            None if !args.walk.is_empty() => Ok(Self::Walk(args.walk.clone())),
            None => Ok(Self::Lines { files: args.lines.clone(), null: args.null }),
        }
    }

    /// The run's INPUTs.
    pub(super) fn inputs(&self) -> Vec<OsString> {
        match self {
            Self::Items(items) => items.clone(),
            Self::Lines { files: paths, .. } | Self::Walk(paths) => {
                paths.iter().map(|path| path.clone().into_os_string()).collect()
            }
        }
    }

    /// The INPUTs as words after `millstream run FLOW.toml`.
    pub(super) fn usage(&self) -> String {
        let mut usage = String::new();
        for input in self.inputs().iter().take(3) {
            let _ = write!(usage, " {}", shell_word::quoted(input.as_bytes()));
        }
        if self.inputs().len() > 3 {
            usage.push_str(" …");
        }
        usage
    }

    /// Whether items are lines of standard input.
    pub(super) fn reads_stdin(&self) -> bool {
        matches!(self, Self::Lines { files, .. } if files.is_empty() || files.iter().any(|file| file.as_os_str() == "-"))
    }
}

/// The flow file's text.
pub(super) fn of(args: &EachArgs, command: &Command, source: &Source) -> String {
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from) as u64);
    let mut text = String::new();
    let name = command.name();
    let each = if args.pipe { "block of lines" } else { "item" };
    text += &format!("# Runs `{}` for each {each}.\n\n", comment(&name));
    text += &format!("name = {}\n", quoted(&name));
    // With twice as many units in flight as there are programs, the queue stays filled while lines are read. With
    // `--pipe` the cap is exactly that, since blocks of lines are large; otherwise, it is at least the default.
    let twice = jobs.saturating_mul(2);
    text += &format!("inflight = {}\n\n", if args.pipe { twice } else { DEFAULT_INFLIGHT.max(twice) });
    if let Some(halt) = args.halt {
        text.truncate(text.len() - 1);
        text += &format!("halt = {:<25}# start no more after as many failures\n\n", quoted(&halt.to_string()));
    }
    if args.load.is_some() || args.memfree.is_some() {
        let load = args.load.map(|load| format!("load = {load}"));
        let memory = args.memfree.map(|bytes| format!("memory_free = {bytes}"));
        let limits: Vec<String> = load.into_iter().chain(memory).collect();
        text += &format!("machine = {{ {} }}   # no program starts beyond\n\n", limits.join(", "));
    }
    resources(&mut text, args, jobs);
    text += "[source]\n";
    text += match source {
        Source::Items(_) => "args = true                     # one unit per INPUT\n",
        Source::Lines { null: false, .. } => "lines = \"-\"                     # one unit per line\n",
        Source::Lines { null: true, .. } => {
            "lines = \"-\"                     # one unit per record that ends with NUL\nnull = true\n"
        }
        Source::Walk(_) => "walk = \"{input}\"                # one unit per file below the INPUT\n",
    };
    if !args.name.is_empty() {
        let patterns: Vec<String> = args.name.iter().map(|pattern| quoted(pattern)).collect();
        let one_or_more = if let [one] = &*patterns { one.clone() } else { format!("[{}]", patterns.join(", ")) };
        text += &format!("name = {one_or_more:<25}# of the files that are taken\n");
    }
    if let Some(items) = args.group.filter(|items| *items > 1) {
        text += &format!("group = {items:<24}# items of one unit\n");
    } else if args.pipe {
        let size = args.block.map_or_else(|| "1MiB".to_owned(), |bytes| format!("{bytes}B"));
        // Even a single line is read as a block, since `stdin = "items"` requires groups.
        let size = if args.group == Some(1) { "1B".to_owned() } else { size };
        text += &format!("group = {:<24}# whole lines of about this size are one unit\n", quoted(&size));
    }
    if let Some(target) = &args.creates {
        text +=
            "\n[[stage]]\nname = \"stale\"\nop = \"filter\"                   # the others are up to date, and leave\n";
        text += &format!("when = {{ stale = {} }}\n", quoted(&template_of(target)));
    }
    stage(&mut text, args, command);
    text
}

fn resources(text: &mut String, args: &EachArgs, jobs: u64) {
    *text += "[resources]\n";
    *text += &format!("jobs = {jobs:<25}# programs at once\n");
    if let Some(rate) = args.starts_per_second() {
        *text += &format!("starts = {{ rate = {} }}\n", quoted(&rate));
    }
    for need in &args.needs {
        let name = if need.key.is_some() { format!("{}:*", need.resource) } else { need.resource.clone() };
        *text += &format!("{} = {}\n", quoted(&name), need.capacity);
    }
    text.push('\n');
}

fn stage(text: &mut String, args: &EachArgs, command: &Command) {
    let argv: Vec<String> = command.argv.iter().map(|word| quoted(word)).collect();
    *text += "\n[[stage]]\nname = \"run\"\nop = \"exec\"\n";
    *text += &format!("exec = [{}]\n", argv.join(", "));
    if args.shell {
        *text += "shell = true\n";
    }
    if args.pipe {
        *text += "stdin = \"items\"                 # the lines of the unit\n";
    }
    if let Some(folder) = &args.results {
        let file = |name| quoted(&format!("{}/{{path}}/{name}", template_of(&folder.to_string_lossy())));
        *text += &format!("stdout = {{ file = {}, failed = true }}\n", file("stdout"));
        *text += &format!("stderr = {{ file = {} }}\n", file("stderr"));
    } else if args.inherits() {
        *text += "stdout = \"inherit\"\nstderr = \"inherit\"\n";
    } else {
        *text += "stdout = \"print\"                # whole, when the program has ended\nstderr = \"print\"\n";
        if args.tag {
            *text += "tag = \"{path}\"\n";
        }
        if args.keep_order {
            *text += "ordered = true                  # in the order of the items\n";
        }
    }
    let mut needs = vec!["jobs = 1".to_owned()];
    if args.starts_per_second().is_some() {
        needs.push("starts = 1".to_owned());
    }
    for need in &args.needs {
        let name = need.key.as_ref().map_or_else(|| need.resource.clone(), |key| format!("{}:{key}", need.resource));
        needs.push(format!("{} = 1", quoted(&name)));
    }
    *text += &format!("needs = {{ {} }}\n", needs.join(", "));
    if let Some(timeout) = args.timeout {
        *text += &format!("timeout = {}\n", quoted(&time::show(timeout)));
    }
    if let Some(times) = args.retry {
        let backoff = args.backoff.as_ref().map(|backoff| {
            format!(", backoff = {}", quoted(&format!("{}..{}", time::show(backoff.start), time::show(backoff.end))))
        });
        *text += &format!("retry = {{ times = {times}{} }}\n", backoff.unwrap_or_default());
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The text without control characters, so that a newline in it cannot end its comment.
fn comment(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
