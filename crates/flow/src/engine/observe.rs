//! Observation: snapshots of a flow, and the report at its end.
//!
//! Counts and distributions change as units move, in the same critical sections. A snapshot is one moment of one state,
//! so its numbers add up.

use super::ledger::bottleneck;
use super::ledger::ledger::Counts;
use super::stages::stage::{StageState, Waits};
use super::state::State;
use crate::report::{Report, ResourceReport, StageReport};
use crate::snapshot::{ResourceSnapshot, Snapshot, StageSnapshot, WaitedFor, Waiting};

impl State {
    pub(super) fn snapshot(&mut self, flow: &str, now: u64) -> Snapshot {
        let oldest = self.oldest(now);
        let Counts { admitted, split, retired, skipped, dead_lettered, gathered } = self.ledger.counts();
        let budget = self.intake.budget();
        Snapshot {
            flow: flow.into(),
            wall_ns: self.ledger.wall_ns(now),
            admitted,
            split,
            retired,
            skipped,
            dead_lettered,
            gathered,
            in_flight: budget.in_flight(),
            inflight_cap: budget.max_in_flight(),
            bytes_in_flight: budget.bytes(),
            memory_cap: budget.max_bytes(),
            peak_in_flight: budget.peak_in_flight(),
            peak_bytes_in_flight: budget.peak_bytes(),
            oversize: budget.oversize(),
            waiting_for_memory: self.grants.memory().len() as u64,
            delayed: self.timers.paused(),
            phase: self.life.phase(),
            workers: self.crew.shared_workers() as u64,
            workers_busy: self.stages.busy() as u64,
            stages: self.stages.iter().zip(oldest).map(|(stage, oldest)| self.stage_snapshot(stage, oldest)).collect(),
            resources: self.grants.snapshots(|resource| self.stages.iter().map(|s| s.waiting_for(resource)).sum()),
        }
    }

    /// The time that the longest waiter of each stage has been in its queue.
    fn oldest(&mut self, now: u64) -> Vec<u64> {
        let mut since: Vec<u64> = self.stages.iter().map(|stage| stage.oldest_ns().unwrap_or(now).min(now)).collect();
        for (_, row, stage) in self.grants.heads() {
            let since = &mut since[usize::from(stage)];
            *since = (*since).min(self.units.record(row).queued_ns());
        }
        since.into_iter().map(|since| now.saturating_sub(since)).collect()
    }

    fn stage_snapshot(&self, stage: &StageState, oldest_ns: u64) -> StageSnapshot {
        let named = self.grants.specs().map(|spec| &spec.name).enumerate();
        let waiting_for = named
            .map(|(resource, name)| Waiting { resource: name.clone(), units: stage.waiting_for(resource) })
            .chain([Waiting { resource: "room".into(), units: stage.waiting_for_room() }])
            .filter(|waiting| waiting.units > 0);
        StageSnapshot {
            waiting_for: waiting_for.collect(),
            waited_for: self.waited_for(stage),
            ..stage.snapshot(oldest_ns)
        }
    }

    /// The waits of the stage's units, longest first.
    fn waited_for(&self, stage: &StageState) -> Vec<WaitedFor> {
        let Waits { for_resources, for_memory, for_room, in_queue: (queued, units) } = stage.waits();
        let named =
            |resource: &str, (total_ns, units): (u64, u64)| WaitedFor { resource: resource.into(), total_ns, units };
        let resources = self.grants.specs().zip(for_resources).map(|(spec, &waited)| named(&spec.name, waited));
        let mut waited: Vec<WaitedFor> = resources.collect();
        // The time in the queue includes that in line for resources and for room.
        waited.push(named("room", for_room));
        let parked: u64 = waited.iter().map(|w| w.total_ns).sum();
        waited.push(named("memory", for_memory));
        waited.push(named("a worker", (queued.saturating_sub(parked), units)));
        waited.retain(|w| w.total_ns > 0);
        waited.sort_by_key(|w| std::cmp::Reverse(w.total_ns));
        waited
    }

    pub(super) fn report(&mut self, flow: &str, now: u64) -> Report {
        let snapshot = self.snapshot(flow, now);
        self.ledger.assert_conserved(self.intake.budget().in_flight());
        Report {
            bottleneck: bottleneck::name(&snapshot, self.ledger.admission_waited_ns()),
            flow: snapshot.flow,
            outcome: self.life.outcome(),
            admitted: snapshot.admitted,
            split: snapshot.split,
            retired: snapshot.retired,
            skipped: snapshot.skipped,
            dead_lettered: snapshot.dead_lettered,
            gathered: snapshot.gathered,
            left: snapshot.in_flight,
            wall_s: snapshot.wall_ns as f64 / 1e9,
            peak_in_flight: snapshot.peak_in_flight,
            peak_bytes_in_flight: snapshot.peak_bytes_in_flight,
            oversize: snapshot.oversize,
            inflight_cap: snapshot.inflight_cap,
            memory_cap: snapshot.memory_cap,
            workers: snapshot.workers,
            latency_ns: self.ledger.latency(),
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
            torn: stage.torn,
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
