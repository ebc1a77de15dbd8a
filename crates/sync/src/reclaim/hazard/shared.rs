//! What all threads of a domain share.

use crate::primitive::{AtomicBool, Ordering};
use crate::reclaim::registry::Registry;
use crate::reclaim::settings::Settings;

use super::garbage::Garbage;
use super::slot::Slot;
use super::stats::Stats;

/// A domain's inside.
pub(super) struct Shared {
    pub(super) hazards: Registry<Slot>,
    pub(super) garbage: Registry<Garbage>,
    /// An idle entry has garbage, perhaps. A flush looks in any case.
    left: AtomicBool,
    pub(super) settings: Settings,
}

macro_rules! new {
    ($($constant:tt)?) => {
        /// Nothing is protected, nothing is retired.
        pub(super) $($constant)? fn new(settings: Settings) -> Self {
            assert!(settings.batch > 0, "a batch of no objects");
            Shared {
                hazards: Registry::new(),
                garbage: Registry::new(),
                left: AtomicBool::new(false),
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

    /// Notes that an entry which is idle has garbage.
    pub(super) fn note_left(&self) {
        // Release: pairs with the acquire in `take_note`. An exchange, so that whichever note is taken, all that were written before are taken with it.
        self.left.swap(true, Ordering::Release);
    }

    /// Whether an idle entry may have garbage; the caller is to look, for nothing is noted any more.
    pub(super) fn take_note(&self) -> bool {
        // Acquire: pairs with the release in `note_left`, so that the caller finds the entry idle.
        self.left.load(Ordering::Relaxed) && self.left.swap(false, Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            hazards: self.hazards.iter().count(),
            protecting: self.hazards.iter().filter(|slot| !slot.protected().is_null()).count(),
            garbage: self.garbage.iter().map(|garbage| garbage.count()).sum(),
        }
    }
}
