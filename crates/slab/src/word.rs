//! The word of an object: the one place that says in whose hands it is.
//!
//! ```text
//! bit 63                         16 15   14 13            0
//!     ┌────────────────────────────┬───────┬──────────────┐
//!     │ generation                 │ kind  │ slot or code │
//!     └────────────────────────────┴───────┴──────────────┘
//! ```
//!
//! The generation counts how often the object was freed, from 1. A word of zero has never been used.

/// Where the generation begins.
pub(crate) const GENERATION_SHIFT: u32 = 16;
/// What is added to a word to raise its generation by one.
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

/// How many caches a slab can have at once.
pub(crate) const MAX_CACHES: u64 = SLOT + 1;

/// In whose hands an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody's, and never was anybody's.
    Virgin,
    /// In the depot.
    Free,
    /// Free, and in the magazine of the cache with this slot.
    Cached(u16),
    /// Allocated, and private to that cache.
    Held(u16),
    /// Allocated, and reached by handles.
    Published,
    /// Was held by a cache whose process has died.
    Orphan,
    /// Its generations are used up.
    Retired,
}

/// A word that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// The generation alone, in its place.
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

    /// What it says; `None` if nobody writes such a word.
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

/// A generation in its place, ready to be joined with what else a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Generation(u64);

impl Generation {
    /// That of an object which is used for the first time.
    pub(crate) const FIRST: Generation = Generation(ONE_GENERATION);

    pub(crate) fn from_number(number: u64) -> Self {
        Generation(number << GENERATION_SHIFT)
    }

    pub(crate) fn number(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }

    /// The next one; `None` when there is none, and the object must never be used again.
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
    fn what_nobody_writes_is_told_from_the_rest() {
        for word in [1, CACHED, PUBLISHED, ONE_GENERATION | 5, ONE_GENERATION | CODE | 3] {
            assert_eq!(Word(word).state(), None, "{word:#x}");
        }
    }

    #[test]
    fn a_cache_turns_its_own_words_over() {
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
