//! What a cache leaves in shared memory, for whoever comes after it.

use crate::primitive::{AtomicU64, Ordering};

/// A cache's slot, 128 bytes: two cache lines, so that neighbours are not fetched along.
#[repr(C, align(128))]
pub(crate) struct Slot {
    /// Whose it is: 0, or the identity of a process, as in `process.rs`.
    pub(crate) owner: AtomicU64,
    /// What the cache is about to do to the depot: 0, or [`Intent`].
    pub(crate) intent: AtomicU64,
    /// The tag that the depot's head has if it was done.
    pub(crate) target: AtomicU64,
    /// The highest tag of this cache that another cache has seen in the depot's head.
    pub(crate) done: AtomicU64,
    /// What the application calls who uses the cache. Left as it is until the next one has the slot.
    pub(crate) user: AtomicU64,
}

/// What a cache is about to do to the depot, with the first object of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Give(u32),
    Take(u32),
}

impl Intent {
    const GIVE: u64 = 1 << 32;
    const TAKE: u64 = 2 << 32;

    pub(crate) fn word(self) -> u64 {
        match self {
            Intent::Give(first) => Self::GIVE | u64::from(first),
            Intent::Take(first) => Self::TAKE | u64::from(first),
        }
    }

    /// What a word that is not zero says; `None` if nobody writes such a word.
    pub(crate) fn read(word: u64) -> Option<Intent> {
        let first = word as u32;
        match word & !u64::from(u32::MAX) {
            Self::GIVE => Some(Intent::Give(first)),
            Self::TAKE => Some(Intent::Take(first)),
            _ => None,
        }
    }
}

impl Slot {
    /// Says what will be done, before it is done.
    ///
    /// Release, all of them: the compiler must keep these stores in this order, and after whatever the cache did to the
    /// depot before. A process that is killed stops between two instructions, with all stores before them done, so the
    /// program's order is all that its survivors need.
    pub(crate) fn announce(&self, intent: Intent, target: u64) {
        self.target.store(target, Ordering::Release);
        self.intent.store(intent.word(), Ordering::Release);
    }

    /// There is nothing under way any more.
    pub(crate) fn settle(&self) {
        self.intent.store(0, Ordering::Release);
    }
}
