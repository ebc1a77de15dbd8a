//! Errors of flow files: each shows the file, the line, a caret and what to do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use millstream_command::screen::shown;

/// Problems shown at once; more are only counted, because a file with more was probably never a flow file.
const MAX_SHOWN: usize = 20;

/// The longest line, in bytes, that is shown with a caret below it.
const MAX_LINE: usize = 400;

/// One thing that is wrong with a flow file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The expected and the found text.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The places in the text, each with a word on what it is; the first is the main one.
    pub labels: Vec<(Range<usize>, String)>,
}

impl Problem {
    /// A problem without a place yet.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, labels: Vec::new() }
    }

    /// Points at a place, with a word on what it is.
    #[must_use]
    pub(crate) fn at(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    /// Says what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Why a flow file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    /// The file cannot be read.
    #[error("cannot read the flow file {}: {error}", shown::path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file is larger than any flow file.
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
        /// Its line, from 1.
        line: usize,
    },
    /// The text was read and refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl FlowError {
    /// The error as it is shown on a terminal, with carets where there is a place to point at.
    pub(crate) fn render(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.render(),
            plain => format!("error: {plain}\n"),
        }
    }
}

/// A flow file's text with what is wrong with it; never empty.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    path: PathBuf,
    text: Arc<str>,
    problems: Vec<Problem>,
}

impl Refusal {
    /// Refuses `text` for `problems`, which are shown in the order of the text.
    ///
    /// # Panics
    /// `problems` is empty.
    pub(crate) fn new(path: &Path, text: Arc<str>, mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "a refusal needs a reason");
        problems.sort_by_key(|problem| problem.labels.first().map(|(span, _)| span.start));
        problems.dedup();
        Self { path: path.to_owned(), text, problems }
    }

    fn render(&self) -> String {
        self.render_with(Severity::Error)
    }

    /// The problems as warnings: what they are about is not refused after all.
    pub(super) fn render_as_warnings(&self) -> String {
        self.render_with(Severity::Warning)
    }

    fn render_with(&self, severity: Severity) -> String {
        let what = if severity == Severity::Error { "errors" } else { "warnings" };
        let (text, growth) = visible(&self.text);
        let source = NamedSource::new(shown::path(&self.path).to_string(), text);
        let mut rendered = String::new();
        for problem in self.problems.iter().take(MAX_SHOWN) {
            let reported = Reported { problem: self.within_text(problem, &growth), source: source.clone(), severity };
            rendered.push_str(&format!("{:?}\n", miette::Report::new(reported)));
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

impl Refusal {
    /// The problem as it is shown: nothing in it steers the terminal, its places lie within the text, and a place in a line too
    /// long to show is told in words.
    fn within_text(&self, problem: &Problem, growth: &[(usize, usize)]) -> Problem {
        let mut told = Problem::new(shown::lines(&problem.message));
        told.help = problem.help.as_deref().map(|help| shown::lines(help).into_owned());
        let text = &self.text;
        for (span, label) in &problem.labels {
            // A place at the end is shown at the last thing that stands there.
            let last = text.trim_end().char_indices().next_back().map_or(0, |(at, _)| at);
            let start = if span.start >= text.trim_end().len() { last } else { span.start };
            let end = span.end.min(text.len());
            let line_start =
                text.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            let line_end = text.as_bytes()[start..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(text.len(), |newline| start + newline);
            if line_end - line_start > MAX_LINE {
                let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
                told.message = format!("{} (line {line}, byte {})", told.message, start - line_start + 1);
            } else {
                let place = moved(start, growth)..moved(end.clamp(start, line_end), growth);
                told.labels.push((place, shown::lines(label).into_owned()));
            }
        }
        told
    }
}

/// The text as it is shown, and where it is longer for that: behind which byte, and by how many in all.
fn visible(text: &str) -> (String, Vec<(usize, usize)>) {
    let (mut visible, mut growth) = (String::with_capacity(text.len()), Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            // Of a line end.
            '\r' if text[at..].starts_with("\r\n") => visible.push(' '),
            c => visible.push_str(&shown::lines(c.encode_utf8(&mut [0; 4]))),
        }
        let by = visible.len() - at - c.len_utf8();
        if growth.last().map_or(0, |(_, before)| *before) < by {
            growth.push((at, by));
        }
    }
    (visible, growth)
}

/// Where a place of the text is in the text that is shown.
fn moved(place: usize, growth: &[(usize, usize)]) -> usize {
    let behind = growth.partition_point(|(at, _)| *at < place);
    place + behind.checked_sub(1).map_or(0, |last| growth[last].1)
}

impl fmt::Display for Refusal {
    /// One line a problem, for logs: `FILE:LINE: message`.
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

/// A problem together with the text it points into.
#[derive(Debug)]
struct Reported {
    problem: Problem,
    source: NamedSource<String>,
    severity: Severity,
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Reported {}

impl Diagnostic for Reported {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.problem.labels.is_empty()).then_some(&self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.problem.labels.iter().enumerate().map(|(index, (span, label))| {
            let label = (!label.is_empty()).then(|| label.clone());
            let place = span.clone();
            if index == 0 {
                LabeledSpan::new_primary_with_span(label, place)
            } else {
                LabeledSpan::new_with_span(label, place)
            }
        });
        Some(Box::new(labels))
    }
}
