//! A problem in a text, with its spans.

use std::fmt;
use std::ops::Range;

/// The reason why a text is not a program, or why the program cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The message: what was expected, and what was found.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
    /// Spans of the text in bytes, each with a label; the first span is the main one.
    pub labels: Vec<(Range<usize>, String)>,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>, span: Range<usize>, label: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, labels: vec![(span, label.into())] }
    }

    #[must_use]
    pub(super) fn and(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Writes the message alone.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
