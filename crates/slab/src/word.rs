//! The word of an object. It alone says which cache, or which part of the slab, has the object.
//!
//! ```text
//! bit 63                         16 15   14 13            0
//!     ┌────────────────────────────┬───────┬──────────────┐
//!     │ generation                 │ kind  │ slot or code │
//!     └────────────────────────────┴───────┴──────────────┘
//! ```
//!
//! The generation counts the frees of the object, from 1. An object whose word is zero has never been used.

/// The lowest bit of the generation.
pub(crate) const GENERATION_SHIFT: u32 = 16;
/// The increment of a word that raises its generation by one.
pub(crate) const ONE_GENERATION: u64 = 1 << GENERATION_SHIFT;
/// The bits below the generation.
const TAG: u64 = ONE_GENERATION - 1;

const CACHED: u64 = 1 << 14;
const HELD: u64 = 2 << 14;
const CODE: u64 = 3 << 14;
const SLOT: u64 = (1 << 14) - 1;
const PUBLISHED: u64 = CODE;
const ORPHAN: u64 = CODE | 1;
const RETIRED: u64 = CODE | 2;

/// The maximum number of caches that a slab can have at once.
pub(crate) const MAX_CACHES: u64 = SLOT + 1;

/// The state of an object: where it is, or which cache has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Never used.
    Virgin,
    /// Free, in the depot.
    Free,
    /// Free, in the magazine of the cache with this slot.
    Cached(u16),
    /// Allocated, and private to the cache with this slot.
    Held(u16),
    /// Allocated, and reachable by handles.
    Published,
    /// Allocated. The process that held it has died, or its cache has ended.
    Orphan,
    /// Out of use, because its generations are used up.
    Retired,
}

/// An object's word, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// The generation alone, at its bit position in the word.
    pub(crate) fn generation(self) -> Generation {
        Generation(self.0 & !TAG)
    }

    /// The word of a cached object, once the same cache has allocated it.
    #[inline(always)]
    pub(crate) fn allocated(self) -> u64 {
        self.0 ^ CACHED ^ HELD
    }

    /// The word of a held object, once the same cache has freed it; `None` when its generations are used up.
    #[inline(always)]
    pub(crate) fn freed(self) -> Option<u64> {
        (self.0 ^ HELD ^ CACHED).checked_add(ONE_GENERATION)
    }

    /// Decodes the state; `None` for a word that the library never writes.
    pub(crate) fn state(self) -> Option<State> {
        let tag = self.0 & TAG;
        if self.0 == 0 {
            return Some(State::Virgin);
        }
        if self.0 < ONE_GENERATION {
            return None;
        }
        let slot = (tag & SLOT) as u16;
        match (tag & CODE, tag) {
            (_, 0) => Some(State::Free),
            (CACHED, _) => Some(State::Cached(slot)),
            (HELD, _) => Some(State::Held(slot)),
            (_, PUBLISHED) => Some(State::Published),
            (_, ORPHAN) => Some(State::Orphan),
            (_, RETIRED) => Some(State::Retired),
            _ => None,
        }
    }
}

/// A generation at its bit position in a word, ready to be combined with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Generation(u64);

impl Generation {
    /// The generation of an object in its first use.
    pub(crate) const FIRST: Generation = Generation(ONE_GENERATION);

    pub(crate) fn from_number(number: u64) -> Self {
        Generation(number << GENERATION_SHIFT)
    }

    pub(crate) fn number(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }

    /// The next generation; `None` after the last one, when the object must never be used again.
    #[inline(always)]
    pub(crate) fn next(self) -> Option<Generation> {
        self.0.checked_add(ONE_GENERATION).map(Generation)
    }

    pub(crate) fn free(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn cached(self, slot: u16) -> u64 {
        self.0 | CACHED | u64::from(slot)
    }

    #[inline(always)]
    pub(crate) fn held(self, slot: u16) -> u64 {
        self.0 | HELD | u64::from(slot)
    }

    #[inline(always)]
    pub(crate) fn published(self) -> u64 {
        self.0 | PUBLISHED
    }

    pub(crate) fn orphan(self) -> u64 {
        self.0 | ORPHAN
    }

    pub(crate) fn retired(self) -> u64 {
        self.0 | RETIRED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_back() {
        let generation = Generation::from_number(7);
        let slot = (MAX_CACHES - 1) as u16;
        for (word, state) in [
            (generation.free(), State::Free),
            (generation.cached(slot), State::Cached(slot)),
            (generation.held(slot), State::Held(slot)),
            (generation.published(), State::Published),
            (generation.orphan(), State::Orphan),
            (generation.retired(), State::Retired),
        ] {
            assert_eq!(Word(word).state(), Some(state));
            assert_eq!(Word(word).generation(), generation);
        }
        assert_eq!(Word(0).state(), Some(State::Virgin));
    }

    #[test]
    fn invalid_words_have_no_state() {
        for word in [1, CACHED, PUBLISHED, ONE_GENERATION | 5, ONE_GENERATION | CODE | 3] {
            assert_eq!(Word(word).state(), None, "{word:#x}");
        }
    }

    #[test]
    fn allocation_and_free_change_only_the_kind_and_the_generation() {
        let generation = Generation::from_number(7);
        assert_eq!(Word(generation.cached(5)).allocated(), generation.held(5));
        let next = generation.next().unwrap();
        assert_eq!(Word(generation.held(5)).freed(), Some(next.cached(5)));
        assert_eq!(Word(Generation::from_number((1 << 48) - 1).held(5)).freed(), None);
    }

    #[test]
    fn the_last_generation_has_no_next() {
        assert_eq!(Generation::from_number((1 << 48) - 1).next(), None);
        assert_eq!(Generation::FIRST.next().unwrap().number(), 2);
    }
}
