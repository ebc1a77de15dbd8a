//! The script of a replay: the visits of each unit of a traced run, stage by stage.

use std::collections::{HashMap, HashSet};

use crate::engine::simulate::meter::Spent;
use crate::trace::model::{After, Model};
use crate::trace::run::{AskedFor, End};

/// A unit's number in a script.
pub(crate) type UnitIndex = u32;

/// One run of one unit in one stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) stage: u16,
    pub(crate) end: End,
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) delay_ns: u64,
    pub(crate) group: u64,
    /// The needs, except those that are the same for every unit, as a range of [`Script::asks`].
    pub(super) asks: (u32, u32),
}

impl Visit {
    pub(crate) fn spent(&self) -> Spent {
        Spent { cpu_ns: self.cpu_ns, wait_ns: self.wait_ns }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// The index of its first visit. The others follow, up to the first visit of the next unit.
    pub(super) first: u32,
    /// Its children, as a range of [`Script::children`].
    pub(super) children: (u32, u32),
}

/// The visits of all units.
#[derive(Debug)]
pub(crate) struct Script {
    pub(super) units: Vec<Unit>,
    pub(super) visits: Vec<Visit>,
    pub(super) asks: Vec<AskedFor>,
    pub(super) children: Vec<UnitIndex>,
    /// The units that the source produced, in order.
    pub(super) roots: Vec<UnitIndex>,
    /// The number of roots, at the beginning of `roots`, that represent units already waiting when the replay begins.
    pub(super) standing: usize,
    /// The pull time of each root.
    pub(super) pulls: Vec<Spent>,
    pub(super) account: Account,
    pub(super) group_sizes: GroupSizes,
}

/// The sizes of the groups of a stage and a key, in the order in which the groups were opened.
pub(crate) type GroupSizes = HashMap<(u16, u64), Vec<u32>>;

/// The total time of all visits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
    /// The time for which the units were ready to run but had no processor.
    pub(crate) delayed_ns: u64,
}

impl Account {
    /// Scales the times by `some / all`: of `all` visits, `some` are kept.
    pub(super) fn keep(&mut self, some: usize, all: usize) {
        for ns in [&mut self.cpu_ns, &mut self.wait_ns, &mut self.delayed_ns] {
            *ns = (u128::from(*ns) * some as u128 / all.max(1) as u128) as u64;
        }
    }
}

impl Script {
    pub(super) fn standing(&self) -> usize {
        self.standing
    }

    pub(crate) fn roots(&self) -> &[UnitIndex] {
        &self.roots
    }

    /// Returns the time to pull the `nth` root.
    pub(crate) fn pull(&self, nth: usize) -> Spent {
        self.pulls.get(nth).copied().unwrap_or_default()
    }

    /// Returns the visits of a unit, in order.
    pub(crate) fn visits_of(&self, unit: UnitIndex) -> &[Visit] {
        let unit = unit as usize;
        let end = self.units.get(unit + 1).map_or(self.visits.len(), |next| next.first as usize);
        &self.visits[self.units[unit].first as usize..end]
    }

    /// Returns the children of a unit, in order.
    pub(crate) fn children_of(&self, unit: UnitIndex) -> &[UnitIndex] {
        let (from, to) = self.units[unit as usize].children;
        &self.children[from as usize..to as usize]
    }

    /// Returns the processor time and the waiting time of these roots and all their descendants, without runs that were
    /// cancelled for memory.
    pub(super) fn spent_by(&self, places: &[usize]) -> (u64, u64) {
        let mut open: Vec<UnitIndex> = places.iter().map(|&place| self.roots[place]).collect();
        let (mut cpu_ns, mut wait_ns) = (0u64, 0u64);
        while let Some(unit) = open.pop() {
            for visit in self.visits_of(unit).iter().filter(|visit| visit.end != End::AwaitMemory) {
                cpu_ns = cpu_ns.saturating_add(visit.cpu_ns);
                wait_ns = wait_ns.saturating_add(visit.wait_ns);
            }
            open.extend(self.children_of(unit));
        }
        (cpu_ns, wait_ns)
    }

    /// Returns the needs of a visit, except those that are the same for every unit.
    pub(crate) fn asks_of(&self, visit: &Visit) -> &[AskedFor] {
        &self.asks[visit.asks.0 as usize..visit.asks.1 as usize]
    }

    /// Returns the size of the `nth` group of this stage and key, if the stage's own code closes its groups.
    pub(crate) fn group_size(&self, stage: u16, key: u64, nth: usize) -> Option<u32> {
        self.group_sizes.get(&(stage, key))?.get(nth).copied()
    }

    /// The indices of the roots that ended the run by their own failure or that of a descendant.
    pub(crate) fn roots_that_end_it(&self, model: &Model) -> HashSet<usize> {
        let stops: Vec<bool> = model.stages.iter().map(|stage| stage.after_failure == After::StopFlow).collect();
        if !stops.contains(&true) {
            return HashSet::new();
        }
        let ends = |unit| {
            let mut family = vec![unit];
            while let Some(unit) = family.pop() {
                let dies = |visit: &Visit| visit.end == End::Dead && stops[usize::from(visit.stage)];
                if self.visits_of(unit).iter().any(dies) {
                    return true;
                }
                family.extend(self.children_of(unit));
            }
            false
        };
        (0..self.roots.len()).filter(|&place| ends(self.roots[place])).collect()
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// The number of children.
    pub(crate) fn children(&self) -> usize {
        self.children.len()
    }

    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }
}

#[cfg(test)]
impl Script {
    /// Creates a script from the units of a source, in order, each with its pull time and its visits.
    pub(super) fn of(units: impl IntoIterator<Item = (Spent, Vec<Visit>)>) -> Self {
        let mut script = Script {
            units: Vec::new(),
            visits: Vec::new(),
            asks: Vec::new(),
            children: Vec::new(),
            roots: Vec::new(),
            standing: 0,
            pulls: Vec::new(),
            account: Account::default(),
            group_sizes: HashMap::new(),
        };
        for (pull, visits) in units {
            script.roots.push(script.units.len() as UnitIndex);
            script.units.push(Unit { first: script.visits.len() as u32, children: (0, 0) });
            script.visits.extend(visits);
            script.pulls.push(pull);
        }
        script
    }
}

#[cfg(test)]
impl Visit {
    pub(super) fn new(stage: u16, end: End, Spent { cpu_ns, wait_ns }: Spent) -> Self {
        Visit { stage, end, cpu_ns, wait_ns, bytes: 0, delay_ns: 0, group: 0, asks: (0, 0) }
    }
}
