//! The builder: streams as Rust values.

mod chain;
mod draft;
mod join;
mod moment;
mod source;
mod stream;
mod window;

pub use self::chain::Chain;
pub use self::draft::{Error, Program};
pub use self::stream::Stream;
