//! The parts of a flow that running code may use without the flow's mutex.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::contain::{Contained, contain};
use crate::engine::units::column::{Column, Row};
use crate::engine::units::record::Record;
use crate::engine::units::stamp::Stamp;
use crate::failure::DeadLetter;
use crate::policy::{AfterFailure, Retry};
use crate::ticket::TicketBook;

/// The fixed settings of a stage.
pub(crate) struct StageConfig {
    pub(crate) name: Arc<str>,
    pub(crate) retry: Retry,
    pub(crate) after_failure: AfterFailure,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotent: bool,
    /// The resources (by index) whose objects the stage's code may take.
    pub(crate) objects: Vec<u16>,
}

/// The listener for dead letters of units without tickets.
pub(crate) type Letters = Box<dyn Fn(DeadLetter) + Send + Sync>;

pub(crate) struct Site {
    name: String,
    flow_id: u64,
    stages: Vec<StageConfig>,
    records: Arc<Column<Record>>,
    stamps: Arc<Column<Stamp>>,
    letters: Contained<Letters>,
    /// The time at which the flow was built.
    epoch: Instant,
    /// Set when the flow is abandoned, for code that runs without the mutex. The flag publishes no other data, so
    /// relaxed is enough.
    abandoned: AtomicBool,
    /// The number of groups ever opened.
    groups: AtomicU64,
    /// The flow has a witness (see `witness`).
    witnessed: AtomicBool,
    /// The current time of a simulated flow.
    simulated: Option<Arc<AtomicU64>>,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Site {
    pub(crate) fn new(
        name: String,
        flow_id: u64,
        stages: Vec<StageConfig>,
        (records, stamps): (Arc<Column<Record>>, Arc<Column<Stamp>>),
        letters: Letters,
    ) -> Self {
        Site {
            name,
            flow_id,
            stages,
            records,
            stamps,
            letters: Contained::new(letters),
            epoch: Instant::now(),
            abandoned: AtomicBool::new(false),
            groups: AtomicU64::new(0),
            witnessed: AtomicBool::new(false),
            simulated: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(crate) fn flow_id(&self) -> u64 {
        self.flow_id
    }

    #[inline]
    pub(crate) fn stage(&self, stage: u16) -> &StageConfig {
        &self.stages[usize::from(stage)]
    }

    pub(crate) fn stages(&self) -> &[StageConfig] {
        &self.stages
    }

    #[inline]
    pub(crate) fn records(&self) -> &Arc<Column<Record>> {
        &self.records
    }

    #[inline]
    pub(crate) fn stamps(&self) -> &Arc<Column<Stamp>> {
        &self.stamps
    }

    /// The number of a new group. A unit may open several groups, one after the other.
    pub(crate) fn next_group(&self) -> u64 {
        // Relaxed: the numbers only have to differ.
        self.groups.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells running code that a witness listens to the flow.
    #[cfg(feature = "trace")]
    pub(crate) fn set_witnessed(&self) {
        // Relaxed: each thread that reports to the witness has synchronized with it after this store (see
        // `trace::tape`).
        self.witnessed.store(true, Ordering::Relaxed);
    }

    /// Whether a witness listens to the flow.
    #[inline]
    pub(crate) fn is_witnessed(&self) -> bool {
        self.witnessed.load(Ordering::Relaxed)
    }

    /// Makes the flow take its time from `now`, for a simulation.
    pub(crate) fn simulate(&mut self, now: Arc<AtomicU64>) {
        self.simulated = Some(now);
    }

    /// Nanoseconds since the flow was built.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match &self.simulated {
            None => self.epoch.elapsed().as_nanos() as u64,
            // Relaxed: one thread drives a simulated flow.
            Some(now) => now.load(Ordering::Relaxed),
        }
    }

    /// The moment that is this many nanoseconds after the flow was built.
    pub(crate) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }

    /// The nanoseconds from when the flow was built to this moment.
    pub(crate) fn ns_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    #[inline]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    pub(crate) fn set_abandoned(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Delivers a dead letter to its unit's ticket or to the flow's listener.
    pub(crate) fn deliver(&self, letter: DeadLetter, ticketed: bool, row: &mut Row, tickets: &dyn TicketBook) {
        contain(|| {
            let letter = if ticketed { tickets.dead(row, letter) } else { Some(letter) };
            if let Some(letter) = letter {
                (self.letters)(letter);
            }
        });
    }
}
