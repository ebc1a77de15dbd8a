//! Open stages: those that a batch may go on to in a chain, without coming back to the scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// For each stage, the size of the largest batch that may go on to it in a chain; 0: the stage is not open.
#[derive(Debug, Clone)]
pub(crate) struct OpenStages(Arc<[AtomicU32]>);

impl OpenStages {
    pub(super) fn new(stages: usize) -> Self {
        OpenStages((0..stages).map(|_| AtomicU32::new(0)).collect())
    }

    /// The most units that may go on to `stage` together; 0: none, or it is no stage.
    #[inline]
    pub(crate) fn most_units(&self, stage: u16) -> usize {
        // Relaxed: a hint that publishes nothing.
        self.0.get(usize::from(stage)).map_or(0, |units| units.load(Ordering::Relaxed) as usize)
    }

    /// Whether a batch of this many units may go on to `stage`.
    #[inline]
    pub(crate) fn is_open(&self, stage: u16, units: usize) -> bool {
        // Relaxed: a hint that publishes nothing.
        units <= self.0[usize::from(stage)].load(Ordering::Relaxed) as usize
    }

    pub(super) fn set(&self, stage: u16, units: u32) {
        let entry = &self.0[usize::from(stage)];
        // Other cores read this word all the time, so an equal value is not written again.
        if entry.load(Ordering::Relaxed) != units {
            entry.store(units, Ordering::Relaxed);
        }
    }
}
