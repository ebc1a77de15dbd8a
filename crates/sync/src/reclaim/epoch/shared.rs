//! The state that all threads of a collector share.

use crate::primitive::{AtomicU64, Ordering, ticket};
use crate::reclaim::orphans::Orphans;
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::settings::Settings;

use super::bag::Sealed;
use super::member::Member;
use super::participant::{EPOCH, FIRST};
use super::stats::Stats;

/// The state behind a collector and its locals.
pub(super) struct Shared {
    pub(super) epoch: AtomicU64,
    members: Registry<Member>,
    pub(super) orphans: Orphans<Vec<Sealed>>,
    pub(super) settings: Settings,
}

macro_rules! new {
    ($($constant:tt)?) => {
        /// A collector without readers and without garbage.
        pub(super) $($constant)? fn new(settings: Settings) -> Self {
            assert!(settings.batch > 0, "a batch holds at least one object, not 0");
            Shared {
                epoch: AtomicU64::new(FIRST),
                members: Registry::new(),
                orphans: Orphans::new(),
                settings,
            }
        }
    };
}

impl Shared {
    #[cfg(not(loom))]
    new!(const);
    #[cfg(loom)]
    new!();

    pub(super) fn join(&self) -> &Entry<Member> {
        self.members.acquire(Member::new)
    }

    #[cfg(not(loom))]
    pub(super) fn members(&self) -> impl Iterator<Item = &Entry<Member>> {
        self.members.iter()
    }

    /// Closes a bag whose objects the caller has unlinked, or knows to be unlinked.
    pub(super) fn seal(&self, objects: Vec<crate::reclaim::retired::Retired>) -> Sealed {
        // Release pairs with the acquiring load in `enter`; `participant` has the proof.
        let epoch = self.epoch.fetch_add(EPOCH, Ordering::AcqRel) + EPOCH;
        Sealed { objects, epoch, ticket: ticket(self.settings.fence) }
    }

    /// The oldest epoch in which a reader entered that has not left.
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
        // There are no readers any more, and members' bags became orphans when they left.
        self.orphans.adopt(|bags| {
            for bag in bags {
                bag.objects.into_iter().for_each(crate::reclaim::retired::Retired::free);
            }
        });
    }
}
