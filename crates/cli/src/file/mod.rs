//! Flow files: from text to a checked [`FlowFile`], or to errors that show the line.

pub(crate) mod model;
pub(crate) mod template;

mod bind;
pub(crate) mod cases;
mod error;
mod graph;
pub(crate) mod halt;
pub(crate) mod joins;
mod literal;
pub(crate) mod names;
pub(crate) mod parse;
mod reader;

pub(crate) mod suggest;

pub(crate) use error::{FlowError, Problem, Refusal};
pub(crate) use halt::HaltPolicy;
pub(crate) use model::FlowFile;
pub(crate) use parse::load;
