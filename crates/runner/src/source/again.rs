//! A unit that runs again.

use crate::record::WantedPiece;

/// A unit to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// The number of the unit's letter, from 0.
    pub letter: usize,
    /// The path or line.
    pub text: Vec<u8>,
    /// Whether the unit is a group of items.
    pub is_group: bool,
    /// The offset in `text` at which the path below the walked folder begins, for a file that a walk found.
    pub rel_from: Option<usize>,
    /// The pieces of the unit that run again, in order, each with its letter. If the list is empty, the unit itself
    /// runs again.
    pub wanted: Vec<WantedPiece>,
    /// The number of the last piece that an earlier run has cut from the unit.
    pub after: u64,
}
