//! A domain apart from the process's own.

use crate::reclaim::settings::Settings;

use super::local::Local;
use super::pointer::Hazard;
use super::shared::Shared;
use super::stats::Stats;

/// Hazards and garbage separate from all other domains: reclaiming here scans only this domain's hazards.
///
/// Objects that are still retired when the domain is dropped are freed then.
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
