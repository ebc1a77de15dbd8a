//! What can be changed while a flow runs: caps and workers.
//!
//! All of it is one value that is replaced as a whole, so who brings a unit looks at it without the flow's mutex. The scheduler
//! keeps to the value it was given last, so that two looks within one step see the same. A change is therefore made in two steps:
//! the value is replaced, and then, under the mutex, the newest is handed over, whoever's it is. Not all of it under the
//! mutex: replacing may run destructors of whatever else the thread has retired, and those are the program's code.

use std::sync::Arc;

use super::shared::Shared;
use super::state::State;

/// Settings that others read while they are replaced.
pub(crate) type LiveSettings = millstream_sync::reclaim::Snapshot<Settings>;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The most units in flight.
    pub(crate) inflight: u64,
    /// The most payload bytes in flight.
    pub(crate) memory: u64,
    /// Threads that serve all stages that do not block.
    pub(crate) shared_workers: usize,
    /// Of each stage.
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

/// How many workers run a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workers {
    /// As many do if there is work.
    pub(crate) floor: usize,
    /// No more do.
    pub(crate) ceiling: usize,
    /// The ceiling is the number of shared workers, whatever that becomes.
    pub(crate) follows_shared: bool,
}

impl Shared {
    /// Changes settings, and lets whatever they allow happen.
    pub(crate) fn steer(self: &Arc<Self>, change: impl Fn(&mut Settings)) {
        // Even if one of the destructors panics.
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
    /// Goes by these settings from now on.
    pub(crate) fn follow(&mut self, settings: Arc<Settings>) {
        self.settings = settings;
        for stage in 0..self.stages.len() as u16 {
            self.stage(stage).workers = self.settings.workers[usize::from(stage)];
            self.mark_pump(stage);
        }
    }
}
