//! The history of the whole run, for a page: the units that have left, the waiting units by cause, and each stage's
//! queue.

use std::collections::BTreeMap;

use millstream_flow::Snapshot;
use serde_json::{Value, json};

use crate::screen::thinned::{Thinned, Timed};

/// The maximum number of moments in the history. A picture cannot show more, and a frozen page stays small.
const MAX_MOMENTS: usize = 120;
/// The maximum number of resources that are shown separately. The others are shown as one.
const MAX_NAMES: usize = 24;

/// The run at one moment.
#[derive(Debug, Clone)]
struct Moment {
    at_s: f64,
    retired: u64,
    dead: u64,
    /// The number of waiting units by cause, in the order of the history's names.
    waiting_for: Vec<u64>,
    /// For each stage, the number of waiting units and the number of units that are done.
    stages: Vec<(u64, u64)>,
}

impl Timed for Moment {
    fn at_s(&self) -> f64 {
        self.at_s
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct History {
    /// The names of the causes of waiting: resources, and then other causes, such as `a worker` and `memory`.
    names: Vec<String>,
    moments: Thinned<Moment>,
}

impl History {
    /// The history at the beginning of a flow.
    pub(super) fn new(flow: &Snapshot) -> Self {
        let mut names: Vec<String> =
            flow.resources.iter().take(MAX_NAMES).map(|resource| resource.name.clone()).collect();
        names.extend(["a worker", "memory", "room", "a pause", "something else"].map(str::to_owned));
        let mut moments = Thinned::new(MAX_MOMENTS);
        let start = Moment {
            at_s: 0.0,
            retired: 0,
            dead: 0,
            waiting_for: vec![0; names.len()],
            stages: vec![(0, 0); flow.stages.len()],
        };
        moments.note(start);
        Self { names, moments }
    }

    /// Adds a snapshot, unless the previous snapshot is too recent.
    pub(super) fn note(&mut self, now: &Snapshot) {
        if self.moments.is_due(at_s(now)) {
            self.moments.note(self.moment(now));
        }
    }

    /// Adds the last snapshot.
    pub(super) fn end(&mut self, now: &Snapshot) {
        self.moments.end(self.moment(now));
    }

    fn moment(&self, now: &Snapshot) -> Moment {
        let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
        let mut wait = |name, units| *waiting.entry(name).or_default() += units;
        for stage in &now.stages {
            let parked: u64 = stage.waiting_for.iter().map(|waiting| waiting.units).sum();
            stage.waiting_for.iter().for_each(|waiting| wait(&waiting.resource, waiting.units));
            wait("a worker", stage.waiting.saturating_sub(parked));
        }
        wait("memory", now.waiting_for_memory);
        wait("a pause", now.delayed);
        let mut waiting_for: Vec<u64> =
            self.names.iter().map(|name| waiting.remove(name.as_str()).unwrap_or(0)).collect();
        if let Some(rest) = waiting_for.last_mut() {
            *rest += waiting.into_values().sum::<u64>();
        }
        Moment {
            at_s: at_s(now),
            retired: now.retired,
            dead: now.dead_lettered,
            waiting_for,
            stages: now.stages.iter().map(|stage| (stage.waiting, stage.units)).collect(),
        }
    }

    /// The names of the causes. Then, for each moment, its time, the units retired and dead-lettered so far, and the
    /// units that wait for each cause.
    pub(super) fn over_time(&self) -> Value {
        let moments = self.moments.samples().iter();
        let moments: Vec<_> = moments.map(|m| (m.at_s, m.retired, m.dead, &m.waiting_for)).collect();
        json!({ "names": self.names, "moments": moments })
    }

    /// The lanes of the stages over the whole run. Each sample is the time, the waiting units, and the units done per
    /// second since the previous sample.
    pub(super) fn lanes(&self) -> Vec<(f64, Vec<u64>, Vec<f64>)> {
        let pairs = self.moments.samples().windows(2);
        pairs
            .map(|pair| {
                let seconds = (pair[1].at_s - pair[0].at_s).max(1e-3);
                let stages = pair[0].stages.iter().zip(&pair[1].stages);
                let rates = stages.map(|((_, before), (_, now))| now.saturating_sub(*before) as f64 / seconds);
                let rates = rates.map(|rate| (rate * 10.0).round() / 10.0).collect();
                (pair[1].at_s, pair[1].stages.iter().map(|(waiting, _)| *waiting).collect(), rates)
            })
            .collect()
    }
}

fn at_s(now: &Snapshot) -> f64 {
    (now.wall_ns as f64 / 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use millstream_flow::Waiting;

    use super::*;
    use crate::screen::sample::{filled, snapshot};

    #[test]
    fn every_unit_that_waits_is_in_one_part() {
        let mut now = snapshot();
        now.stages[3].waiting_for.push(filled!(Waiting { resource: "unheard of".into(), units: 1 }));
        (now.delayed, now.waiting_for_memory) = (5, 2);
        let history = History::new(&now);
        let moment = history.moment(&now);
        let waiting: u64 = now.stages.iter().map(|stage| stage.waiting).sum();
        assert_eq!(moment.waiting_for.iter().sum::<u64>(), waiting + 5 + 2);
        let of = |name: &str| moment.waiting_for[history.names.iter().position(|known| known == name).unwrap()];
        assert_eq!((of("disk"), of("a pause"), of("memory"), of("something else")), (10, 5, 2, 1));
    }

    #[test]
    fn a_long_run_is_a_few_moments_and_ends_with_its_totals() {
        let mut now = snapshot();
        let mut history = History::new(&now);
        for tenth in 1..=20_000 {
            (now.wall_ns, now.retired) = (tenth * 100_000_000, tenth * 7);
            history.note(&now);
        }
        now.retired += 1;
        history.end(&now);
        let told = history.over_time();
        let moments = told["moments"].as_array().unwrap();
        assert!((MAX_MOMENTS / 2..=MAX_MOMENTS + 1).contains(&moments.len()), "{}", moments.len());
        assert_eq!(moments.last().unwrap()[1], 140_001);
        assert_eq!(history.lanes().len(), moments.len() - 1);
    }
}
