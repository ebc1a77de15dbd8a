//! A collector apart from the process's own.

use std::sync::Arc;

use crate::reclaim::settings::Settings;

use super::local::Local;
use super::shared::Shared;
use super::stats::Stats;

/// Readers and garbage separate from all other collectors: a reader that stays pinned holds back garbage only here.
///
/// Objects that are still retired when the last handle and the last [`Local`] are gone are freed then.
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
