//! Sets of used pending operations, numbered.
//!
//! A pending operation is used if it has taken effect; it may do so at any time after its call, or never. Pending
//! operations of one kind are interchangeable, so only the number of used ones of each kind matters. These numbers form
//! a small multiset, stored once and numbered.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::budget::{Budget, Exhausted, HASH_FACTOR};

/// Multisets of kinds, each stored once; number 0 is the empty one.
pub(super) struct UsedSets {
    /// Kinds, ascending, each as often as it was used.
    sets: IndexSet<Box<[u32]>, FxBuildHasher>,
}

impl UsedSets {
    pub(super) fn new() -> Self {
        UsedSets { sets: [Box::default()].into_iter().collect() }
    }

    /// The set's kinds, ascending, each as often as it was used.
    pub(super) fn kinds(&self, set: u32) -> &[u32] {
        &self.sets[set as usize]
    }

    /// How often the set contains the kind.
    pub(super) fn count(&self, set: u32, kind: u32) -> u32 {
        if set == 0 {
            return 0;
        }
        let kinds = &self.sets[set as usize];
        (kinds.partition_point(|&k| k <= kind) - kinds.partition_point(|&k| k < kind)) as u32
    }

    /// The set with one more of the kind.
    pub(super) fn with(&mut self, set: u32, kind: u32, budget: &mut Budget) -> Result<u32, Exhausted> {
        let kinds = &self.sets[set as usize];
        // Ascending, so that equal multisets are equal slices and get one number.
        let place = kinds.partition_point(|&k| k <= kind);
        let more: Box<[u32]> = [&kinds[..place], &[kind], &kinds[place..]].concat().into();
        if let Some(number) = self.sets.get_index_of(&more) {
            return Ok(number as u32);
        }
        budget.charge(size_of_val(&*more) + HASH_FACTOR * 4 * size_of::<usize>())?;
        Ok(self.sets.insert_full(more).0 as u32)
    }

    /// Whether `a` is a sub-multiset of `b`.
    pub(super) fn within(&self, a: u32, b: u32) -> bool {
        if a == 0 || a == b {
            return true;
        }
        // Both sets are in ascending order, so a single pass over `b` finds all kinds of `a`.
        let mut b = self.sets[b as usize].iter();
        self.sets[a as usize].iter().all(|kind| b.any(|k| k == kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn sets_are_compared_with_multiplicity() {
        let mut budget = Budget::new(&Options::default());
        let mut sets = UsedSets::new();
        let mut make = |kinds: &[u32]| kinds.iter().fold(0, |set, &kind| sets.with(set, kind, &mut budget).unwrap());
        let (a, ab, aab, ba, b) = (make(&[1]), make(&[1, 2]), make(&[1, 2, 1]), make(&[2, 1]), make(&[2]));
        assert_eq!(ab, ba);
        assert!(sets.within(0, a) && sets.within(a, aab) && sets.within(ab, aab) && sets.within(b, ab));
        assert!(!sets.within(aab, ab) && !sets.within(a, b) && !sets.within(a, 0));
        assert_eq!((sets.count(aab, 1), sets.count(aab, 2), sets.count(aab, 3), sets.count(0, 1)), (2, 1, 0, 0));
    }
}
