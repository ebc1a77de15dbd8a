//! The record of one run of a batch in a trace.
//!
//! The units of a batch mostly have consecutive numbers and the same destination, so both are written once for many
//! units.

use super::bytes::{Numbers, put, put_difference};
use super::ranges::Ranges;
use crate::engine::claims::{Ask, GATHERED, NO_STAGE};
use crate::engine::run::brood::{Brood, Newborn};
use crate::engine::run::settlement::Verdict;
use crate::engine::run::witness::Ran;
use crate::engine::units::record::UnitRef;

/// The maximum number of units in one record; this library never writes more.
const MAX_UNITS: u64 = 1 << 20;
/// The maximum number of needs of one unit in one stage.
const MAX_ASKS: u64 = 1 << 16;

const RUN: u8 = 1;
const PULL: u8 = 2;
const WAITS: u8 = 3;

/// Flag: all units took the same time, as far as it was measured.
const UNIFORM: u64 = 1;
/// Flag: the processor time follows.
const CPU: u64 = 2;
/// Flag: exceptions follow, for the units whose end differs from that of most units.
const EXCEPTIONS: u64 = 4;
/// Flag: weights follow.
const BYTES: u64 = 8;
/// Flag: needs that differ from unit to unit follow.
const ASKS: u64 = 16;
/// Flag: children follow.
const BORN: u64 = 32;
/// Flag: keys of groups follow.
const GROUPS: u64 = 64;
/// Flag: pauses before the next stage follow.
const DELAYS: u64 = 128;

/// The end of a unit's run in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The unit went to this stage next.
    Go(u16),
    Retire,
    Skip,
    Retry {
        pause_ns: u64,
    },
    Dead,
    /// The unit returned to the queue to wait for other needs.
    Requeue {
        pause_ns: u64,
    },
    /// The unit was cancelled to keep the byte budget.
    AwaitMemory,
    /// The unit has more children to produce.
    Unfold,
    /// The unit has produced its last child.
    Unfolded,
    /// The unit opened a group.
    Hold,
    /// The unit joined a group.
    Join,
    /// The flow was abandoned.
    Left,
}

impl End {
    fn of(verdict: &Verdict) -> Self {
        match *verdict {
            Verdict::Go { stage, .. } => End::Go(stage),
            Verdict::Retire => End::Retire,
            Verdict::Skip => End::Skip,
            Verdict::Retry { pause_ns } => End::Retry { pause_ns },
            Verdict::Dead { .. } => End::Dead,
            Verdict::Requeue { pause_ns, .. } => End::Requeue { pause_ns },
            Verdict::AwaitMemory { .. } => End::AwaitMemory,
            Verdict::Unfold { .. } => End::Unfold,
            Verdict::Unfolded { .. } => End::Unfolded,
            Verdict::Rest { .. } => End::Hold,
            Verdict::Join => End::Join,
            Verdict::LeftBehind => End::Left,
        }
    }

    fn of_all(to: u16) -> Self {
        match to {
            NO_STAGE => End::Retire,
            GATHERED => End::Join,
            to => End::Go(to),
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        let (kind, number) = match self {
            End::Go(stage) => (0, Some(u64::from(stage))),
            End::Retire => (1, None),
            End::Skip => (2, None),
            End::Retry { pause_ns } => (3, Some(pause_ns)),
            End::Dead => (4, None),
            End::Requeue { pause_ns } => (5, Some(pause_ns)),
            End::AwaitMemory => (6, None),
            End::Unfold => (7, None),
            End::Unfolded => (8, None),
            End::Hold => (9, None),
            End::Join => (10, None),
            End::Left => (11, None),
        };
        put(out, kind);
        if let Some(number) = number {
            put(out, number);
        }
    }

    fn read(numbers: &mut Numbers<'_>) -> Option<Self> {
        Some(match numbers.next()? {
            0 => End::Go(u16::try_from(numbers.next()?).ok()?),
            1 => End::Retire,
            2 => End::Skip,
            3 => End::Retry { pause_ns: numbers.next()? },
            4 => End::Dead,
            5 => End::Requeue { pause_ns: numbers.next()? },
            6 => End::AwaitMemory,
            7 => End::Unfold,
            8 => End::Unfolded,
            9 => End::Hold,
            10 => End::Join,
            11 => End::Left,
            _ => return None,
        })
    }
}

/// A need that differs from unit to unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AskedFor {
    pub(crate) resource: u16,
    pub(crate) amount: u64,
    /// A number that represents the key; equal keys have equal numbers.
    pub(crate) key: Option<u64>,
}

/// One unit of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitRun {
    pub(crate) id: u64,
    pub(crate) wall_ns: u64,
    pub(crate) end: End,
    pub(crate) bytes: u64,
    pub(crate) asks: Vec<AskedFor>,
    /// A number that represents the key of the unit's group.
    pub(crate) group: u64,
    pub(crate) delay_ns: u64,
}

/// Children of one parent with consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Born {
    pub(crate) parent: u64,
    pub(crate) first: u64,
    pub(crate) children: u64,
}

impl Born {
    /// The numbers of the children.
    pub(crate) fn ids(&self) -> std::ops::Range<u64> {
        self.first..self.first.saturating_add(self.children)
    }
}

/// A record of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Run {
        stage: u16,
        began_ns: u64,
        /// The processor time of the whole run and its wait for a processor; `None` if all of its time was processor
        /// time.
        cpu: Option<(u64, u64)>,
        units: Vec<UnitRun>,
        born: Vec<Born>,
    },
    Pull {
        began_ns: u64,
        wall_ns: u64,
        first: u64,
        units: u64,
    },
    /// A unit that waited to run in a stage when a live trace was taken.
    Waits(Waiting),
}

/// A unit that waits to run in a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) id: u64,
    pub(crate) stage: u16,
    /// The needs of the unit in this stage, except those that are the same for every unit.
    pub(crate) asks: Vec<AskedFor>,
}

/// The state that shortens the records of a chunk: each record is encoded relative to earlier records.
#[derive(Debug, Default)]
pub(crate) struct Context {
    at_ns: u64,
    /// The latest start time of all runs so far. Used only for writing.
    latest_ns: u64,
    id: u64,
    /// The highest unit number so far. Used only for writing.
    most_id: u64,
}

impl Context {
    pub(crate) fn most_id(&self) -> u64 {
        self.most_id
    }

    /// The latest start time of all runs so far. The run that was written last may have an earlier start time, because
    /// fibers that share a track write their runs in the order in which the runs end.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// Writes the beginning of a run.
    fn put_beginning(&mut self, out: &mut Vec<u8>, began_ns: u64) {
        put_difference(out, self.at_ns, began_ns);
        self.at_ns = began_ns;
        self.latest_ns = self.latest_ns.max(began_ns);
    }

    /// Records that all units of a record have numbers below `end`.
    fn saw_below(&mut self, end: u64) {
        self.most_id = self.most_id.max(end.saturating_sub(1));
    }
}

/// Writes the record of a batch's run, with the units at the indices `places`, which have the numbers `ids`.
pub(crate) fn put_run(
    out: &mut Vec<u8>,
    context: &mut Context,
    ran: &Ran<'_>,
    places: impl Iterator<Item = usize> + Clone,
    ids: &Ranges,
    cpu: Option<(u64, u64)>,
) {
    let Ran { site, stage, rows, settlement, began_ns, .. } = *ran;
    let units = places.clone().count() as u64;
    debug_assert!(units <= MAX_UNITS);
    let is_all = units == rows.len() as u64;
    let timings = &settlement.timings[ran.first_timing..];
    // The engine's records of plain units have nothing to write, so they are not read.
    let looks: Vec<_> = places
        .clone()
        .take(if ran.plain { 0 } else { rows.len() })
        // SAFETY: the worker that ran the batch has its rows, and no other handle reaches their records in the
        // meantime.
        .map(|place| unsafe { UnitRef::new(site.records(), &rows[place]) })
        .collect();
    let has = |what: fn(&crate::engine::units::record::Record) -> bool| looks.iter().any(|unit| what(unit.look()));
    let mut born: Vec<Born> = ran.brood.map(|brood| children(ran, brood)).unwrap_or_default();
    if !is_all {
        born.retain(|born| ids.has(born.parent));
    }
    let exceptions = exceptions(&settlement.exceptions, places.clone());
    let cpu = cpu.map(|cpu| if is_all { cpu } else { share(cpu, timings, places.clone()) });
    let flag = |holds: bool, flag: u64| if holds { flag } else { 0 };
    let flags = flag(timings.len() == 1, UNIFORM)
        | flag(cpu.is_some(), CPU)
        | flag(!exceptions.is_empty(), EXCEPTIONS)
        | flag(has(|record| record.bytes() > 0), BYTES)
        | flag(has(|record| !record.asks().is_empty()), ASKS)
        | flag(!born.is_empty(), BORN)
        | flag(!settlement.keys.is_empty(), GROUPS)
        | flag(has(|record| record.delay_ns() > 0), DELAYS);
    out.push(RUN);
    put(out, stage.into());
    context.put_beginning(out, began_ns);
    put(out, units);
    put(out, flags);
    if flags & UNIFORM != 0 {
        put(out, timings[0].0);
    } else {
        times(timings, places.clone()).for_each(|ns| put(out, ns));
    }
    if let Some((spent, delayed)) = cpu {
        put(out, spent);
        put(out, delayed);
    }
    context.id = ids.put(out, context.id);
    context.saw_below(ids.end());
    End::of_all(settlement.to).put(out);
    if flags & EXCEPTIONS != 0 {
        put(out, exceptions.len() as u64);
        let mut last = 0;
        for (place, verdict) in exceptions {
            put(out, place - last);
            last = place;
            End::of(verdict).put(out);
        }
    }
    if flags & BYTES != 0 {
        looks.iter().for_each(|unit| put(out, unit.look().bytes()));
    }
    if flags & ASKS != 0 {
        for unit in &looks {
            put(out, unit.look().asks().len() as u64);
            unit.look().asks().iter().for_each(|ask| put_ask(out, ask));
        }
    }
    if flags & BORN != 0 {
        put(out, born.len() as u64);
        for Born { parent, first, children } in born {
            put_difference(out, context.id, parent);
            put_difference(out, parent, first);
            put(out, children);
            context.saw_below(first + children);
        }
    }
    if flags & GROUPS != 0 {
        places.for_each(|place| put(out, settlement.keys.get(place).copied().unwrap_or(0) & KEY_MASK));
    }
    if flags & DELAYS != 0 {
        looks.iter().for_each(|unit| put(out, unit.look().delay_ns()));
    }
}

/// The times of the units at these indices, which are in ascending order.
fn times(timings: &[(u64, u64)], places: impl Iterator<Item = usize>) -> impl Iterator<Item = u64> {
    let mut all = timings.iter().flat_map(|&(ns, units)| std::iter::repeat_n(ns, units as usize)).enumerate();
    places.map(move |place| all.find(|(at, _)| *at == place).map_or(0, |(_, ns)| ns))
}

/// The exceptions among the units at these indices. Each has its position among these units.
fn exceptions(all: &[(u32, Verdict)], places: impl Iterator<Item = usize>) -> Vec<(u64, &Verdict)> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut all = all.iter().peekable();
    let mut found = Vec::new();
    for (nth, place) in (0..).zip(places) {
        while all.next_if(|(at, _)| (*at as usize) < place).is_some() {}
        if let Some((_, verdict)) = all.next_if(|(at, _)| *at as usize == place) {
            found.push((nth, verdict));
        }
    }
    found
}

/// The part of a batch's processor time that belongs to the units at these indices.
fn share(
    (spent, delayed): (u64, u64),
    timings: &[(u64, u64)],
    places: impl Iterator<Item = usize> + Clone,
) -> (u64, u64) {
    let all: u128 = timings.iter().map(|&(ns, units)| u128::from(ns) * u128::from(units)).sum();
    let theirs: u128 = times(timings, places).map(u128::from).sum();
    let of = |ns: u64| (u128::from(ns) * theirs / all.max(1)) as u64;
    (of(spent), of(delayed))
}

/// The bits of a key's hash that a trace keeps; they take five bytes.
const KEY_MASK: u64 = (1 << 35) - 1;

fn put_ask(out: &mut Vec<u8>, ask: &Ask) {
    put(out, u64::from(ask.resource) << 1 | u64::from(ask.key.is_some()));
    put(out, ask.amount);
    if let Some(key) = &ask.key {
        put(out, hash_of(key));
    }
}

/// Returns the number that represents a key in a trace. A key has the same number in all runs of a program.
fn hash_of(key: &str) -> u64 {
    super::bytes::checksum(key.as_bytes()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29 & KEY_MASK
}

/// Returns the children that a run has produced. Children of one parent with consecutive numbers form one entry.
fn children(ran: &Ran<'_>, brood: &Brood) -> Vec<Born> {
    let mut born: Vec<Born> = Vec::new();
    for Newborn { row, .. } in brood.born() {
        let id = ran.site.stamps().id(row);
        // SAFETY: the worker that ran the batch has the rows of its brood, and no other handle reaches their records.
        let unit = unsafe { UnitRef::new(ran.site.records(), row) };
        let Some(parent) = unit.look().parent().map(|parent| parent.id) else { continue };
        match born.last_mut().filter(|last| last.parent == parent && last.first + last.children == id) {
            Some(last) => last.children += 1,
            None => born.push(Born { parent, first: id, children: 1 }),
        }
    }
    born
}

/// Writes the record of a pull from the source.
pub(crate) fn put_pull(out: &mut Vec<u8>, context: &mut Context, first: u64, units: u64, began_ns: u64, ended_ns: u64) {
    out.push(PULL);
    context.put_beginning(out, began_ns);
    put(out, ended_ns - began_ns);
    put_difference(out, context.id, first);
    put(out, units);
    context.saw_below(first + units);
}

/// Writes the record of a unit that waits to run in a stage.
pub(crate) fn put_waiting(out: &mut Vec<u8>, context: &mut Context, id: u64, stage: u16, asks: &[Ask]) {
    out.push(WAITS);
    put_difference(out, context.id, id);
    context.id = id;
    put(out, stage.into());
    put(out, asks.len() as u64);
    asks.iter().for_each(|ask| put_ask(out, ask));
}

/// Reads the next record of a chunk; `None` if it is damaged.
pub(crate) fn read(numbers: &mut Numbers<'_>, context: &mut Context) -> Option<Record> {
    match numbers.next()? {
        1 => read_run(numbers, context),
        2 => {
            let began_ns = numbers.next_from(context.at_ns)?;
            context.at_ns = began_ns;
            let wall_ns = numbers.next()?;
            let first = numbers.next_from(context.id)?;
            Some(Record::Pull { began_ns, wall_ns, first, units: numbers.next()? })
        }
        3 => {
            let id = numbers.next_from(context.id)?;
            context.id = id;
            let stage = u16::try_from(numbers.next()?).ok()?;
            Some(Record::Waits(Waiting { id, stage, asks: read_asks(numbers)? }))
        }
        _ => None,
    }
}

/// Reads the needs of a unit, except those that are the same for every unit.
fn read_asks(numbers: &mut Numbers<'_>) -> Option<Vec<AskedFor>> {
    let mut asks = Vec::new();
    for _ in 0..numbers.next_most(MAX_ASKS)? {
        let resource = numbers.next()?;
        let amount = numbers.next()?;
        let key = if resource & 1 == 1 { Some(numbers.next()?) } else { None };
        asks.push(AskedFor { resource: u16::try_from(resource >> 1).ok()?, amount, key });
    }
    Some(asks)
}

fn read_run(numbers: &mut Numbers<'_>, context: &mut Context) -> Option<Record> {
    let stage = u16::try_from(numbers.next()?).ok()?;
    let began_ns = numbers.next_from(context.at_ns)?;
    context.at_ns = began_ns;
    let n = numbers.next_most(MAX_UNITS)?;
    let flags = numbers.next_most(255)?;
    let has = |flag| flags & flag != 0;
    let uniform = if has(UNIFORM) { Some(numbers.next()?) } else { None };
    let mut units = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let wall_ns = if let Some(ns) = uniform { ns } else { numbers.next()? };
        units.push(UnitRun { id: 0, wall_ns, end: End::Left, bytes: 0, asks: Vec::new(), group: 0, delay_ns: 0 });
    }
    let cpu = if has(CPU) { Some((numbers.next()?, numbers.next()?)) } else { None };
    let mut numbered = units.iter_mut();
    let mut left = n;
    while left > 0 {
        let first = numbers.next_from(context.id)?;
        let length = numbers.next_most(left)?;
        if length == 0 {
            return None;
        }
        for (id, unit) in (first..first.checked_add(length)?).zip(&mut numbered) {
            unit.id = id;
        }
        context.id = first + length;
        left -= length;
    }
    let all = End::read(numbers)?;
    units.iter_mut().for_each(|unit| unit.end = all);
    if has(EXCEPTIONS) {
        let exceptions = numbers.next_most(n)?;
        let mut place = 0;
        for _ in 0..exceptions {
            place += numbers.next_most(n)?;
            units.get_mut(usize::try_from(place).ok()?)?.end = End::read(numbers)?;
        }
    }
    if has(BYTES) {
        for unit in &mut units {
            unit.bytes = numbers.next()?;
        }
    }
    if has(ASKS) {
        for unit in &mut units {
            unit.asks = read_asks(numbers)?;
        }
    }
    let mut born = Vec::new();
    if has(BORN) {
        for _ in 0..numbers.next_most(MAX_UNITS)? {
            let parent = numbers.next_from(context.id)?;
            let first = numbers.next_from(parent)?;
            born.push(Born { parent, first, children: numbers.next_most(MAX_UNITS)? });
        }
    }
    if has(GROUPS) {
        for unit in &mut units {
            unit.group = numbers.next()?;
        }
    }
    if has(DELAYS) {
        for unit in &mut units {
            unit.delay_ns = numbers.next()?;
        }
    }
    Some(Record::Run { stage, began_ns, cpu, units, born })
}
