//! The bottleneck of a flow, in words.

use crate::snapshot::{Snapshot, WaitedFor};

/// A stage, or the set of workers, is the limit if it was busy for at least this part of the time.
const BUSY: f64 = 0.8;

/// A resource is the limit if on average this many units of a stage waited for it.
const MANY_WAITED: f64 = 0.5;
/// A resource that was well used is the limit even if on average only this many units of a stage waited for it.
const FEW_WAITED: f64 = 0.1;
/// A resource was well used if the stage's code kept, on average, this many workers busy for each token of the
/// resource.
const WELL_USED: f64 = 0.6;

/// In a run shorter than this, starting and ending take so much of the time that the workers' idle time says nothing
/// about the source.
const BRIEF_NS: u64 = 20_000_000;

/// Names the limit of a flow, given its last snapshot. `admission_waited_ns` is the time that submitters and the source
/// waited for admission.
///
/// The candidates, in order, are a stage at its own ceiling, the shared workers, a resource that units waited for, the
/// caps of admission, and the source unless the run was brief. Each candidate is judged by averages over the whole run.
pub(crate) fn name(flow: &Snapshot, admission_waited_ns: u64) -> String {
    if flow.admitted == 0 {
        return "nothing: no unit was admitted".into();
    }
    let wall = flow.wall_ns.max(1) as f64;
    let shared: Vec<_> = flow.stages.iter().filter(|stage| !stage.blocking).collect();

    let ceilings = flow.stages.iter().filter(|stage| stage.blocking || stage.workers_max < flow.workers);
    let fullest = ceilings
        .map(|stage| (stage.busy_ns as f64 / wall / stage.workers_max.max(1) as f64, stage))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((busy, stage)) = fullest.filter(|(busy, _)| *busy >= BUSY) {
        let workers = if stage.workers_max == 1 {
            "its one worker was".into()
        } else {
            format!("its {} workers were", stage.workers_max)
        };
        return format!("stage `{}`: {workers} busy {:.0} % of the time", stage.name, percent(busy));
    }

    let busy_ns: u64 = shared.iter().map(|stage| stage.busy_ns).sum();
    let busy = busy_ns as f64 / wall / flow.workers.max(1) as f64;
    if let Some(most) = shared.iter().max_by_key(|stage| stage.busy_ns).filter(|_| busy >= BUSY) {
        let part = percent(most.busy_ns as f64 / busy_ns.max(1) as f64);
        return format!(
            "the {} workers: busy {:.0} % of the time, {part:.0} % of it in stage `{}`",
            flow.workers,
            percent(busy),
            most.name
        );
    }

    let waits = flow.stages.iter().flat_map(|stage| stage.waited_for.iter().map(move |waited| (stage, waited)));
    let longest = waits.filter(|(_, waited)| waited.resource != "a worker").max_by_key(|(_, waited)| waited.total_ns);
    let average = |ns: u64| ns as f64 / wall;
    let is_used = |name: &str, busy_ns: u64| {
        let tokens = flow.resources.iter().find(|resource| resource.name == name && resource.kind == "tokens");
        tokens.is_some_and(|tokens| average(busy_ns) >= WELL_USED * tokens.capacity as f64)
    };
    let limits = |waited: &WaitedFor, busy_ns: u64| {
        average(waited.total_ns) >= MANY_WAITED
            || average(waited.total_ns) >= FEW_WAITED && is_used(&waited.resource, busy_ns)
    };
    if let Some((stage, waited)) = longest.filter(|(stage, waited)| limits(waited, stage.busy_ns)) {
        return format!(
            "{}: on average {:.1} units of stage `{}` waited for it",
            waited.resource,
            average(waited.total_ns),
            stage.name
        );
    }

    if average(admission_waited_ns) >= 0.5 {
        let memory = flow.peak_bytes_in_flight as f64 >= 0.8 * flow.memory_cap as f64;
        return if memory && flow.peak_in_flight < flow.inflight_cap {
            format!(
                "the byte budget: the source waited for it {:.0} % of the time",
                percent(average(admission_waited_ns))
            )
        } else {
            format!(
                "the cap of {} units in flight: the source waited for it {:.0} % of the time",
                flow.inflight_cap,
                percent(average(admission_waited_ns))
            )
        };
    }
    if flow.wall_ns < BRIEF_NS {
        return format!("nothing: the run was over in {:.1} ms", wall / 1e6);
    }
    if shared.len() == flow.stages.len() {
        return format!("the source: workers were busy only {:.0} % of the time", percent(busy));
    }
    let ran_ns: u64 = flow.stages.iter().map(|stage| stage.busy_ns).sum();
    format!("the source: stages worked on {:.1} batches at a time", average(ran_ns))
}

fn percent(part: f64) -> f64 {
    (part * 100.0).min(100.0)
}

#[cfg(test)]
mod tests {
    use super::name;
    use crate::Flow;

    #[test]
    fn a_brief_run_does_not_blame_its_source() {
        let mut flow = Flow::builder::<()>("brief");
        let (work, done) = (flow.inlet::<()>("work"), flow.retire());
        flow.stage(work, |(): &mut (), _| Ok(())).to(done);
        let flow = flow.build(work).unwrap();
        let control = flow.control();
        flow.run([(); 3]);
        let mut snapshot = control.snapshot();
        snapshot.stages.iter_mut().for_each(|stage| {
            stage.busy_ns = 0;
            stage.waited_for.clear();
        });
        let mut after = |wall_ns| {
            snapshot.wall_ns = wall_ns;
            name(&snapshot, 0)
        };
        assert_eq!(after(19_900_000), "nothing: the run was over in 19.9 ms");
        assert_eq!(after(20_000_000), "the source: workers were busy only 0 % of the time");
    }
}
