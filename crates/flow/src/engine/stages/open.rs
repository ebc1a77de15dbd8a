//! Open stages: the stages that a batch may go on to in a chain, without returning to the scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The stages, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct OpenStages(Arc<[Open]>);

/// The facts about a stage that a worker can read without the flow's mutex. All accesses are relaxed: the facts are
/// hints and publish no other data.
#[derive(Debug, Default)]
struct Open {
    /// The size of the largest batch that may go on to the stage in a chain; 0 if the stage is not open.
    units: AtomicU32,
    /// The time that a unit takes in the stage, rounded up to a power of two.
    unit_ns: AtomicU32,
}

impl OpenStages {
    pub(super) fn new(stages: usize) -> Self {
        OpenStages((0..stages).map(|_| Open::default()).collect())
    }

    /// The maximum number of units that may go on to `stage` together; 0 if it is not open, or is not a stage.
    #[inline]
    pub(crate) fn most_units(&self, stage: u16) -> usize {
        self.0.get(usize::from(stage)).map_or(0, |open| open.units.load(Ordering::Relaxed) as usize)
    }

    /// The approximate time that a unit takes in `stage`.
    pub(crate) fn unit_ns(&self, stage: u16) -> u64 {
        self.0.get(usize::from(stage)).map_or(0, |open| open.unit_ns.load(Ordering::Relaxed).into())
    }

    /// Whether a batch of this many units may go on to `stage`.
    #[inline]
    pub(crate) fn is_open(&self, stage: u16, units: usize) -> bool {
        units <= self.0[usize::from(stage)].units.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set(&self, stage: u16, units: u32, unit_ns: u64) {
        let open = &self.0[usize::from(stage)];
        // The value is rounded to a power of two, so it rarely changes.
        let unit_ns = u32::try_from(unit_ns).map_or(u32::MAX, |ns| ns.checked_next_power_of_two().unwrap_or(u32::MAX));
        for (entry, value) in [(&open.units, units), (&open.unit_ns, unit_ns)] {
            // Other cores read these words all the time, so an unchanged value is not written again.
            if entry.load(Ordering::Relaxed) != value {
                entry.store(value, Ordering::Relaxed);
            }
        }
    }
}
