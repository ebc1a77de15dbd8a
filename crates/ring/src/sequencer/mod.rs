//! Who may touch which position: claims, completions, and how far others have come.
mod multi;
mod single;

pub use multi::Multi;
pub use single::Single;

use std::ops::Range;

/// How far a party has come.
pub trait Progress {
    /// The end of the completed positions that follow `from`, all of those before it being complete.
    fn completed(&self, from: u64) -> u64;
}

/// One side of a ring.
pub trait Sequencer: Progress {
    type Hand;
    fn new(capacity: u64, limit: u64) -> Self;
    fn hand(&self, limit: u64) -> Self::Hand;
    fn claim(&self, hand: &Self::Hand, least: u64, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>>;
    fn complete(&self, hand: &Self::Hand, claim: Range<u64>);
    fn room(&self, hand: &Self::Hand, frontier: impl Fn(u64) -> u64) -> u64;
    fn skipped(&self, position: u64) -> bool;
}
