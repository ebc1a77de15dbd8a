//! The facts that few units have. They lie apart, so that the others are small: a unit is moved several times on its way.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::lineage::{PiecesSoFar, Wanted};
#[cfg(feature = "http")]
use crate::ops::Hop;

/// The [`RareFacts`] of a unit, in memory of their own once there are any. Reading them needs none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare(Option<Box<RareFacts>>);

/// The facts that few units have.
#[derive(Debug, Clone)]
pub(crate) struct RareFacts {
    /// Set by a `blake3` stage.
    pub blake3: Option<[u8; 32]>,
    /// Set by a `sha256` stage.
    pub sha256: Option<[u8; 32]>,
    /// The fields that `set` stages have set, by name; few.
    pub(super) set: Vec<(String, Vec<u8>)>,
    /// Where redirects have led a request that is not done yet.
    #[cfg(feature = "http")]
    pub hop: Option<Box<Hop>>,
    /// The stage that it is a copy for.
    pub(super) copy: Option<Arc<str>>,
    /// Which of the dead letters that are retried it is of.
    pub letter: Option<usize>,
    /// The progress of its pieces, once it is being split.
    pub pieces: Option<Arc<PiecesSoFar>>,
    /// In a retry: the number of the last piece that an earlier run has brought out.
    pub passed: u64,
    /// The pieces that a retry wants of it; `None`: all.
    pub wanted: Option<Arc<Wanted>>,
    /// Why the source could not produce this unit, which then is to be given up on in the first stage.
    pub fault: Option<String>,
}

impl RareFacts {
    /// Those of most units.
    const NONE: Self = Self {
        blake3: None,
        sha256: None,
        set: Vec::new(),
        #[cfg(feature = "http")]
        hop: None,
        copy: None,
        letter: None,
        pieces: None,
        passed: 0,
        wanted: None,
        fault: None,
    };
}

impl RareFacts {
    /// The bytes of its words.
    pub(super) fn bytes(&self) -> usize {
        let set: usize = self.set.iter().map(|(name, value)| name.len() + value.len()).sum();
        set + self.fault.as_ref().map_or(0, String::len)
    }
}

impl Rare {
    /// Whether there are any.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Forgets where redirects have led.
    #[cfg(feature = "http")]
    pub(crate) fn forget_hop(&mut self) {
        if let Some(facts) = &mut self.0 {
            facts.hop = None;
        }
    }

    /// Forgets what a retry wants of the unit.
    pub(super) fn forget_wanted(&mut self) {
        if let Some(facts) = &mut self.0 {
            facts.wanted = None;
        }
    }
}

impl Deref for Rare {
    type Target = RareFacts;

    fn deref(&self) -> &RareFacts {
        static NONE: RareFacts = RareFacts::NONE;
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Rare {
    fn deref_mut(&mut self) -> &mut RareFacts {
        self.0.get_or_insert_with(|| Box::new(RareFacts::NONE))
    }
}
