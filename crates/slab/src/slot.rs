//! The state that a cache leaves in shared memory for a survivor, or for the next cache that takes its slot.

use crate::primitive::{AtomicU64, Ordering};

/// A cache's slot, 128 bytes: two cache lines, so that the adjacent-line prefetcher does not fetch a neighbour.
#[repr(C, align(128))]
pub(crate) struct Slot {
    /// The identity of the owning process, as in `process.rs`; 0 for a free slot.
    pub(crate) owner: AtomicU64,
    /// The operation on the depot that the cache has announced, as an [`Intent`]; 0 for none.
    pub(crate) intent: AtomicU64,
    /// The tag that the depot's head has once that operation is done.
    pub(crate) target: AtomicU64,
    /// The highest tag that this cache wrote into the depot's head and another cache has seen there.
    pub(crate) done: AtomicU64,
    /// The application's number for the user of the cache. It stays until the next cache takes the slot.
    pub(crate) user: AtomicU64,
}

/// The operation that a cache is about to perform on the depot, with the first object of the chain.
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

    /// Decodes a word that is not zero; `None` for a word that no cache writes.
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
    /// Announces an operation before it is done.
    ///
    /// Each store is a release: the compiler must keep these stores in this order, and after the cache's earlier
    /// changes of the depot. A process that is killed stops between two instructions: all earlier stores are done, and
    /// no later ones. So program order is all that its survivors need.
    pub(crate) fn announce(&self, intent: Intent, target: u64) {
        self.target.store(target, Ordering::Release);
        self.intent.store(intent.word(), Ordering::Release);
    }

    /// Withdraws the announcement, once the operation is done.
    pub(crate) fn settle(&self) {
        self.intent.store(0, Ordering::Release);
    }
}
