//! A collector of one's own.

use std::sync::Arc;

use crate::reclaim::settings::Settings;

use super::local::Local;
use super::shared::Shared;
use super::stats::Stats;

/// Readers and garbage that have nothing to do with others': a reader that stays holds back only this collector's.
///
/// What is still retired when the last handle and the last [`Local`] are gone is freed then.
///
/// In a child of `fork`, members that other threads had pinned stay pinned for good: make a new one there.
#[derive(Clone)]
pub struct Collector {
    shared: Arc<Shared>,
}

impl Collector {
    /// With default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::DEFAULT)
    }

    /// # Panics
    /// If the batch is 0.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Collector { shared: Arc::new(Shared::new(settings)) }
    }

    /// Joins; for the thread that is going to read or retire.
    ///
    /// Lock-free; linear in the number of members there have been at once.
    #[must_use]
    pub fn local(&self) -> Local {
        Local::new(Arc::clone(&self.shared))
    }

    /// The state of things; linear in the number of members.
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
