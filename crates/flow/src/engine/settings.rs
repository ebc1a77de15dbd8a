//! Caps and bounds of workers, which can change while a flow runs.
//!
//! The settings are one value that is replaced as a whole, so threads at the gate read it without the flow's mutex. The
//! scheduler keeps to the value that it was given last, so two reads within one step agree. A change therefore takes
//! two steps: the setter replaces the value, and then, under the mutex, hands over the newest one, even if another
//! setter made it. The replacement stays outside of the mutex because it may run destructors of other values that the
//! thread has retired, and those are the program's code.

use std::sync::Arc;

use super::shared::Shared;
use super::state::State;

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

impl Shared {
    /// Changes settings, and grants everything that they now allow.
    pub(crate) fn steer(self: &Arc<Self>, change: impl Fn(&mut Settings)) {
        // The guard hands the settings over even if one of the destructors panics.
        let _hand_over = HandOver(self);
        self.settings.update(|settings| {
            let mut settings = settings.clone();
            change(&mut settings);
            settings
        });
    }
}

/// Hands the newest settings over when it is dropped.
struct HandOver<'a>(&'a Arc<Shared>);

impl Drop for HandOver<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.follow(self.0.settings.get()));
    }
}

impl State {
    /// Adopts these settings.
    pub(crate) fn follow(&mut self, settings: Arc<Settings>) {
        self.settings = settings;
        for stage in 0..self.stages.len() as u16 {
            self.stage(stage).workers = self.settings.workers[usize::from(stage)];
            self.mark_pump(stage);
        }
    }
}
