//! How a flow is observed and steered from outside.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::shared::Shared;
use crate::engine::explain::{Found, HolderSearch, PayloadSearch, Stands, Stepped, UnitSearch};
use crate::engine::grants::look::BusiestKeys;
use crate::engine::intake::source::{Source, SourceEnd};
use crate::engine::settings::Settings;
use crate::engine::state::State;
use crate::engine::units::column::Row;
#[cfg(feature = "trace")]
use crate::engine::units::record::Record;
#[cfg(feature = "trace")]
use crate::engine::units::walk::WalkedTo;
use crate::explain::{FoundUnits, LineState, NoLine, NoUnit, UnitState, WaitsFor};
use crate::report::Report;
use crate::snapshot::{KeySnapshot, Snapshot};

/// The number of keys that are inspected in one critical section, which takes a tenth of a millisecond.
const KEYS_AT_ONCE: usize = 4_096;

/// The maximum number of existing keys that an error about an unknown key lists.
const SOME_KEYS: usize = 4_096;

impl Shared {
    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot {
        let mut state = self.lock();
        let now = self.now();
        // Units at the gate wait only for the next worker. They are admitted here if there is room, so the snapshot
        // shows them in their queue.
        self.gate().admit_from_gate(&mut state, now);
        state.follow_turns();
        state.grant_all(now);
        let snapshot = state.snapshot(self.site().name(), now);
        self.unlock_and_wake(state);
        snapshot
    }

    /// The unit with this number, with the line in which it waits.
    pub(crate) fn explain_unit(&self, number: u64, most: usize) -> Result<UnitState, NoUnit> {
        let mut seen = None;
        // A second walk finds a unit that moved from a list not yet walked to a list already walked.
        for _ in 0..2 {
            let mut search = UnitSearch::new(number);
            if let Some(found) = self.search(|state, now| state.search_unit(&mut search, now)) {
                return Ok(self.with_line(found, most));
            }
            seen = search.seen;
        }
        let (next, unseen) = self.lock().numbers();
        Err(NoUnit { unit: number, next, seen, unseen })
    }

    /// At most `most` waiting units, with the labels that `label` gives to their payloads.
    pub(crate) fn find_units<T: 'static, L>(
        &self,
        most: usize,
        mut label: impl FnMut(&T) -> Option<L>,
    ) -> FoundUnits<L> {
        let mut search = PayloadSearch::new(most);
        let mut labels = Vec::new();
        let mut is_meant = |row: &Row, stage: u16| {
            let payload = self.lane(stage).peek(row).and_then(|payload| payload.downcast_ref());
            let found = payload.and_then(&mut label);
            let is_found = found.is_some();
            labels.extend(found.filter(|_| labels.len() < most));
            is_found
        };
        let _over: Option<()> = self.search(|state, now| state.search_payloads(&mut search, now, &mut is_meant));
        let in_hand = self.lock().in_hand();
        FoundUnits { units: search.found.into_iter().zip(labels).collect(), in_all: search.in_all, in_hand }
    }

    /// Passes to `see` the number, the stage and the record of each unit that waits to run in a stage. A unit that
    /// moves meanwhile may be passed twice or not at all.
    #[cfg(feature = "trace")]
    pub(crate) fn see_waiting(&self, mut see: impl FnMut(u64, u16, &Record)) {
        let mut at = WalkedTo::default();
        let _over: Option<()> = self.search(|state, _| state.search_waiting(&mut at, &mut see));
    }

    /// A resource or one of its keys, with at most `most` of the units that hold it, and at most `most` units in its
    /// line.
    pub(crate) fn explain_line(&self, resource: &str, key: Option<&str>, most: usize) -> Result<LineState, NoLine> {
        let index = self.lock().find_line(resource, key, SOME_KEYS)?;
        // The key may have been forgotten since it was found.
        self.line(index, key, most).ok_or_else(|| NoLine::NoKey {
            resource: resource.to_owned(),
            key: key.map(str::to_owned),
            keys: 0,
            some: Vec::new(),
        })
    }

    /// For each resource with keys, the `most` keys with the most waiters.
    pub(crate) fn busiest_keys(&self, most: usize) -> Vec<KeySnapshot> {
        let mut busiest = BusiestKeys::new(most);
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.look(|state, _| state.grants.look_at_keys(at, KEYS_AT_ONCE, &mut busiest));
        }
        busiest.into_keys()
    }

    fn with_line(&self, found: Found, most: usize) -> UnitState {
        let Found { mut unit, stands } = found;
        let Some(Stands { resource, key, amount, ahead, for_batch }) = stands else { return unit };
        // If the line no longer exists, the unit has received what it waited for, so no line is shown.
        unit.waits_for = self.line(resource, key.as_deref(), most).map(|line| match (Box::new(line), for_batch) {
            (line, true) => WaitsFor::Permit { ahead, line },
            (line, false) => WaitsFor::Resource { amount, ahead, line },
        });
        unit
    }

    fn line(&self, resource: u16, key: Option<&str>, most: usize) -> Option<LineState> {
        let now = self.now();
        let mut line = self.lock().line(resource, key, most, now)?;
        if line.in_use == 0 {
            return Some(line);
        }
        let mut holders = HolderSearch::new(most);
        let _over = self.search(|state, now| state.search_holders(&mut holders, resource, key, now));
        line.in_use_unnamed = line.in_use.saturating_sub(holders.held);
        line.holders_in_all = holders.in_all;
        line.holders = holders.holders;
        Some(line)
    }

    /// Repeats a step under the mutex until the search ends.
    fn search<T>(&self, mut step: impl FnMut(&State, u64) -> Stepped<T>) -> Option<T> {
        loop {
            match self.look(&mut step) {
                Stepped::Found(found) => return Some(found),
                Stepped::Over => return None,
                Stepped::GoesOn => {}
            }
        }
    }

    /// Reads the state under the mutex, and then pauses for as long as the reading took.
    ///
    /// The mutex is unfair. Without the pause, a thread that locks it again and again could keep out a waiter that has
    /// gone to sleep. During the pause, a spinning waiter locks the mutex, and a sleeping waiter wakes up. Other users
    /// of the mutex need no such pause.
    fn look<T>(&self, look: impl FnOnce(&State, u64) -> T) -> T {
        let state = self.lock();
        let now = self.now();
        let seen = look(&state, now);
        drop(state);
        thread::sleep(Duration::from_nanos(self.now().saturating_sub(now)));
        seen
    }

    pub(crate) fn report(&self) -> Report {
        let state = self.lock();
        let now = self.now();
        let report = state.report(self.site().name(), now);
        drop(state);
        #[cfg(feature = "fibers")]
        let report = self.fibers().complete(report);
        report
    }

    /// Grants everything that can be granted, and wakes the threads concerned.
    pub(crate) fn look_again(self: &Arc<Self>) {
        self.change(|_| ());
    }

    /// Changes a setting, and grants everything that the change allows.
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
        self.unlock_and_wake(state);
        Ok(())
    }

    /// Changes settings, and grants everything that the change allows.
    pub(crate) fn steer(self: &Arc<Self>, change: impl Fn(&mut Settings)) {
        // The guard passes on the settings even if a destructor panics.
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
        self.unlock_and_wake(state);
    }
}

/// A guard that passes the newest settings to the state when it is dropped.
struct HandOver<'a>(&'a Arc<Shared>);

impl Drop for HandOver<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.follow(&self.0.settings.get()));
    }
}
