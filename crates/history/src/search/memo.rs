//! The memo of the configurations visited.

use rustc_hash::FxHashMap;

use super::mask::Mask;
use super::used::UsedSets;
use crate::budget::{Budget, Exhausted, HASH_FACTOR};

/// A configuration without its set of used pending operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<const N: usize> {
    /// The number of returns passed.
    pub(super) level: u32,
    pub(super) state: u32,
    /// The open operations that are linearized.
    pub(super) mask: Mask<N>,
}

/// For each key, the sets of used pending operations with which the search visited it.
pub(super) struct Memo<const N: usize> {
    /// The first link of each key's chain.
    heads: FxHashMap<Key<N>, u32>,
    /// A set, and the next link of the chain.
    links: Vec<(u32, u32)>,
    situations: u64,
}

/// The chain of a key that was visited without any used pending operation. No other visit can be better.
const BEST: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;

impl<const N: usize> Memo<N> {
    pub(super) fn new() -> Self {
        Memo { heads: FxHashMap::default(), links: Vec::new(), situations: 0 }
    }

    /// Records the configuration. `false` if this configuration, or one at least as good, was visited before.
    pub(super) fn note(
        &mut self,
        key: Key<N>,
        used: u32,
        sets: &UsedSets,
        budget: &mut Budget,
    ) -> Result<bool, Exhausted> {
        let known = self.heads.len();
        let head = self.heads.entry(key).or_insert(END);
        let mut link = *head;
        // An earlier visit that used a subset of these pending operations has tried everything that this visit could
        // try.
        while link != BEST && link != END {
            let (set, next) = self.links[link as usize];
            if sets.within(set, used) {
                return Ok(false);
            }
            link = next;
        }
        if link == BEST {
            return Ok(false);
        }
        self.situations += 1;
        if used == 0 {
            *head = BEST;
        } else {
            self.links.push((used, *head));
            *head = self.links.len() as u32 - 1;
            budget.charge(2 * size_of::<(u32, u32)>())?;
        }
        // If the key was not in the table before, its memory is charged.
        if self.heads.len() > known {
            budget.charge(HASH_FACTOR * (size_of::<(Key<N>, u32)>() + 1))?;
        }
        Ok(true)
    }

    pub(super) fn situations(&self) -> u64 {
        self.situations
    }
}
