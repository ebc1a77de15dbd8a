//! Flow files: from text to a checked [`FlowFile`], or to errors that show the line.

pub mod model;
pub mod template;

mod bind;
pub mod cases;
mod error;
mod graph;
pub mod halt;
pub mod joins;
mod literal;
pub mod names;
pub mod parse;
mod reader;

pub mod suggest;

/// A flow file with every key there is, for help texts.
pub const REFERENCE: &str = include_str!("reference.toml");

pub use error::{FlowError, Problem, Refusal};
pub use halt::HaltPolicy;
pub use model::FlowFile;
pub use parse::load;
