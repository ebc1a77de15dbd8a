//! The facts that only few units have. They are stored apart to keep records small, since a record is moved several
//! times on its way through the flow.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::lineage::{PiecesSoFar, Wanted};
#[cfg(feature = "http")]
use crate::ops::Hop;

/// The [`RareFacts`] of a unit, allocated when the first fact is set. Reading them allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct Rare(Option<Box<RareFacts>>);

/// The facts that only few units have.
#[derive(Debug, Clone)]
pub struct RareFacts {
    /// The hash that a `blake3` stage has computed.
    pub blake3: Option<[u8; 32]>,
    /// The hash that a `sha256` stage has computed.
    pub sha256: Option<[u8; 32]>,
    /// The fields that `set` stages have set, by name. There are few of them.
    pub(super) set: Vec<(String, Vec<u8>)>,
    /// The URL to which redirects have led so far, for a request that is not done yet.
    #[cfg(feature = "http")]
    pub hop: Option<Box<Hop>>,
    /// The stage for which this unit is a copy; `None` if it is not a copy.
    pub(super) copy: Option<Arc<str>>,
    /// In a retry: the number of the dead letter that this unit comes from.
    pub letter: Option<usize>,
    /// The progress of the unit's pieces; `None` until the unit is split.
    pub pieces: Option<Arc<PiecesSoFar>>,
    /// In a retry: the number of the last piece that an earlier run has made from this unit; otherwise 0.
    pub passed: u64,
    /// The pieces that a retry runs; `None` means all.
    pub wanted: Option<Arc<Wanted>>,
    /// The reason why the source, or a `split` stage, could not produce this unit properly. The unit then fails in the
    /// next stage.
    pub fault: Option<String>,
}

impl RareFacts {
    /// The values that stand for the facts of a unit without rare facts.
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
    /// The number of bytes of the texts among these facts: the set fields with their names, and the fault.
    pub(super) fn bytes(&self) -> usize {
        let set: usize = self.set.iter().map(|(name, value)| name.len() + value.len()).sum();
        set + self.fault.as_ref().map_or(0, String::len)
    }
}

impl Rare {
    /// Whether no rare fact of the unit has ever been set.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Forgets the URL to which redirects have led.
    #[cfg(feature = "http")]
    pub fn forget_hop(&mut self) {
        if let Some(facts) = &mut self.0 {
            facts.hop = None;
        }
    }

    /// Forgets the pieces that a retry runs.
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
