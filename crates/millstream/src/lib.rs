//! Millstream: staged execution for one machine.
//!
//! This crate holds no code; it re-exports the parts, each behind a feature of its name:
//!
//! | module | what it is |
//! | --- | --- |
//! | [`flow`] | the staged execution engine |

#[cfg(feature = "flow")]
pub use millstream_flow as flow;
