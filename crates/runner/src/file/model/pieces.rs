//! `split`, `copy` and `gather`.

use std::sync::Arc;
use std::time::Duration;

use crate::file::template::Template;

/// See [`OpSpec::Split`](super::OpSpec::Split).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitSpec {
    /// The kind of the pieces.
    pub by: SplitBy,
    /// The size of the largest piece that is accepted.
    pub max_bytes: usize,
}

/// A piece of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitBy {
    /// A line.
    Lines,
    /// The bytes up to a NUL byte.
    Nul,
    /// The bytes up to a fixed separator.
    Separator(Vec<u8>),
    /// The bytes up to a text that this regular expression matches.
    Matches(String),
    /// About this number of bytes, up to the end of a line.
    Blocks(usize),
    /// An element of an array, or one value of a sequence.
    Json,
    /// A row of a table.
    Table {
        /// The byte that separates the cells of a row.
        separator: u8,
        /// Whether the first row names the columns.
        header: bool,
    },
    /// A file of an archive.
    Tar,
    /// A file of an archive with a directory at its end.
    Zip,
    /// `copy`: the unit itself, once for each of these stages.
    Copies(Vec<Arc<str>>),
}

impl SplitSpec {
    /// The stages that get a copy, if the pieces are copies.
    pub fn copies(&self) -> Option<&[Arc<str>]> {
        match &self.by {
            SplitBy::Copies(stages) => Some(stages),
            _ => None,
        }
    }
}

/// See [`OpSpec::Gather`](super::OpSpec::Gather).
#[derive(Debug, Clone)]
pub struct GatherSpec {
    /// Which units join one group.
    pub by: GatherBy,
    /// A group of this many units is closed; no such limit if absent.
    pub units: Option<u64>,
    /// A group whose contents have this many bytes is closed; no such limit if absent.
    pub bytes: Option<u64>,
    /// A group is closed this long after its first member; no such limit if absent.
    pub wait: Option<Duration>,
    /// The maximum number of groups that are open at once; the engine's default if absent.
    pub max_groups: Option<u64>,
    /// Whether the group of a unit's pieces goes on even if one of them has failed.
    pub partial: bool,
    /// The content that each unit contributes; `None` means its payload.
    pub item: Option<Template>,
    /// The payload that is made from the contents.
    pub reduce: Reduce,
}

/// The units that join one group.
#[derive(Debug, Clone, PartialEq)]
pub enum GatherBy {
    /// All units.
    All,
    /// The pieces of one unit.
    Parent,
    /// The units with the same text.
    Key(Template),
}

/// The payload of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reduce {
    /// The contents of the group's members, one after the other.
    Concat {
        /// The bytes that follow each content.
        after: Vec<u8>,
    },
    /// The lines of all members in order. The content of each member must be sorted already.
    Merge,
    /// The number of the group's members.
    Count,
    /// One number, computed from the contents of the members, which are numbers.
    Number(Fold),
}

/// The way in which a group computes one number from those of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The sum of the numbers.
    Sum,
    /// The least of the numbers.
    Min,
    /// The greatest of the numbers.
    Max,
    /// The mean of the numbers.
    Mean,
}
