//! What all threads of a domain share.

use alloc::vec::Vec;

use crate::reclaim::orphans::Orphans;
use crate::reclaim::registry::Registry;
use crate::reclaim::retired::Retired;
use crate::reclaim::settings::Settings;

use super::garbage::Garbage;
use super::slot::Slot;
use super::stats::Stats;

/// A domain's inside.
pub(super) struct Shared {
    pub(super) hazards: Registry<Slot>,
    pub(super) garbage: Registry<Garbage>,
    pub(super) orphans: Orphans<Vec<Retired>>,
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

    pub(super) fn stats(&self) -> Stats {
        Stats {
            hazards: self.hazards.iter().count(),
            protecting: self.hazards.iter().filter(|slot| !slot.protected().is_null()).count(),
            garbage: self.garbage.iter().map(|garbage| garbage.count()).sum(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody is left who could read: what threads had retired became orphans when they left.
        self.orphans.adopt(|objects| objects.into_iter().for_each(Retired::free));
    }
}
