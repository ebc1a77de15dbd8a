//! A collector: the state that all its threads share.

use std::sync::Arc;

use crate::primitive::{AtomicU64, Ordering, const_fn, ticket};
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::Retired;
use crate::reclaim::settings::Settings;

use super::garbage::{Orphans, Sealed};
use super::member::{Local, Member};
use super::participant::{EPOCH, FIRST};

/// Readers and garbage, separate from those of all other collectors: a reader that stays pinned holds back garbage only
/// here.
///
/// When the last handle and the last [`Local`] are dropped, the remaining retired objects are freed.
///
/// In a child of `fork`, members that other threads had pinned stay pinned permanently: make a new collector there.
#[derive(Clone)]
pub struct Collector {
    shared: Arc<Shared>,
}

impl Collector {
    /// A collector with default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::DEFAULT)
    }

    /// A collector with these settings.
    ///
    /// # Panics
    /// If the batch is 0.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Collector { shared: Arc::new(Shared::new(settings)) }
    }

    /// Joins the collector; each thread that reads or retires needs a local.
    ///
    /// Lock-free; linear in the largest number of members at one time.
    #[must_use]
    pub fn local(&self) -> Local {
        Local::new(Arc::clone(&self.shared))
    }

    /// The collector's current state; linear in the number of members.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

/// The state of a collector at about one moment: each number is read once, while other threads continue.
///
/// While a reader does not leave, `behind` and `garbage` grow with every batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of closed batches, plus one.
    pub epoch: u64,
    /// The number of threads that may pin.
    pub members: usize,
    /// The number of threads that are pinned now.
    pub pinned: usize,
    /// The number of epochs by which the oldest pinned thread is behind; 0 if no thread is pinned.
    pub behind: u64,
    /// The number of objects retired and not yet freed, without those of threads that have ended.
    pub garbage: usize,
}

/// The state behind a collector and its locals.
pub(super) struct Shared {
    pub(super) epoch: AtomicU64,
    members: Registry<Member>,
    pub(super) orphans: Orphans<Vec<Sealed>>,
    pub(super) settings: Settings,
}

impl Shared {
    const_fn! {
        /// A collector without readers and without garbage.
        pub(super) fn new(settings: Settings) -> Self {
            assert!(settings.batch > 0, "a batch holds at least one object, not 0");
            Shared { epoch: AtomicU64::new(FIRST), members: Registry::new(), orphans: Orphans::new(), settings }
        }
    }

    pub(super) fn join(&self) -> &Entry<Member> {
        self.members.acquire(Member::new)
    }

    #[cfg(not(loom))]
    pub(super) fn members(&self) -> impl Iterator<Item = &Entry<Member>> {
        self.members.iter()
    }

    /// Closes a bag whose objects the caller has unlinked, or knows to be unlinked.
    pub(super) fn seal(&self, objects: Vec<Retired>) -> Sealed {
        // Release pairs with the acquiring load in `enter`; `participant` has the proof.
        let epoch = self.epoch.fetch_add(EPOCH, Ordering::AcqRel) + EPOCH;
        Sealed { objects, epoch, ticket: ticket(self.settings.fence) }
    }

    /// The oldest of the epochs in which the current readers entered.
    pub(super) fn oldest(&self) -> u64 {
        self.members.iter().filter_map(|member| member.participant.entered()).min().unwrap_or(u64::MAX)
    }

    pub(super) fn stats(&self) -> Stats {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let mut stats = Stats { epoch: epoch / EPOCH, members: 0, pinned: 0, behind: 0, garbage: 0 };
        for member in self.members.iter() {
            stats.members += usize::from(member.is_taken());
            stats.garbage += member.garbage();
            if let Some(entered) = member.participant.entered() {
                stats.pinned += 1;
                stats.behind = stats.behind.max(epoch.saturating_sub(entered) / EPOCH);
            }
        }
        stats
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // There are no readers left, and members' bags became orphans when the members left.
        self.orphans.adopt(|bags| {
            for bag in bags {
                bag.objects.into_iter().for_each(Retired::free);
            }
        });
    }
}
