//! The window of a live trace: its complete units, and their measurements.
//!
//! A unit is complete if it was admitted after the window's beginning, and has left with its whole family before the
//! window's end. A window contains neither the beginning nor the end of the run. So its wall time is computed from the
//! pace at which units left, whenever they were admitted.

use std::collections::{HashMap, HashSet};

use super::draft::{Draft, Pull};
use super::script::Visit;
use crate::trace::file::{Header, Measured, Window};
use crate::trace::model::Kind;
use crate::trace::run::End;

/// The most units of the source that are taken from a window; these are the newest.
const MAX_UNITS: usize = 100_000;

/// The pace counts as steady from the moment when this share of the units has left.
const FIRST: f64 = 0.1;
/// The pace counts as steady up to the moment when this share of the units has left.
const LAST: f64 = 0.9;

/// The indices of the two departures between which the pace is measured.
pub(super) fn steady_part(departures: usize) -> [usize; 2] {
    [FIRST, LAST].map(|share| (departures as f64 * share) as usize)
}

/// The time that this many departures take at a steady pace: the departures from `first` to `last` took `took_ns`.
pub(super) fn at_pace(departures: usize, [first, last]: [usize; 2], took_ns: u64) -> u64 {
    (took_ns as f64 * departures as f64 / (last.saturating_sub(first)).max(1) as f64) as u64
}

impl Draft {
    /// Whether a record that began at `began_ns` is in the window.
    pub(super) fn is_within(window: Option<Window>, began_ns: u64) -> bool {
        window.is_none_or(|window| began_ns < window.until_ns)
    }

    /// Keeps only the complete families of a window, and computes their measurements.
    pub(super) fn keep_whole(&mut self, header: &Header, measured: &mut Measured) {
        self.visits.sort_unstable_by_key(|&(unit, at, _)| (unit, at));
        self.pulls.sort_unstable();
        let parents: HashMap<u64, u64> =
            self.born.iter().flat_map(|born| born.ids().map(|id| (id, born.parent))).collect();
        let root_of = |mut id: u64| {
            while let Some(&parent) = parents.get(&id).filter(|&&parent| parent < id) {
                id = parent;
            }
            id
        };
        let mut torn = HashSet::new();
        let mut families: HashMap<u64, u64> = HashMap::new();
        for visits in self.visits.chunk_by(|a, b| a.0 == b.0) {
            let (id, _, first) = &visits[0];
            let (_, at, last) = &visits[visits.len() - 1];
            let root = root_of(*id);
            let family = families.entry(root).or_default();
            *family = ended_ns(*at, last).max(*family);
            if !has_left(last.end) || root == *id && !self.is_root(header, *id, first.stage) {
                torn.insert(root);
            }
        }
        let splits = || header.model.stages.iter().filter(|stage| stage.kind == Kind::Split);
        if !splits().any(|stage| stage.retires) {
            // A child without a visit has not reached its first stage yet, so its family is not complete.
            let seen: HashSet<u64> = self.visits.iter().map(|(id, ..)| *id).collect();
            torn.extend(parents.keys().filter(|id| !seen.contains(id)).map(|id| root_of(*id)));
        }
        let from_id = header.window.map_or(0, |window| window.from_id);
        families.retain(|root, _| !torn.contains(root) && *root >= from_id);
        let mut roots: Vec<u64> = families.keys().copied().collect();
        roots.sort_unstable();
        let older = roots.len().saturating_sub(MAX_UNITS);
        for root in roots.drain(..older) {
            families.remove(&root);
        }
        let before = self.visits.len();
        let is_kept = |id: u64| families.contains_key(&root_of(id));
        let pace = self.pace(header);
        self.measure(&families, is_kept, measured);
        self.born.retain(|born| is_kept(born.parent));
        self.add_waiting(header, is_kept, measured);
        self.account.keep(self.visits.len(), before);
        measured.departed = pace.departures as u64;
        measured.departed_ns = at_pace(pace.departures, pace.part, pace.took_ns);
        let units = (measured.admitted + measured.split) as usize;
        measured.wall_ns = at_pace(units, pace.part, pace.took_ns);
    }

    /// The pace at which units have left since the window's beginning.
    fn pace(&self, header: &Header) -> Pace {
        let from_ns = header.window.map_or(0, |window| window.from_ns);
        let last = |visits: &[(u64, u64, Visit)]| {
            visits.last().map(|(_, at, last)| (*at, ended_ns(*at, last), has_left(last.end)))
        };
        let ends = self.visits.chunk_by(|a, b| a.0 == b.0).filter_map(last);
        let mut departures: Vec<u64> =
            ends.filter(|(began, _, left)| *left && *began >= from_ns).map(|(_, end, _)| end).collect();
        departures.sort_unstable();
        let part = steady_part(departures.len());
        let took_ns = match part.map(|place| departures.get(place)) {
            [Some(first), Some(last)] => last - first,
            _ => 0,
        };
        Pace { departures: departures.len(), part, took_ns }
    }

    /// Whether a unit without a known parent came from the source. Such a unit may be a child whose parent ran before the
    /// window.
    fn is_root(&self, header: &Header, id: u64, first: u16) -> bool {
        let at = self.pulls.partition_point(|pull| pull.ended_before(id));
        let is_pulled = self.pulls.get(at).is_some_and(|pull| pull.has(id));
        let mut splits = header.model.stages.iter().filter(|stage| stage.kind == Kind::Split).peekable();
        let entry = header.model.entry;
        is_pulled || splits.peek().is_none() || first == entry && !splits.any(|stage| stage.next.contains(&entry))
    }

    /// Computes the measurements of the families that are kept. `ended_ns` has the end time of each family.
    fn measure(&self, ended_ns: &HashMap<u64, u64>, is_kept: impl Fn(u64) -> bool, measured: &mut Measured) {
        for visits in self.visits.chunk_by(|a, b| a.0 == b.0) {
            let (id, _, last) = &visits[visits.len() - 1];
            match last.end {
                _ if !is_kept(*id) => {}
                End::Dead => measured.dead_lettered += 1,
                End::Join => measured.gathered += 1,
                _ => {}
            }
        }
        measured.admitted = ended_ns.len() as u64;
        let born = self.born.iter().filter(|born| is_kept(born.parent));
        measured.split = born.map(|born| born.children).sum();
        measured.retired = (measured.admitted + measured.split)
            .saturating_sub(measured.dead_lettered)
            .saturating_sub(measured.gathered);
        let began = |root: &u64| {
            let at = self.pulls.partition_point(|pull| pull.ended_before(*root));
            let pull = self.pulls.get(at).filter(|pull| pull.has(*root)).map(Pull::ended_ns);
            let first = self.visits.partition_point(|(id, ..)| id < root);
            // A pull of a slow source may still run when its first units reach a stage. So a unit begins at the end of its
            // pull or at its first visit, whichever is earlier.
            let first = self.visits.get(first).map_or(0, |(_, at, _)| *at);
            pull.map_or(first, |pull| pull.min(first))
        };
        let mut latencies: Vec<u64> = ended_ns.iter().map(|(root, end)| end.saturating_sub(began(root))).collect();
        latencies.sort_unstable();
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied().unwrap_or(0);
        (measured.latency_p50_ns, measured.latency_p99_ns) = (at(0.5), at(0.99));
        let sum: u128 = latencies.iter().map(|&ns| u128::from(ns)).sum();
        measured.latency_mean_ns = (sum / latencies.len().max(1) as u128) as u64;
    }
}

/// The pace at which units left.
struct Pace {
    departures: usize,
    /// The indices of the two departures between which the pace is measured.
    part: [usize; 2],
    /// The time between these two departures.
    took_ns: u64,
}

/// The end of a visit that began at `began_ns`.
fn ended_ns(began_ns: u64, visit: &Visit) -> u64 {
    began_ns.saturating_add(visit.cpu_ns).saturating_add(visit.wait_ns)
}

/// Whether a unit whose last run ended like this has left the flow.
pub(super) fn has_left(end: End) -> bool {
    matches!(end, End::Retire | End::Skip | End::Dead | End::Join | End::Unfolded)
}
