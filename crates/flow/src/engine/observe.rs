//! Observation: snapshots of a flow, and the report at its end.

use std::sync::Arc;

use super::shared::Shared;
use super::state::{StageState, State, Waiter};
use super::stats::quantiles;
use crate::report::{Outcome, Report, ResourceReport, StageReport};
use crate::resource::Supply;
use crate::snapshot::{Phase, ResourceSnapshot, Snapshot, StageSnapshot, WaitedFor, Waiting};

impl Shared {
    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot {
        let mut state = self.lock();
        let now = self.now();
        // Units that wait at the gate for the next worker are shown in the queue that they will enter.
        self.gate.admit_staged(&mut state, now, true);
        state.follow_chains();
        state.flow_on(now);
        let snapshot = state.snapshot(&self.name, now);
        self.release(state);
        snapshot
    }

    pub(crate) fn report(&self) -> Report {
        let mut state = self.lock();
        let now = self.now();
        state.report(&self.name, now)
    }

    /// Changes a setting, and grants everything that it now allows.
    pub(crate) fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let changed: Result<(), std::convert::Infallible> = self.try_change(|state| {
            change(state);
            Ok(())
        });
        let Ok(()) = changed;
    }

    pub(crate) fn try_change<E>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> Result<(), E>) -> Result<(), E> {
        let mut state = self.lock();
        change(&mut state)?;
        state.follow_settings();
        state.flow_on(self.now());
        self.release(state);
        Ok(())
    }
}

impl State {
    fn snapshot(&mut self, flow: &str, now: u64) -> Snapshot {
        let oldest = self.oldest(now);
        let started = self.started_ns.unwrap_or(now);
        let ended = self.ended_ns.unwrap_or(now);
        Snapshot {
            flow: flow.into(),
            wall_ns: ended.saturating_sub(started),
            admitted: self.admitted,
            retired: self.retired,
            skipped: self.skipped,
            dead_lettered: self.dead_lettered,
            in_flight: self.in_flight,
            inflight_cap: self.settings.inflight,
            bytes_in_flight: u64::try_from(self.bytes).unwrap_or(u64::MAX),
            memory_cap: self.settings.memory,
            peak_in_flight: self.peak_in_flight,
            peak_bytes_in_flight: u64::try_from(self.peak_bytes).unwrap_or(u64::MAX),
            oversize: self.oversize,
            waiting_for_memory: self.memory_waiters.len() as u64,
            delayed: self.delayed,
            phase: self.phase,
            workers: self.settings.shared_workers as u64,
            workers_busy: self.stages.iter().map(|stage| stage.busy as u64).sum(),
            stages: self.stages.iter().zip(oldest).map(|(stage, oldest)| self.stage_snapshot(stage, oldest)).collect(),
            resources: self.resources.iter().enumerate().map(|(r, _)| self.resource_snapshot(r)).collect(),
        }
    }

    /// The time that the longest waiter of each stage has been in its queue.
    fn oldest(&mut self, now: u64) -> Vec<u64> {
        let units = self.units.clone();
        let mut since = vec![now; self.stages.len()];
        for (since, stage) in since.iter_mut().zip(&mut self.stages) {
            let granted = stage.batches.front().and_then(|batch| batch.arrivals.iter().map(|&(at, _)| at).min());
            for at in stage.waiting.oldest_ns().into_iter().chain(granted) {
                *since = (*since).min(at);
            }
        }
        for line in self.instances.iter_mut().map(|instance| &mut instance.waiters) {
            if let Some(Waiter::Unit { row, stage }) = line.front_mut() {
                let since = &mut since[usize::from(*stage)];
                *since = (*since).min(units.unit(row).queued_ns);
            }
        }
        since.into_iter().map(|since| now.saturating_sub(since)).collect()
    }

    fn stage_snapshot(&self, stage: &StageState, oldest_ns: u64) -> StageSnapshot {
        let parked = self.resources.iter().zip(&stage.parked).filter(|(_, units)| **units > 0);
        StageSnapshot {
            name: stage.name.to_string(),
            waiting: stage.queued(),
            waiting_for: parked
                .map(|(r, &units)| Waiting { resource: r.spec.name.clone(), units: units.into() })
                .collect(),
            granted: stage.granted as u64,
            running: stage.running as u64,
            units: stage.stats.units,
            failures: stage.stats.failures,
            retries: stage.stats.retries,
            dead_lettered: stage.stats.dead_lettered,
            requeued: stage.stats.requeued,
            busy_ns: stage.stats.busy_ns,
            workers_busy: stage.busy as u64,
            workers_min: stage.workers.floor as u64,
            workers_max: stage.workers.ceiling as u64,
            blocking: stage.blocking,
            oldest_ns: if stage.queued() > 0 { oldest_ns } else { 0 },
            service_ns: quantiles(&stage.stats.service),
            wait_ns: quantiles(&stage.stats.wait),
            waited_for: self.waited_for(stage),
        }
    }

    /// The waits of the stage's units, longest first.
    fn waited_for(&self, stage: &StageState) -> Vec<WaitedFor> {
        let named =
            |resource: &str, (total_ns, units): (u64, u64)| WaitedFor { resource: resource.into(), total_ns, units };
        let resources = self.resources.iter().zip(&stage.stats.waited).map(|(r, &waited)| named(&r.spec.name, waited));
        let mut waited: Vec<WaitedFor> = resources.collect();
        let parked: u64 = waited.iter().map(|w| w.total_ns).sum();
        waited.push(named("memory", stage.stats.waited_memory));
        let (queued, units) = stage.stats.waited_worker;
        waited.push(named("a worker", (queued.saturating_sub(parked), units)));
        waited.retain(|w| w.total_ns > 0);
        waited.sort_by_key(|w| std::cmp::Reverse(w.total_ns));
        waited
    }

    fn resource_snapshot(&self, index: usize) -> ResourceSnapshot {
        let resource = &self.resources[index];
        ResourceSnapshot {
            name: resource.spec.name.clone(),
            kind: resource.spec.kind().into(),
            capacity: resource.capacity(),
            rate_per_s: match resource.spec.supply {
                Supply::Tokens(_) => None,
                Supply::Rate(rate) => Some(rate.per_second),
            },
            in_use: u64::try_from(resource.in_use).unwrap_or(u64::MAX),
            peak_in_use: resource.peak_in_use,
            waiters: self.stages.iter().map(|stage| u64::from(stage.parked[index])).sum(),
            keys: resource.keys.len() as u64,
        }
    }

    fn report(&mut self, flow: &str, now: u64) -> Report {
        let snapshot = self.snapshot(flow, now);
        self.assert_conserved();
        let outcome = match self.phase {
            Phase::Abandoned => Outcome::Abandoned,
            _ if self.stopped_by_failure => Outcome::StoppedByFailure,
            _ if self.stop_asked => Outcome::Stopped,
            _ => Outcome::Complete,
        };
        Report {
            bottleneck: super::bottleneck::name(&snapshot, self.room_waited_ns),
            flow: snapshot.flow,
            outcome,
            admitted: snapshot.admitted,
            retired: snapshot.retired,
            skipped: snapshot.skipped,
            dead_lettered: snapshot.dead_lettered,
            left: snapshot.in_flight,
            wall_s: snapshot.wall_ns as f64 / 1e9,
            peak_in_flight: snapshot.peak_in_flight,
            peak_bytes_in_flight: snapshot.peak_bytes_in_flight,
            oversize: snapshot.oversize,
            inflight_cap: snapshot.inflight_cap,
            memory_cap: snapshot.memory_cap,
            workers: snapshot.workers,
            latency_ns: quantiles(&self.latency),
            stages: snapshot.stages.into_iter().map(StageReport::from).collect(),
            resources: snapshot.resources.into_iter().map(ResourceReport::from).collect(),
            dead_letters: Vec::new(),
        }
    }
}

impl From<StageSnapshot> for StageReport {
    fn from(stage: StageSnapshot) -> Self {
        StageReport {
            name: stage.name,
            units: stage.units,
            failures: stage.failures,
            retries: stage.retries,
            dead_lettered: stage.dead_lettered,
            requeued: stage.requeued,
            busy_ns: stage.busy_ns,
            workers_min: stage.workers_min,
            workers_max: stage.workers_max,
            service_ns: stage.service_ns,
            wait_ns: stage.wait_ns,
            waited_for: stage.waited_for,
        }
    }
}

impl From<ResourceSnapshot> for ResourceReport {
    fn from(resource: ResourceSnapshot) -> Self {
        ResourceReport {
            name: resource.name,
            kind: resource.kind,
            capacity: resource.capacity,
            rate_per_s: resource.rate_per_s,
            peak_in_use: resource.peak_in_use,
        }
    }
}
