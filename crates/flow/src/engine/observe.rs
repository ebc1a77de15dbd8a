//! Observation: snapshots of a flow, and the report at its end.
//!
//! Counts and distributions change in the same critical sections in which units move. A snapshot shows the state at one
//! moment, so its numbers add up.

use super::ledger::bottleneck;
use super::ledger::ledger::Counts;
use super::stages::stage::{StageState, Waits};
use super::state::State;
use crate::report::{Report, ResourceReport, StageReport};
use crate::snapshot::{ResourceSnapshot, Snapshot, StageSnapshot, WaitedFor, Waiting};

impl State {
    pub(super) fn snapshot(&self, flow: &str, now: u64) -> Snapshot {
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
            stages: self.stages.iter().map(|stage| self.stage_snapshot(stage, now)).collect(),
            resources: self.grants.snapshots(|resource| self.stages.iter().map(|s| s.waiting_for(resource)).sum()),
        }
    }

    fn stage_snapshot(&self, stage: &StageState, now: u64) -> StageSnapshot {
        let named = self.grants.specs().map(|spec| &spec.name).enumerate();
        let waiting_for = named
            .map(|(resource, name)| Waiting { resource: name.clone(), units: stage.waiting_for(resource) })
            .chain([Waiting { resource: "room".into(), units: stage.waiting_for_room() }])
            .filter(|waiting| waiting.units > 0);
        StageSnapshot { waiting_for: waiting_for.collect(), waited_for: self.waited_for(stage), ..stage.snapshot(now) }
    }

    /// The total waits of the stage's units, longest first.
    fn waited_for(&self, stage: &StageState) -> Vec<WaitedFor> {
        let Waits { for_resources, for_memory, for_room, in_queue: (queued, units) } = stage.waits();
        let named =
            |resource: &str, (total_ns, units): (u64, u64)| WaitedFor { resource: resource.into(), total_ns, units };
        let resources = self.grants.specs().zip(for_resources).map(|(spec, &waited)| named(&spec.name, waited));
        let mut waited: Vec<WaitedFor> = resources.collect();
        // The time in the queue includes the waits for resources and for room. The remaining time is the wait for a
        // worker.
        waited.push(named("room", for_room));
        let parked: u64 = waited.iter().map(|w| w.total_ns).sum();
        waited.push(named("memory", for_memory));
        waited.push(named("a worker", (queued.saturating_sub(parked), units)));
        waited.retain(|w| w.total_ns > 0);
        waited.sort_by_key(|w| std::cmp::Reverse(w.total_ns));
        waited
    }

    pub(super) fn report(&self, flow: &str, now: u64) -> Report {
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
            refused_fibers: 0,
            latest_refusal: None,
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
            stacks: None,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millstream_verify_random::Random;

    use super::*;
    use crate::engine::units::walk::{Sight, Walk, WalkedTo};
    use crate::failure::Failure;
    use crate::flow::Flow;
    use crate::need::Need;
    use crate::policy::{Batch, Retry};

    /// The arrival time of the oldest unit in each stage's queue, found by a walk over all units.
    fn oldest_of_all(state: &State) -> Vec<Option<u64>> {
        let mut oldest = vec![None; state.stages.iter().len()];
        let mut walk = Walk::step(WalkedTo::default(), usize::MAX);
        let mut see = |row: &_, stage: u16, sight: Sight<'_>| {
            let queued_ns = match sight {
                Sight::Queued { since_ns, .. } => since_ns,
                Sight::Granted { .. } | Sight::InLine { .. } | Sight::ForKeys { .. } | Sight::ForRoom { .. } => {
                    state.units.look(row).queued_ns()
                }
                _ => return,
            };
            let oldest: &mut Option<u64> = &mut oldest[usize::from(stage)];
            *oldest = Some(oldest.map_or(queued_ns, |at| at.min(queued_ns)));
        };
        state.grants.walk(&mut walk, &mut see);
        state.stages.walk(&mut walk, &mut see);
        oldest
    }

    /// A flow whose units wait in queues, in the lines of keys and of a rate, in the line for new keys, and for room.
    fn random_flow(random: &mut Random) -> Flow<u64, u64> {
        let mut flow = Flow::builder("random");
        flow.workers(1 + random.below(4) as usize).inflight(2 + random.below(60));
        let [first, second] = ["first", "second"].map(|name| flow.keyed_tokens(name, 1 + random.below(2)));
        let limit = flow.rate("limit", crate::resource::Rate::per_second(20_000.0));
        flow.max_keys(first, 2 + random.below(8) as usize);
        let [fetch, open, store] = ["fetch", "open", "store"].map(|name| flow.inlet::<u64>(name));
        let done = flow.retire();
        let keys = 1 + random.below(12);
        let by = move |unit: &u64, salt: u64| (Random::new(unit ^ salt).below(keys)).to_string();
        let work = |unit: &mut u64, _: &mut crate::cx::Cx<'_>| {
            std::thread::sleep(Duration::from_micros(Random::new(*unit).below(40)));
            if Random::new(!*unit).below(9) == 0 { Err(Failure::msg("again")) } else { Ok(()) }
        };
        flow.update(fetch, work)
            .need(Need::keyed(first, move |unit: &u64| by(unit, 1)))
            .need(Need::keyed(second, move |unit: &u64| by(unit, 2)))
            .retry(Retry::times(1))
            .to(open);
        let children = move |unit: &mut u64, _: &mut crate::cx::Cx<'_>| Ok((0..*unit % 3).map(Ok));
        flow.split(open, children).need(Need::keyed(second, move |unit: &u64| by(unit, 3))).to(store);
        flow.update(store, work)
            .need(Need::keyed(second, move |unit: &u64| by(unit, 4)))
            .need(Need::tokens(limit, 1))
            .batch(Batch::of(1 + random.below(3) as usize))
            .to(done);
        flow.build(fetch).unwrap()
    }

    #[test]
    fn the_oldest_wait_of_a_stage_is_that_of_its_oldest_unit_wherever_it_waits() {
        let mut random = Random::seeded();
        let mut seen = vec![0; 3];
        for _ in 0..20 {
            let flow = random_flow(&mut random);
            let shared = flow.control().shared.clone();
            let run = std::thread::spawn(move || flow.run(0..600));
            while !run.is_finished() {
                let state = shared.lock();
                let oldest = oldest_of_all(&state);
                for ((stage, oldest), seen) in state.stages.iter().zip(oldest).zip(&mut seen) {
                    assert_eq!(stage.oldest_ns(), oldest, "{}", stage.name());
                    *seen += usize::from(oldest.is_some());
                }
                drop(state);
                std::thread::yield_now();
            }
            assert_eq!(run.join().unwrap().left, 0);
        }
        assert!(seen.iter().all(|&times| times > 20), "{seen:?}");
    }
}
