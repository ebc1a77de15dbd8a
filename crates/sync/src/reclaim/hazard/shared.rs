//! The state that all threads of a domain share.

use crate::primitive::{AtomicBool, Ordering};
use crate::reclaim::registry::Registry;
use crate::reclaim::settings::Settings;

use super::garbage::Garbage;
use super::slot::Slot;
use super::stats::Stats;

/// The state behind a domain and its locals.
pub(super) struct Shared {
    pub(super) hazards: Registry<Slot>,
    pub(super) garbage: Registry<Garbage>,
    /// Whether an idle entry may have garbage. A flush checks in any case.
    left: AtomicBool,
    pub(super) settings: Settings,
}

macro_rules! new {
    ($($constant:tt)?) => {
        /// A domain without hazards and without garbage.
        pub(super) $($constant)? fn new(settings: Settings) -> Self {
            assert!(settings.batch > 0, "a batch holds at least one object, not 0");
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

    /// Notes that an idle entry has garbage.
    pub(super) fn note_left(&self) {
        // Release pairs with the acquire in `take_note`. It is an exchange, so that a thread that takes any note
        // synchronizes with all notes written before.
        self.left.swap(true, Ordering::Release);
    }

    /// Whether an idle entry may have garbage. The caller must check all of them, since this clears the note.
    pub(super) fn take_note(&self) -> bool {
        // Acquire pairs with the release in `note_left`, so that the caller finds the entry idle.
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
