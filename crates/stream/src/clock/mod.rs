//! Clocks: how often a stream has a value, counted in values of another stream.
//!
//! | type | meaning |
//! | --- | --- |
//! | [`Rate`] | a positive fraction: values of the stream for each value of the other, in the long run |
//! | [`Pass`] | which values an operator lets through: an ultimately periodic word, or a decision by the data |

mod pass;
mod rate;

pub use pass::{MAX_WORD, Pass, WordError};
pub use rate::Rate;
