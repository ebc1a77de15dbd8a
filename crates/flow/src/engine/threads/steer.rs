//! Observation and steering of a flow from outside.

use std::convert::Infallible;
use std::sync::Arc;

use super::shared::Shared;
use crate::engine::intake::source::{Source, SourceEnd};
use crate::engine::settings::Settings;
use crate::engine::state::State;
use crate::report::Report;
use crate::snapshot::Snapshot;

impl Shared {
    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot {
        let mut state = self.lock();
        let now = self.now();
        // Units that wait at the gate for the next worker are shown in the queue that they will enter.
        self.gate().admit_from_gate(&mut state, now, true);
        state.follow_chains();
        state.grant_all(now);
        let snapshot = state.snapshot(self.site().name(), now);
        self.unlock(state);
        snapshot
    }

    pub(crate) fn report(&self) -> Report {
        let mut state = self.lock();
        let now = self.now();
        state.report(self.site().name(), now)
    }

    /// Grants everything that can be granted, and wakes the threads that this concerns.
    pub(crate) fn look_again(self: &Arc<Self>) {
        self.change(|_| ());
    }

    /// Changes a setting, and grants everything that it now allows.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let changed: Result<(), Infallible> = self.try_change(|state| {
            change(state);
            Ok(())
        });
        let Ok(()) = changed;
    }

    pub(crate) fn try_change<E>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> Result<(), E>) -> Result<(), E> {
        let mut state = self.lock();
        change(&mut state)?;
        state.resize();
        state.grant_all(self.now());
        self.unlock(state);
        Ok(())
    }

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

    /// Gives the flow its source. `ended` is called once with the end of the source, on any thread, without the flow's
    /// mutex.
    pub(crate) fn attach(self: &Arc<Self>, source: Box<dyn Source>, ended: impl FnOnce(SourceEnd) + Send + 'static) {
        self.source().put(source, Box::new(ended));
        let mut state = self.lock();
        state.attach_source();
        self.unlock(state);
    }
}

/// Hands the newest settings over when it is dropped.
struct HandOver<'a>(&'a Arc<Shared>);

impl Drop for HandOver<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.follow(&self.0.settings.get()));
    }
}
