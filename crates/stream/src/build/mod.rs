//! The builder: streams as values of Rust.

mod draft;
mod join;
mod moment;
mod source;
mod stream;
mod window;

pub use self::draft::{Error, Program};
pub use self::stream::Stream;
