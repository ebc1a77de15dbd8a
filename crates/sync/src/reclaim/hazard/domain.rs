//! A domain of one's own.

use crate::reclaim::settings::Settings;

use super::local::Local;
use super::pointer::Hazard;
use super::shared::Shared;
use super::stats::Stats;

/// Hazards and garbage that have nothing to do with others': who retires here looks at this domain's hazards only.
///
/// What is still retired when it is dropped is freed then.
pub struct Domain {
    shared: Shared,
}

impl Domain {
    /// With default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::DEFAULT)
    }

    /// # Panics
    /// If the batch is 0.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Domain { shared: Shared::new(settings) }
    }

    /// A slot to protect objects with, for one thread at a time.
    ///
    /// Lock-free; linear in the number of hazards there have been at once.
    #[must_use]
    pub fn hazard(&self) -> Hazard<'_> {
        Hazard::new(&self.shared.hazards)
    }

    /// A place to retire objects to, for one thread at a time.
    ///
    /// Lock-free; linear in the number of locals there have been at once.
    #[must_use]
    pub fn local(&self) -> Local<'_> {
        Local::new(&self.shared)
    }

    /// The state of things; linear in the number of hazards and locals.
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
