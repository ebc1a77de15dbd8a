//! A mistake in a text, with its places.

use std::fmt;
use std::ops::Range;

/// The reason why a text is no program, or none that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The expected and the found.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Places in the text, as ranges of bytes, each with a word on what it is; the first is the main one.
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

/// The message alone.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
