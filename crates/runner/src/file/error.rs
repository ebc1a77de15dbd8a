//! Errors of flow files: each shows the file, the line, a caret and what to do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millstream_command::screen::caret::{self, Severity, Source};
use millstream_command::screen::look::Look;
use millstream_command::screen::shown;

/// The maximum number of problems that are shown; the others are only counted. A file with more problems was probably
/// never a flow file.
const MAX_SHOWN: usize = 20;

/// One problem of a flow file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The message, usually what was expected and what was found.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The positions in the text, each with a label; the first is the main one.
    pub labels: Vec<(Range<usize>, String)>,
}

impl Problem {
    /// A problem that has no position yet.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, labels: Vec::new() }
    }

    /// Adds a position, with a label.
    #[must_use]
    pub fn at(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The reason why a flow file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The file cannot be read.
    #[error("cannot read the flow file {}: {error}", shown::path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file is larger than any plausible flow file.
    #[error("{} is larger than a flow file may be ({limit} bytes): is it the right file?", shown::path(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is not text.
    #[error("{} is not a flow file: it is not UTF-8 text (byte 0x{byte:02x} in line {line})", shown::path(path))]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is not UTF-8.
        byte: u8,
        /// The line of this byte, from 1.
        line: usize,
    },
    /// The text was read and refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl FlowError {
    /// The error as it is shown on a terminal, with carets below the problems.
    pub fn render(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.render(),
            plain => format!("error: {plain}\n"),
        }
    }
}

/// A flow file's text, with at least one problem.
#[derive(Debug, Clone)]
pub struct Refusal {
    path: PathBuf,
    text: Arc<str>,
    problems: Vec<Problem>,
}

impl Refusal {
    /// Refuses `text` because of `problems`, which are shown in the order of the text.
    ///
    /// # Panics
    /// `problems` is empty.
    pub fn new(path: &Path, text: Arc<str>, mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "a refusal needs a reason");
        problems.sort_by_key(|problem| problem.labels.first().map(|(span, _)| span.start));
        problems.dedup();
        Self { path: path.to_owned(), text, problems }
    }

    fn render(&self) -> String {
        self.render_with(Severity::Error)
    }

    /// The problems as warnings: the flow file is not refused because of them.
    pub(super) fn render_as_warnings(&self) -> String {
        self.render_with(Severity::Warning)
    }

    fn render_with(&self, severity: Severity) -> String {
        let what = if severity == Severity::Error { "errors" } else { "warnings" };
        let look = Look::of_stderr().unwrap_or(Look::FILE);
        let name = shown::path(&self.path).to_string();
        let source = Source::new(&name, &self.text);
        let mut rendered = String::new();
        for Problem { message, help, labels } in self.problems.iter().take(MAX_SHOWN) {
            let problem = caret::Problem { severity, message, help: help.as_deref(), labels };
            rendered.push_str(&source.show(&problem, look));
            rendered.push('\n');
        }
        match self.problems.len() {
            1 => {}
            total if total > MAX_SHOWN => {
                rendered.push_str(&format!("{total} {what}; the first {MAX_SHOWN} are shown\n"));
            }
            total => rendered.push_str(&format!("{total} {what}\n")),
        }
        rendered
    }
}

impl fmt::Display for Refusal {
    /// One line per problem, for logs: `FILE:LINE: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:", shown::path(&self.path))?;
            if let Some((span, _)) = problem.labels.first() {
                let line = self.text.as_bytes()[..span.start.min(self.text.len())]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count();
                write!(f, "{}:", line + 1)?;
            }
            write!(f, " {}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
