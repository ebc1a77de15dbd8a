//! A domain: the hazards and the garbage that its threads share.

use crate::primitive::{AtomicBool, Ordering, const_fn};
use crate::reclaim::registry::Registry;
use crate::reclaim::settings::Settings;

use super::garbage::{Garbage, Local};
use super::pointer::Hazard;
use super::slot::Slot;

/// Hazards and garbage, separate from those of all other domains: reclaiming here scans only this domain's hazards.
///
/// Dropping the domain frees the retired objects that remain.
pub struct Domain {
    shared: Shared,
}

impl Domain {
    /// A domain with default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::DEFAULT)
    }

    /// A domain with these settings.
    ///
    /// # Panics
    /// If the batch is 0.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Domain { shared: Shared::new(settings) }
    }

    /// A slot that protects objects, for one thread at a time.
    ///
    /// Lock-free; linear in the largest number of hazards at one time.
    #[must_use]
    pub fn hazard(&self) -> Hazard<'_> {
        Hazard::new(&self.shared.hazards)
    }

    /// A local to which one thread at a time retires objects.
    ///
    /// Lock-free; linear in the largest number of locals at one time.
    #[must_use]
    pub fn local(&self) -> Local<'_> {
        Local::new(&self.shared)
    }

    /// The domain's current state; linear in the number of hazards and locals.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

/// The state of a domain at about one moment: each number is read once, while other threads continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of slots, which is the largest number of [`Hazard`](super::Hazard)s at one time.
    pub hazards: usize,
    /// The number of slots that protect an object now.
    pub protecting: usize,
    /// The number of objects retired and not yet freed.
    pub garbage: usize,
}

/// The state behind a domain and its locals.
pub(super) struct Shared {
    pub(super) hazards: Registry<Slot>,
    pub(super) garbage: Registry<Garbage>,
    /// Whether an idle entry may have garbage. A flush checks all idle entries, whether or not this is set.
    left: AtomicBool,
    pub(super) settings: Settings,
}

impl Shared {
    const_fn! {
        /// A domain without hazards and without garbage.
        pub(super) fn new(settings: Settings) -> Self {
            assert!(settings.batch > 0, "a batch holds at least one object, not 0");
            Shared {
                hazards: Registry::new(),
                garbage: Registry::new(),
                left: AtomicBool::new(false),
                settings,
            }
        }
    }

    /// Notes that an idle entry has garbage.
    pub(super) fn note_left(&self) {
        // Release pairs with the acquire in `take_note`. The store is an exchange, so that a thread that takes any note
        // synchronizes with all notes written before.
        self.left.swap(true, Ordering::Release);
    }

    /// Whether an idle entry may have garbage. The caller must check all entries, because this clears the note.
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
