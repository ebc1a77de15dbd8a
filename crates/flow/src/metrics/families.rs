//! The metric families of a snapshot.

use std::fmt::{self, Write};

use super::exposition::{Exposition, Kind};
use crate::snapshot::{ResourceSnapshot, Snapshot, StageSnapshot};

/// A family with one number for each `T`.
type Family<T> = (&'static str, Kind, fn(&T) -> u64, &'static str);

const FLOW: &[Family<Snapshot>] = &[
    ("millstream_units_admitted", Kind::Counter, |s| s.admitted, "Units that the source or a submitter brought."),
    ("millstream_units_split", Kind::Counter, |s| s.split, "Units created by splitting their parents."),
    ("millstream_units_retired", Kind::Counter, |s| s.retired, "Units that retired, including skipped ones."),
    ("millstream_units_skipped", Kind::Counter, |s| s.skipped, "Units that retired without a result."),
    ("millstream_units_dead_lettered", Kind::Counter, |s| s.dead_lettered, "Units that failed for good."),
    (
        "millstream_units_gathered",
        Kind::Counter,
        |s| s.gathered,
        "Units that joined a group, which continued in their place.",
    ),
    (
        "millstream_units_oversize",
        Kind::Counter,
        |s| s.oversize,
        "Units larger than the whole byte budget, which ran alone.",
    ),
    ("millstream_units_in_flight", Kind::Gauge, |s| s.in_flight, "Units that have entered the flow and not left it."),
    ("millstream_units_in_flight_limit", Kind::Gauge, |s| s.inflight_cap, "The cap on units in flight."),
    (
        "millstream_units_in_flight_peak",
        Kind::Gauge,
        |s| s.peak_in_flight,
        "The most units that were in flight at once.",
    ),
    ("millstream_units_delayed", Kind::Gauge, |s| s.delayed, "Units in a pause, such as one before a retry."),
    (
        "millstream_units_waiting_for_memory",
        Kind::Gauge,
        |s| s.waiting_for_memory,
        "Units that were cancelled to keep the byte budget and wait to run again.",
    ),
    ("millstream_payload_bytes", Kind::Gauge, |s| s.bytes_in_flight, "Payload bytes in flight."),
    (
        "millstream_payload_peak_bytes",
        Kind::Gauge,
        |s| s.peak_bytes_in_flight,
        "The most payload bytes that were in flight at once.",
    ),
    ("millstream_workers", Kind::Gauge, |s| s.workers, "Workers shared by all stages without workers of their own."),
    (
        "millstream_workers_busy",
        Kind::Gauge,
        |s| s.workers_busy,
        "Workers that run a stage's code, including those of blocking stages.",
    ),
];

const STAGE: &[Family<StageSnapshot>] = &[
    ("millstream_stage_waiting", Kind::Gauge, |s| s.waiting, "Units in the stage's queue."),
    (
        "millstream_stage_granted",
        Kind::Gauge,
        |s| s.granted,
        "Units in the queue that have all they need and wait for a worker.",
    ),
    ("millstream_stage_running", Kind::Gauge, |s| s.running, "Units that a worker has taken."),
    ("millstream_stage_retries", Kind::Counter, |s| s.retries, "Failed attempts that were retried."),
    ("millstream_stage_dead_lettered", Kind::Counter, |s| s.dead_lettered, "Units that failed for good in the stage."),
    ("millstream_stage_open_groups", Kind::Gauge, |s| s.open_groups, "Groups that wait for members."),
    ("millstream_stage_torn_groups", Kind::Counter, |s| s.torn, "Groups closed early for lack of room."),
    ("millstream_stage_workers_busy", Kind::Gauge, |s| s.workers_busy, "Workers in the stage's code."),
    ("millstream_stage_workers_min", Kind::Gauge, |s| s.workers_min, "The stage's floor of workers."),
    ("millstream_stage_workers_max", Kind::Gauge, |s| s.workers_max, "The stage's ceiling of workers."),
];

const RESOURCE: &[Family<ResourceSnapshot>] = &[
    ("millstream_resource_in_use", Kind::Gauge, |r| r.in_use, "Tokens that are held, over all keys."),
    (
        "millstream_resource_in_use_peak",
        Kind::Gauge,
        |r| r.peak_in_use,
        "The most tokens held at once; if keyed, by any one key.",
    ),
    (
        "millstream_resource_capacity",
        Kind::Gauge,
        |r| r.capacity,
        "Tokens, objects or a rate's burst; if keyed, for each key.",
    ),
    ("millstream_resource_waiting", Kind::Gauge, |r| r.waiters, "Units that wait for the resource."),
    ("millstream_resource_keys", Kind::Gauge, |r| r.keys, "Keys that exist; 0 if not keyed."),
];

impl Snapshot {
    /// Writes the flow's metrics, with the label `flow` and the labels of the [exposition](Exposition::label).
    ///
    /// Takes well under a millisecond for 60 stages.
    ///
    /// # Errors
    /// Returns the writer's errors.
    pub fn write_metrics<W: Write>(&self, to: &mut Exposition<W>) -> fmt::Result {
        let flow = ("flow", self.flow.as_str());
        for (name, kind, number, help) in FLOW {
            to.family(name, *kind, help)?;
            to.count(&[flow], number(self))?;
        }
        if self.memory_cap != u64::MAX {
            to.family("millstream_payload_limit_bytes", Kind::Gauge, "The cap on payload bytes in flight.")?;
            to.count(&[flow], self.memory_cap)?;
        }
        to.family("millstream_flow_elapsed_seconds", Kind::Gauge, "The time since the flow's start.")?;
        to.seconds(&[flow], self.wall_ns)?;
        if !self.stages.is_empty() {
            self.write_stages(flow, to)?;
        }
        if !self.resources.is_empty() {
            self.write_resources(flow, to)?;
        }
        Ok(())
    }

    fn write_stages<W: Write>(&self, flow: (&str, &str), to: &mut Exposition<W>) -> fmt::Result {
        let stages = || self.stages.iter().map(|stage| (stage, ("stage", stage.name.as_str())));
        for (name, kind, number, help) in STAGE {
            to.family(name, *kind, help)?;
            stages().try_for_each(|(stage, label)| to.count(&[flow, label], number(stage)))?;
        }
        to.family("millstream_stage_attempts", Kind::Counter, "Runs of the stage's code for a unit, by outcome.")?;
        for (stage, label) in stages() {
            for (outcome, count) in [("done", stage.units), ("failed", stage.failures), ("requeued", stage.requeued)] {
                to.count(&[flow, label, ("outcome", outcome)], count)?;
            }
        }
        to.family("millstream_stage_busy_seconds", Kind::Counter, "Time in the stage's code, over all workers.")?;
        stages().try_for_each(|(stage, label)| to.seconds(&[flow, label], stage.busy_ns))?;
        to.family(
            "millstream_stage_oldest_wait_seconds",
            Kind::Gauge,
            "The time that the longest waiter has been in the queue.",
        )?;
        stages().try_for_each(|(stage, label)| to.seconds(&[flow, label], stage.oldest_ns))?;
        to.family("millstream_stage_service_seconds", Kind::Summary, "The time of a unit in the stage's code.")?;
        stages().try_for_each(|(stage, label)| to.summary(&[flow, label], &stage.service_ns))?;
        to.family("millstream_stage_wait_seconds", Kind::Summary, "The time of a unit in the stage's queue.")?;
        stages().try_for_each(|(stage, label)| to.summary(&[flow, label], &stage.wait_ns))?;
        self.write_waits(flow, to)
    }

    /// Writes the waits by stage and resource, except waits for a worker. A wait for a worker is the time in the queue
    /// less the waits for resources and for room. This difference can decrease between a grant and its dispatch, but a
    /// counter must never decrease. If a resource has the name of a reason that is not a resource, such as `memory`,
    /// the waits for both are added up, because a series may occur only once.
    fn write_waits<W: Write>(&self, flow: (&str, &str), to: &mut Exposition<W>) -> fmt::Result {
        let waiting: Vec<_> = self
            .stages
            .iter()
            .map(|stage| merged(stage.waiting_for.iter().map(|w| (w.resource.as_str(), [w.units, 0]))))
            .collect();
        let waited: Vec<_> = self
            .stages
            .iter()
            .map(|stage| {
                let waits = stage.waited_for.iter().filter(|wait| wait.resource != "a worker");
                merged(waits.map(|w| (w.resource.as_str(), [w.units, w.total_ns])))
            })
            .collect();
        let labels =
            |stage: usize, resource| [flow, ("stage", self.stages[stage].name.as_str()), ("resource", resource)];
        let series = |of: &Vec<Vec<(&str, [u64; 2])>>| of.iter().any(|stage| !stage.is_empty());
        if series(&waiting) {
            to.family("millstream_stage_waiting_for", Kind::Gauge, "Units in the stage's queue that lack a resource.")?;
            for (stage, waits) in waiting.iter().enumerate() {
                for &(resource, [units, _]) in waits {
                    to.count(&labels(stage, resource), units)?;
                }
            }
        }
        if series(&waited) {
            to.family(
                "millstream_stage_waits",
                Kind::Counter,
                "Waits of the stage's units that have ended, by resource.",
            )?;
            for (stage, waits) in waited.iter().enumerate() {
                for &(resource, [units, _]) in waits {
                    to.count(&labels(stage, resource), units)?;
                }
            }
            to.family("millstream_stage_waited_seconds", Kind::Counter, "The sum of the waits that have ended.")?;
            for (stage, waits) in waited.iter().enumerate() {
                for &(resource, [_, total_ns]) in waits {
                    to.seconds(&labels(stage, resource), total_ns)?;
                }
            }
        }
        Ok(())
    }

    fn write_resources<W: Write>(&self, flow: (&str, &str), to: &mut Exposition<W>) -> fmt::Result {
        let resources = || self.resources.iter().map(|resource| (resource, ("resource", resource.name.as_str())));
        for (name, kind, number, help) in RESOURCE {
            to.family(name, *kind, help)?;
            resources().try_for_each(|(resource, label)| to.count(&[flow, label], number(resource)))?;
        }
        if resources().any(|(resource, _)| resource.rate_per_s.is_some()) {
            to.family(
                "millstream_resource_tokens_per_second",
                Kind::Gauge,
                "The tokens per second of a rate; if keyed, for each key.",
            )?;
            for (resource, label) in resources() {
                if let Some(rate) = resource.rate_per_s {
                    to.number(&[flow, label], rate)?;
                }
            }
        }
        Ok(())
    }
}

/// Adds up the waits of each resource.
fn merged<'a>(waits: impl Iterator<Item = (&'a str, [u64; 2])>) -> Vec<(&'a str, [u64; 2])> {
    let mut merged: Vec<(&str, [u64; 2])> = Vec::new();
    for (resource, numbers) in waits {
        match merged.iter_mut().find(|(name, _)| *name == resource) {
            Some((_, sums)) => *sums = [0, 1].map(|i| sums[i].saturating_add(numbers[i])),
            None => merged.push((resource, numbers)),
        }
    }
    merged
}
