//! Flow files: from text to a checked [`FlowFile`], or to errors that show the line.
//!
//! ```
//! let flow = millstream_cli::file::parse("copy.toml".as_ref(), r#"
//!     [source]
//!     walk = "{input}"
//!     [[stage]]
//!     name = "read"
//!     op = "read"
//! "#, &[])?;
//! assert_eq!(flow.stages[0].name, "read");
//! # Ok::<(), millstream_cli::file::FlowError>(())
//! ```

pub mod model;
pub mod size;
pub mod template;
pub mod time;

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
