//! The builder: streams as Rust values.

mod draft;
mod join;
mod moment;
mod source;
mod stream;
mod window;

pub use self::draft::{Error, Program};
pub use self::stream::Stream;
