//! Flow files: from text to a checked [`FlowFile`], or to errors that show the line.

pub mod model;
pub mod template;

mod bind;
mod error;
mod graph;
mod parse;
mod reader;

pub(crate) mod suggest;

pub use error::{FlowError, Problem, Refusal};
pub use model::FlowFile;
pub use parse::{load, parse};
pub use template::{Field, Fields, Template};
