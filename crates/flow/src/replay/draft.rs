//! A script while the trace is being read.

use std::collections::{HashMap, HashSet};

use super::script::{Account, GroupSizes, Script, Unit, UnitIndex, Visit};
use crate::engine::simulate::meter::Spent;
use crate::trace::file::{Header, TraceError};
use crate::trace::model::Kind;
use crate::trace::run::{AskedFor, Born, End, Record, UnitRun, Waiting};
use crate::trace::sampling;

/// The maximum number of units of one pull that are examined.
const MAX_PULL: u64 = 1 << 20;

/// See the [module](self).
pub(super) struct Draft {
    /// Each visit, with the number of its unit and the time when it began.
    pub(super) visits: Vec<(u64, u64, Visit)>,
    asks: Vec<AskedFor>,
    pub(super) born: Vec<Born>,
    /// The number of all children together.
    children: u64,
    pub(super) pulls: Vec<Pull>,
    /// The units that wait at the end of a window.
    pub(super) waiting: Vec<Waiting>,
    /// The number of units that already wait when the replay begins. They come first in the order of the roots.
    pub(super) standing: usize,
    pub(super) account: Account,
    most_visits: usize,
    /// Whether units were left out.
    is_sample: bool,
}

/// A pull of the source: the numbers of its units, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pull {
    first: u64,
    units: u64,
    began_ns: u64,
    wall_ns: u64,
}

impl Pull {
    pub(super) fn has(&self, id: u64) -> bool {
        id.checked_sub(self.first).is_some_and(|place| place < self.units)
    }

    /// Whether all its units have lower numbers than `id`.
    pub(super) fn ended_before(&self, id: u64) -> bool {
        self.first.saturating_add(self.units) <= id
    }

    pub(super) fn ended_ns(&self) -> u64 {
        self.began_ns.saturating_add(self.wall_ns)
    }

    /// Each unit's share of the pull's time. A short share counts as computing, and a long one as waiting for input.
    fn each(&self) -> Spent {
        const SHORT_NS: u64 = 50_000;
        let ns = self.wall_ns / self.units.max(1);
        if ns <= SHORT_NS { Spent { cpu_ns: ns, wait_ns: 0 } } else { Spent { cpu_ns: 0, wait_ns: ns } }
    }
}

impl Draft {
    /// A draft of at most `most_visits` visits.
    pub(super) fn of(most_visits: usize) -> Self {
        Draft {
            visits: Vec::new(),
            asks: Vec::new(),
            born: Vec::new(),
            children: 0,
            pulls: Vec::new(),
            waiting: Vec::new(),
            standing: 0,
            account: Account::default(),
            most_visits,
            is_sample: false,
        }
    }

    /// The draft of a sample.
    pub(super) fn of_sample(most_visits: usize) -> Self {
        Draft { is_sample: true, ..Self::of(most_visits) }
    }

    /// Makes an even sample of a recording that has sampled its later units.
    pub(super) fn even_out(&mut self, header: &Header) {
        let highest = self.visits.iter().map(|(id, ..)| *id).max();
        let (Some(whole), Some(highest), None) = (header.whole, highest, header.window) else { return };
        let one_in = sampling::one_in(highest, whole);
        if one_in == 1 {
            return;
        }
        self.is_sample = true;
        let parents: HashMap<u64, u64> =
            self.born.iter().flat_map(|born| born.ids().map(|id| (id, born.parent))).collect();
        let before = self.visits.len();
        self.visits.retain(|(id, ..)| sampling::draws(parents.get(id).copied().unwrap_or(*id), one_in));
        self.born.retain(|born| sampling::draws(born.parent, one_in));
        self.account.keep(self.visits.len(), before);
    }

    pub(super) fn is_sample(&self) -> bool {
        self.is_sample
    }

    /// Adds those units of a record for which `keeps` is true.
    pub(super) fn take(
        &mut self,
        header: &Header,
        record: Record,
        keeps: impl Fn(u64) -> bool,
    ) -> Result<(), TraceError> {
        match record {
            Record::Waits(unit) => self.waiting.push(unit),
            Record::Pull { began_ns, wall_ns, first, units } => {
                // A damaged trace may claim a very large number of units, so only the first units are examined.
                if (first..first.saturating_add(units.min(MAX_PULL))).any(keeps) {
                    self.pulls.push(Pull { first, units, began_ns, wall_ns });
                }
            }
            Record::Run { stage, began_ns, cpu, units, born } => {
                if usize::from(stage) >= header.model.stages.len() {
                    return Err(TraceError::Contradiction(format!(
                        "a unit ran in stage number {stage}, which does not exist"
                    )));
                }
                let too_long = TraceError::TooLong { most: self.most_visits };
                for born in born.into_iter().filter(|born| keeps(born.parent)) {
                    self.children = self.children.saturating_add(born.children);
                    self.born.push(born);
                }
                if self.children > self.most_visits as u64 {
                    return Err(too_long);
                }
                let wall: u64 = units.iter().map(|unit| unit.wall_ns).fold(0, u64::saturating_add);
                let mut at = began_ns;
                for unit in units {
                    if keeps(unit.id) {
                        let visit = self.visit(stage, &unit, cpu, wall);
                        self.visits.push((unit.id, at, visit));
                    }
                    at = at.saturating_add(unit.wall_ns.max(1));
                }
                if self.visits.len() > self.most_visits {
                    return Err(too_long);
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, stage: u16, unit: &UnitRun, cpu: Option<(u64, u64)>, wall: u64) -> Visit {
        let (cpu_ns, wait_ns) = match cpu {
            None => (unit.wall_ns, 0),
            Some((spent, delayed)) => {
                // The processor time of a batch is divided among its units in proportion to their times. A wait for a
                // processor counts neither as computing nor as waiting, because the replay determines such waits
                // itself.
                let share = |ns: u64| (u128::from(ns) * u128::from(unit.wall_ns) / u128::from(wall.max(1))) as u64;
                // In the model a unit computes on one core. A program with several cores may have taken more processor time
                // than wall time, so the processor time is limited to the wall time.
                let spent = share(spent).min(unit.wall_ns);
                (spent, unit.wall_ns.saturating_sub(spent).saturating_sub(share(delayed)))
            }
        };
        let add = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        add(&mut self.account.cpu_ns, cpu_ns);
        add(&mut self.account.wait_ns, wait_ns);
        add(&mut self.account.delayed_ns, unit.wall_ns.saturating_sub(cpu_ns).saturating_sub(wait_ns));
        let first = self.asks.len() as u32;
        self.asks.extend(&unit.asks);
        Visit {
            stage,
            end: unit.end,
            cpu_ns,
            wait_ns,
            bytes: unit.bytes,
            delay_ns: unit.delay_ns,
            group: unit.group,
            asks: (first, self.asks.len() as u32),
        }
    }

    /// The needs of a visit, except those that are the same for every unit.
    pub(super) fn asks_of(&self, visit: &Visit) -> &[AskedFor] {
        let (from, to) = visit.asks;
        &self.asks[from as usize..to as usize]
    }

    /// Raises the numbers of all units by `by`. There must be no children.
    pub(super) fn shift(&mut self, by: u64) {
        self.visits.iter_mut().for_each(|(id, ..)| *id = id.saturating_add(by));
        self.pulls.iter_mut().for_each(|pull| pull.first = pull.first.saturating_add(by));
    }

    /// The sizes of groups in stages whose own code closes groups.
    fn group_sizes(&self, header: &Header) -> GroupSizes {
        let by_code =
            |stage: u16| matches!(header.model.stages[usize::from(stage)].kind, Kind::Gather { by_code: true, .. });
        let mut visits: Vec<_> = self.visits.iter().filter(|(.., visit)| by_code(visit.stage)).collect();
        visits.sort_by_key(|(unit, at, _)| (*at, *unit));
        let mut sizes = GroupSizes::new();
        let mut holders = HashSet::new();
        for (unit, _, Visit { stage, end, group, .. }) in visits {
            let of_key = sizes.entry((*stage, *group)).or_default();
            match end {
                End::Hold => {
                    holders.insert((*stage, *unit));
                    of_key.push(1);
                }
                End::Join => match of_key.last_mut() {
                    Some(members) => *members += 1,
                    None => of_key.push(1),
                },
                // A group of one unit, unless the unit opened its group earlier (`Hold`), because that group has
                // already been counted.
                End::Go(_) | End::Retire if !holders.remove(&(*stage, *unit)) => of_key.push(1),
                _ => {}
            }
        }
        sizes
    }

    /// Makes the script of all units that were added.
    pub(super) fn script(mut self, header: &Header) -> Result<Script, TraceError> {
        let group_sizes = self.group_sizes(header);
        self.visits.sort_unstable_by_key(|&(unit, at, _)| (unit, at));
        let mut units: Vec<Unit> = Vec::new();
        let mut numbers: HashMap<u64, UnitIndex> = HashMap::new();
        let mut ids: Vec<u64> = Vec::new();
        for (place, (id, ..)) in self.visits.iter().enumerate() {
            if ids.last() != Some(id) {
                numbers.insert(*id, units.len() as UnitIndex);
                ids.push(*id);
                units.push(Unit { first: place as u32, children: (0, 0) });
            }
        }
        let visits: Vec<Visit> = self.visits.into_iter().map(|(.., visit)| visit).collect();
        // Children that retired at once were in no stage, but they count as well.
        let mut children = Vec::new();
        let mut is_child = vec![false; units.len()];
        self.born.sort_by_key(|born| (born.parent, born.first));
        let mut born = self.born.iter().peekable();
        while let Some(first) = born.next() {
            let from = children.len() as u32;
            let mut add = |born: &Born, units: &mut Vec<Unit>, is_child: &mut Vec<bool>| {
                for id in born.first..born.first.saturating_add(born.children) {
                    let index = *numbers.entry(id).or_insert_with(|| {
                        units.push(Unit { first: visits.len() as u32, children: (0, 0) });
                        is_child.push(true);
                        (units.len() - 1) as UnitIndex
                    });
                    is_child[index as usize] = true;
                    children.push(index);
                }
            };
            add(first, &mut units, &mut is_child);
            while let Some(more) = born.next_if(|more| more.parent == first.parent) {
                add(more, &mut units, &mut is_child);
            }
            let Some(&parent) = numbers.get(&first.parent) else {
                return Err(TraceError::Contradiction(format!(
                    "unit {} has children, but was in no stage",
                    first.parent
                )));
            };
            units[parent as usize].children = (from, children.len() as u32);
        }
        if !self.born.is_empty() && !header.model.stages.iter().any(|stage| stage.kind == Kind::Split) {
            return Err(TraceError::Contradiction("units have children, but no stage splits units".into()));
        }
        let roots: Vec<UnitIndex> = (0..ids.len() as UnitIndex).filter(|&unit| !is_child[unit as usize]).collect();
        self.pulls.sort_unstable();
        let mut of = self.pulls.iter().peekable();
        let pull = |&root: &UnitIndex| {
            let id = ids[root as usize];
            while of.next_if(|pull| pull.ended_before(id)).is_some() {}
            of.peek().filter(|pull| pull.has(id)).map_or(Spent::default(), |pull| pull.each())
        };
        let pulls = roots.iter().map(pull).collect();
        let (asks, standing, account) = (self.asks, self.standing, self.account);
        Ok(Script { units, visits, asks, children, roots, standing, pulls, account, group_sizes })
    }
}
