//! A parsed program that is ready to be checked.

use std::ops::Range;

use crate::check::{CheckError, Proof};
use crate::graph::Graph;
use crate::{Error, Running, Stream};

use super::compile;
use super::input::Inputs;
use super::parser;
use super::problem::Problem;
use super::value::Value;
use super::ways;

/// A parsed program; see the [module](super).
pub struct TextProgram {
    text: String,
    out: Stream<Value>,
    /// Whether all inputs can be read again.
    rereadable: bool,
    /// Whether values may be kept on disk.
    spillable: bool,
}

/// Parses a program. Files are opened when it runs.
///
/// # Errors
/// Returns the first problem, with its span.
pub fn parse(text: &str, inputs: &Inputs) -> Result<TextProgram, Problem> {
    let written = parser::parse(text)?;
    let (out, rereadable) = compile::compile(text, &written, inputs)?;
    Ok(TextProgram { text: text.to_owned(), out, rereadable, spillable: !inputs.is_content() })
}

impl TextProgram {
    /// Proves the bounds of the program, without running it.
    ///
    /// # Errors
    /// Returns the refusal, with its spans and the text of each way out.
    pub fn check(&self) -> Result<Proof, Problem> {
        self.out.check().map_err(|error| self.problem(&error))
    }

    /// Returns the graph, whose labels come from the text.
    #[must_use]
    pub fn graph(&self) -> Graph {
        self.out.graph()
    }

    /// Checks the program and prepares its run.
    ///
    /// # Errors
    /// Returns the errors of [`check`](Self::check).
    pub fn run(self) -> Result<Running<Value>, Problem> {
        self.out.run().map_err(|error| match error {
            Error::Check(error) => self.problem(&error),
            other => Problem::new(other.to_string(), 0..self.text.len(), "this program"),
        })
    }

    fn problem(&self, error: &CheckError) -> Problem {
        let graph = self.graph();
        let span = |node: usize| graph.nodes()[node].span.clone().unwrap_or(0..self.text.len());
        match error {
            CheckError::Refused(refusal) => ways::problem(&self.text, &graph, refusal, self.rereadable, self.spillable),
            CheckError::Apart { node, .. } => Problem::new(error.to_string(), span(*node), "two origins"),
            CheckError::PeriodTooLong { join: node, .. } | CheckError::RateTooLarge { node, .. } => {
                let here: Range<usize> = span(*node);
                Problem::new(error.to_string(), here, "here")
            }
        }
    }
}
