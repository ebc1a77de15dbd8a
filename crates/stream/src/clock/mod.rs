//! Clocks: how the values of a stream relate to the values of another stream.
//!
//! | type | meaning |
//! | --- | --- |
//! | [`Rate`] | a positive fraction: the stream's values for each value of the other stream, in the long run |
//! | [`Pass`] | which values pass an operator: an ultimately periodic word, or a data decision |

mod pass;
mod rate;

pub use pass::{MAX_WORD, Pass, WordError};
pub use rate::Rate;
