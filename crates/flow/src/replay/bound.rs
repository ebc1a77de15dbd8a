//! The bottleneck law: a run takes at least the time for which its busiest resource is needed.

use std::time::Duration;

use super::script::Script;
use crate::trace::model::{Model, ModelHold, ModelSupply};
use crate::trace::run::End;

/// Returns the minimum time that the script's work can take, and the name of the resource that determines this time.
pub(super) fn at_least(model: &Model, factors: &[f64], cores: usize, script: &Script) -> (Duration, String) {
    // The use of each resource: token-nanoseconds, or tokens of a rate.
    let mut on_resources = vec![0.0; model.resources.len()];
    let (mut on_workers, mut on_cores) = (0.0, 0.0);
    // A replay leaves out runs that were cancelled for memory, and decides itself which runs to cancel.
    for visit in script.visits().iter().filter(|visit| visit.end != End::AwaitMemory) {
        let stage = &model.stages[usize::from(visit.stage)];
        let factor = factors[usize::from(visit.stage)];
        let (cpu, wait) = (visit.cpu_ns as f64 * factor, visit.wait_ns as f64 * factor);
        on_cores += cpu;
        if !stage.blocking {
            on_workers += cpu + wait;
        }
        // A need that is held beyond the visit occupies its resource for at least this time, so it counts. A need per
        // batch or with a key may occupy its resource for less, so it does not count.
        for need in stage.needs.iter().filter(|need| !need.keyed && need.hold != ModelHold::Batch) {
            let Some(amount) = need.amount else { continue };
            on_resources[usize::from(need.resource)] += match model.resources[usize::from(need.resource)].supply {
                ModelSupply::Tokens(_) => (cpu + wait) * amount as f64,
                ModelSupply::Rate { .. } => amount as f64,
            };
        }
    }
    let of_resources = model.resources.iter().zip(on_resources).map(|(resource, on)| {
        let least = match resource.supply {
            ModelSupply::Tokens(tokens) => on / tokens.max(1) as f64,
            // The tokens of the burst are available at the beginning, and take no time.
            ModelSupply::Rate { per_second, burst } => (on - burst as f64).max(0.0) / per_second * 1e9,
        };
        (least, resource.name.clone())
    });
    // Workers for a stage's floor may exist in addition to the shared workers, so they are added.
    let floors = model.stages.iter().filter(|stage| !stage.blocking).filter_map(|stage| stage.workers);
    let most_workers = model.workers + floors.map(|(floor, _)| floor).sum::<usize>();
    let of_machine = [
        (on_workers / most_workers as f64, format!("{} workers", model.workers)),
        (on_cores / cores as f64, format!("{cores} cores")),
    ];
    let (least, name) = of_resources.chain(of_machine).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    (Duration::from_nanos(least as u64), name)
}
