//! A parsed program that is ready to be checked.

use std::io::{self, Read};
use std::ops::Range;

use crate::check::{CheckError, Proof};
use crate::graph::Graph;
use crate::run::Plan;
use crate::{Error, Running, Stream};

use super::compile;
use super::input::Inputs;
use super::parser::{self, Written};
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

/// Parses a program. Its files are opened only when it runs.
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

/// A checked program whose only input is content from the caller. It runs any number of times, on any thread.
///
/// The text is parsed and its bounds are proven once. Each run only allocates its operators and queues.
///
/// ```
/// use millstream_stream::text::Checked;
///
/// let sum = Checked::new("reduce(lines(), 0, acc + number(it))")?;
/// for (content, expected) in [("1\n2\n", "3"), ("", "0")] {
///     let mut running = sum.run(move || Ok(Box::new(content.as_bytes())));
///     assert_eq!(running.next()?.unwrap().to_string(), expected);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Checked {
    text: String,
    written: Written,
    plan: Plan,
}

impl Checked {
    /// Parses and checks a program for [`Inputs::content`].
    ///
    /// # Errors
    /// Returns the errors of [`parse`] and [`TextProgram::check`].
    pub fn new(text: &str) -> Result<Self, Problem> {
        let inputs = Inputs::content(|| Ok(Box::new(io::empty())));
        let written = parser::parse(text)?;
        let (out, rereadable) = compile::compile(text, &written, &inputs)?;
        let program = TextProgram { text: text.to_owned(), out, rereadable, spillable: false };
        let plan = program.out.plan().map_err(|error| program.problem(&error))?;
        Ok(Self { text: program.text, written, plan })
    }

    /// Prepares a run over some content. `open` opens the content from its start; it is called once for each reading.
    pub fn run(&self, open: impl Fn() -> io::Result<Box<dyn Read>> + 'static) -> Running<Value> {
        let (out, _) = compile::compile(&self.text, &self.written, &Inputs::content(open))
            .expect("the same text has compiled before");
        out.run_as(&self.plan).expect("a new program has not run")
    }
}
