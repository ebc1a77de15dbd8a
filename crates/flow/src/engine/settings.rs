//! Caps and bounds of workers, which can change while a flow runs.
//!
//! The settings are one value that is replaced as a whole, so threads at the gate read it without the flow's mutex. The
//! scheduler's parts keep the numbers that they were given last, so two reads within one step agree: the number of
//! units that may still enter is a difference, and must not be computed from two caps. A change therefore takes two
//! steps: the setter replaces the value, and then, under the mutex, hands over the newest one, even if another setter
//! made it. The replacement stays outside of the mutex because it may run destructors of other values that the thread
//! has retired, and those are user code.

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
    /// The bounds of each stage.
    pub(crate) workers: Box<[Workers]>,
}

impl Settings {
    /// Sets the number of shared workers, and with it every ceiling that follows it.
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
    /// The ceiling is the number of shared workers, whatever that becomes.
    pub(crate) follows_shared: bool,
}
