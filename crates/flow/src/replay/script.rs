//! The script of a replay: what each unit of a traced run did, stage by stage.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use crate::engine::simulate::meter::Spent;
use crate::trace::file::{Header, Measured, TraceError, read_trace};
use crate::trace::model::Kind;
use crate::trace::run::{AskedFor, Born, End, Record, UnitRun};

/// The maximum number of runs of units in stages that a script keeps.
pub(crate) const MAX_VISITS: usize = 8_000_000;

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
    /// Its needs that differ by unit, as a range of [`Script::asks`].
    asks: (u32, u32),
}

impl Visit {
    pub(crate) fn spent(&self) -> Spent {
        Spent { cpu_ns: self.cpu_ns, wait_ns: self.wait_ns }
    }
}

#[derive(Debug, Clone, Copy)]
struct Unit {
    /// Its first visit; its others follow, up to the first one of the next unit.
    first: u32,
    /// Its children, as a range of [`Script::children`].
    children: (u32, u32),
}

/// The visits of all units.
#[derive(Debug)]
pub(crate) struct Script {
    units: Vec<Unit>,
    visits: Vec<Visit>,
    asks: Vec<AskedFor>,
    children: Vec<UnitIndex>,
    /// The units that the source brought, in order.
    roots: Vec<UnitIndex>,
    /// The time that each of those took to be pulled.
    pulls: Vec<Spent>,
    account: Account,
    group_sizes: GroupSizes,
}

/// The numbers of members of the groups of a stage and a key, in the order in which the groups were opened.
pub(crate) type GroupSizes = HashMap<(u16, u64), Vec<u32>>;

/// The time of all visits together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
    /// The time for which they were ready to run and had no processor.
    pub(crate) delayed_ns: u64,
}

impl Script {
    /// Reads the script of a trace.
    pub(crate) fn read(input: impl BufRead) -> Result<(Header, Measured, Self), TraceError> {
        let mut draft = Draft::default();
        let (header, measured) = read_trace(input, |header, _, record| draft.take(header, record))?;
        let script = draft.script(&header)?;
        // Units that were never in a stage, because the run ended before, are in no record.
        let (units, children) = (script.roots.len() as u64, script.children.len() as u64);
        // A unit that was dropped from the first queue for a newer one was in no stage, either.
        let is_whole = units <= measured.admitted && units + measured.dead_lettered >= measured.admitted;
        if measured.left == 0 && !(is_whole && children == measured.split) {
            return Err(TraceError::Contradiction(format!(
                "its records have {units} units and {children} children, and its summary {} and {}",
                measured.admitted, measured.split
            )));
        }
        Ok((header, measured, script))
    }

    pub(crate) fn roots(&self) -> &[UnitIndex] {
        &self.roots
    }

    /// The time that the `nth` root took to be pulled.
    pub(crate) fn pull(&self, nth: usize) -> Spent {
        self.pulls.get(nth).copied().unwrap_or_default()
    }

    /// The visits of a unit, in order.
    pub(crate) fn visits_of(&self, unit: UnitIndex) -> &[Visit] {
        let unit = unit as usize;
        let end = self.units.get(unit + 1).map_or(self.visits.len(), |next| next.first as usize);
        &self.visits[self.units[unit].first as usize..end]
    }

    /// The children of a unit, in order.
    pub(crate) fn children_of(&self, unit: UnitIndex) -> &[UnitIndex] {
        let (from, to) = self.units[unit as usize].children;
        &self.children[from as usize..to as usize]
    }

    /// The needs of a visit that differ by unit.
    pub(crate) fn asks_of(&self, visit: &Visit) -> &[AskedFor] {
        &self.asks[visit.asks.0 as usize..visit.asks.1 as usize]
    }

    /// The number of members of the `nth` group of this stage and key, if the stage's own code closes its groups.
    pub(crate) fn group_size(&self, stage: u16, key: u64, nth: usize) -> Option<u32> {
        self.group_sizes.get(&(stage, key))?.get(nth).copied()
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn visits(&self) -> &[Visit] {
        &self.visits
    }

    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }
}

#[cfg(test)]
impl Script {
    /// The script of units that the source brings one after the other, each with its pull and its visits.
    pub(super) fn of(units: impl IntoIterator<Item = (Spent, Vec<Visit>)>) -> Self {
        let mut script = Script {
            units: Vec::new(),
            visits: Vec::new(),
            asks: Vec::new(),
            children: Vec::new(),
            roots: Vec::new(),
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

/// A script while it is read.
#[derive(Default)]
struct Draft {
    /// Each visit with its unit's number and its time.
    visits: Vec<(u64, u64, Visit)>,
    asks: Vec<AskedFor>,
    born: Vec<Born>,
    /// The number of all children together.
    children: u64,
    pulls: Vec<(u64, u64, u64)>,
    account: Account,
}

impl Draft {
    fn take(&mut self, header: &Header, record: Record) -> Result<(), TraceError> {
        match record {
            Record::Pull { wall_ns, first, units, .. } => self.pulls.push((first, units, wall_ns)),
            Record::Run { stage, began_ns, cpu, units, born } => {
                if usize::from(stage) >= header.model.stages.len() {
                    return Err(TraceError::Contradiction(format!(
                        "a unit ran in stage number {stage}, which there is not"
                    )));
                }
                if self.visits.len() + units.len() > MAX_VISITS {
                    return Err(TraceError::TooLong { most: MAX_VISITS });
                }
                for born in born {
                    self.children = self.children.saturating_add(born.children);
                    self.born.push(born);
                }
                if self.children > MAX_VISITS as u64 {
                    return Err(TraceError::TooLong { most: MAX_VISITS });
                }
                let wall: u64 = units.iter().map(|unit| unit.wall_ns).fold(0, u64::saturating_add);
                let mut at = began_ns;
                for unit in units {
                    let visit = self.visit(stage, &unit, cpu, wall);
                    self.visits.push((unit.id, at, visit));
                    at = at.saturating_add(unit.wall_ns.max(1));
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, stage: u16, unit: &UnitRun, cpu: Option<(u64, u64)>, wall: u64) -> Visit {
        let (cpu_ns, wait_ns) = match cpu {
            None => (unit.wall_ns, 0),
            Some((spent, delayed)) => {
                // Units share the processor's time of their batch in proportion to their own. A wait for a processor is
                // neither: how long it lasts is for the replay to find out.
                let share = |ns: u64| (u128::from(ns) * u128::from(unit.wall_ns) / u128::from(wall.max(1))) as u64;
                // A unit computes on one core: a program that had several took more processor time than time.
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

    /// The sizes of the groups that a stage's own code has closed.
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
                // A group of one; or a group whose holder goes on.
                End::Go(_) | End::Retire if !holders.remove(&(*stage, *unit)) => of_key.push(1),
                _ => {}
            }
        }
        sizes
    }

    fn script(mut self, header: &Header) -> Result<Script, TraceError> {
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
        // Children that retired at once were in no stage. They count all the same.
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
                    "unit {} has children and was in no stage",
                    first.parent
                )));
            };
            units[parent as usize].children = (from, children.len() as u32);
        }
        if !self.born.is_empty() && !header.model.stages.iter().any(|stage| stage.kind == Kind::Split) {
            return Err(TraceError::Contradiction("units have children, and no stage splits".into()));
        }
        let roots: Vec<UnitIndex> = (0..ids.len() as UnitIndex).filter(|&unit| !is_child[unit as usize]).collect();
        self.pulls.sort_unstable();
        let mut pulls = Vec::with_capacity(roots.len());
        for (_, units, wall_ns) in &self.pulls {
            let each = wall_ns / units.max(&1);
            let more = usize::try_from(*units).unwrap_or(usize::MAX).min(roots.len() - pulls.len());
            pulls.extend(std::iter::repeat_n(pull_of(each), more));
        }
        Ok(Script { units, visits, asks: self.asks, children, roots, pulls, account: self.account, group_sizes })
    }
}

/// A short pull computes; a long one waits for what it reads.
fn pull_of(ns: u64) -> Spent {
    const SHORT_NS: u64 = 50_000;
    if ns <= SHORT_NS { Spent { cpu_ns: ns, wait_ns: 0 } } else { Spent { cpu_ns: 0, wait_ns: ns } }
}
