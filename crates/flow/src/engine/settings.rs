//! The caps of a flow, and the bounds on the workers of each stage. They can change while the flow runs.
//!
//! The settings are one value that is replaced as a whole, so threads at the gate read it without the flow's mutex. The
//! parts of the scheduler have their own copies of these numbers. The copies change only under the mutex, so all reads
//! within one step agree. If a step read the shared value instead, it could mix old and new caps, for example when it
//! computes how many units may still enter.
//!
//! A change takes two steps. The setter first replaces the value. Then, under the mutex, it passes the newest value to
//! the parts; this value may come from another setter. The setter replaces the value before it locks the mutex, because
//! the replacement may run user code: the destructors of other values that the thread has retired.

/// The settings that threads read while setters replace them.
pub(crate) type LiveSettings = millstream_sync::reclaim::Snapshot<Settings>;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The maximum number of units in flight.
    pub(crate) inflight: u64,
    /// The maximum number of payload bytes in flight.
    pub(crate) memory: u64,
    /// The number of threads that serve all non-blocking stages.
    pub(crate) shared_workers: usize,
    /// The bounds on the workers of each stage.
    pub(crate) workers: Box<[Workers]>,
}

impl Settings {
    /// Sets the number of shared workers, and each ceiling that is tied to it.
    pub(crate) fn set_shared_workers(&mut self, threads: usize) {
        self.shared_workers = threads;
        for stage in self.workers.iter_mut().filter(|stage| stage.follows_shared) {
            stage.ceiling = threads;
        }
    }
}

/// The bounds on the workers of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workers {
    /// Minimum number of workers while the stage has granted work.
    pub(crate) floor: usize,
    /// Maximum number of workers.
    pub(crate) ceiling: usize,
    /// The ceiling is always equal to the number of shared workers.
    pub(crate) follows_shared: bool,
}
