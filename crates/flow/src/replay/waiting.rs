//! The units of a window that have not left yet.
//!
//! At a busy resource, the units that leave were admitted long ago, and recently admitted units still wait. A window
//! with only complete units would lack nearly all the units that wait for the bottleneck. So each waiting unit is
//! completed: from its stage on, it gets the visits of another unit that had the same needs. The replay then has two
//! units for each waiting unit: one at its position among the arrivals, and one at the beginning. The second unit is
//! there because a replay must begin with as many units in flight as the run has.
//!
//! Waiting units are completed only if no stage splits or gathers. Otherwise, only complete families count.

use std::collections::HashMap;
use std::ops::Range;

use super::draft::Draft;
use super::script::Visit;
use super::window::has_left;
use crate::trace::file::{Header, Measured};
use crate::trace::model::Kind;
use crate::trace::run::{AskedFor, End, Waiting};

/// Visits by stage and needs. Each entry is the index of the visit and the range of all visits of its unit.
type Donors = HashMap<(u16, Option<Vec<AskedFor>>), Vec<(usize, Range<usize>)>>;

impl Draft {
    /// Completes the units that wait, and adds them to `measured`. Drops the units that have left and for which `kept`
    /// is false.
    pub(super) fn add_waiting(&mut self, header: &Header, kept: impl Fn(u64) -> bool, measured: &mut Measured) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|unit| unit.id);
        waiting.dedup_by_key(|unit| unit.id);
        waiting.retain(|unit| usize::from(unit.stage) < header.model.stages.len());
        let is_plain = header.model.stages.iter().all(|stage| stage.kind == Kind::Plain);
        let from_id = header.window.map_or(0, |window| window.from_id);
        if waiting.is_empty() || !is_plain {
            return self.visits.retain(|(id, ..)| kept(*id));
        }
        let donors = self.donors(&waiting);
        let paths = self.paths(header, &donors);
        let (mut arrived, mut standing) = (Vec::new(), Vec::new());
        for (nth, Waiting { id, stage, asks }) in waiting.iter().enumerate() {
            let alike = donors.get(&(*stage, Some(asks.clone()))).or_else(|| donors.get(&(*stage, None)));
            let (Some(alike), Some(path)) = (alike, paths.get(stage)) else { continue };
            let (at, unit) = &alike[nth % alike.len()];
            let rest = &self.visits[*at..unit.end];
            let own = self.visits.partition_point(|(unit, ..)| unit < id);
            let own = &self.visits[own..][..self.visits[own..].partition_point(|(unit, ..)| unit == id)];
            if own.last().is_some_and(|(.., last)| has_left(last.end)) {
                continue;
            }
            let is_known = *id >= from_id && is_chain(own) && begins(own.first().or(rest.first()), header);
            let leads_here = own.last().is_none_or(|(.., last)| leads_to(last, *stage));
            let before = if is_known && leads_here { own } else { &self.visits[path.clone()] };
            let visits: Vec<Visit> = before.iter().chain(rest).map(|(.., visit)| *visit).collect();
            if is_known && leads_here {
                arrived.push((*id, visits.clone()));
            }
            standing.push(visits);
        }
        self.visits.retain(|(id, ..)| kept(*id));
        let ends = arrived.iter().map(|(_, visits)| visits).chain(&standing).filter_map(|visits| visits.last());
        for visit in ends {
            measured.admitted += 1;
            *if visit.end == End::Dead { &mut measured.dead_lettered } else { &mut measured.retired } += 1;
        }
        self.standing = standing.len();
        self.shift(standing.len() as u64);
        let first = standing.len() as u64;
        let arrived = arrived.into_iter().map(|(id, visits)| (id.saturating_add(first), visits));
        for (id, visits) in (0..).zip(standing).chain(arrived) {
            self.visits.extend((0..).zip(visits).map(|(at, visit)| (id, at, visit)));
        }
    }

    /// The visits of units that have left, for the stages in which units wait: by stage and needs, and by stage alone.
    fn donors(&self, waiting: &[Waiting]) -> Donors {
        let mut donors = Donors::new();
        for Waiting { stage, asks, .. } in waiting {
            donors.entry((*stage, None)).or_default();
            donors.entry((*stage, Some(asks.clone()))).or_default();
        }
        let mut start = 0;
        for visits in self.visits.chunk_by(|a, b| a.0 == b.0) {
            let unit = start..start + visits.len();
            start = unit.end;
            if !visits.last().is_some_and(|(.., last)| has_left(last.end)) || !is_chain(visits) {
                continue;
            }
            for (place, (.., visit)) in unit.clone().zip(visits) {
                let keys = [None, Some(self.asks_of(visit).to_vec())];
                for key in keys {
                    if let Some(found) = donors.get_mut(&(visit.stage, key)) {
                        found.push((place, unit.clone()));
                    }
                }
            }
        }
        donors.retain(|_, found| !found.is_empty());
        donors
    }

    /// A path from the entry to each stage in which units wait: the visits of a unit that took it.
    fn paths(&self, header: &Header, donors: &Donors) -> HashMap<u16, Range<usize>> {
        let mut paths = HashMap::from([(header.model.entry, 0..0)]);
        for ((stage, _), found) in donors.iter().filter(|((_, asks), _)| asks.is_none()) {
            let mut whole = found.iter().filter(|(_, unit)| begins(self.visits.get(unit.start), header));
            if let Some((at, unit)) = whole.next() {
                paths.entry(*stage).or_insert(unit.start..*at);
            }
        }
        paths
    }
}

/// Whether the unit went to this stage after the visit.
fn leads_to(visit: &Visit, stage: u16) -> bool {
    match visit.end {
        End::Go(next) => next == stage,
        End::Retry { .. } | End::Requeue { .. } | End::AwaitMemory => visit.stage == stage,
        _ => false,
    }
}

/// Whether the visits form a chain, with no visit missing.
fn is_chain(visits: &[(u64, u64, Visit)]) -> bool {
    visits.windows(2).all(|pair| leads_to(&pair[0].2, pair[1].2.stage))
}

/// Whether this first visit of a unit is to the entry.
fn begins(first: Option<&(u64, u64, Visit)>, header: &Header) -> bool {
    first.is_some_and(|(.., visit)| visit.stage == header.model.entry)
}
