//! The lane of a stage that gathers its units: each joins the open group of its key, or opens one.
//!
//! The first member of a group becomes its holder. The scheduler lets it rest (see `units/groups`) and enqueues it again
//! when the group is to be closed; its payload is in the group by then, which tells a holder from a unit that has just
//! come. Up to that run further members may join, unless the group is full.
//!
//! Members join under the mutex of their group's shard, so those of different shards join at the same time.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::front::{Front, mix};
use super::lane::{Code, Lane};
use super::settlement::{Run, StageRun, Verdict};
use crate::contain::{Contained, contain, drop_panic};
use crate::cx::Cx;
use crate::engine::claims::{GATHERED, NO_STAGE};
use crate::engine::units::column::{Column, Row};
use crate::engine::units::groups::{GroupNote, GroupRules};
use crate::engine::units::record::UnitRef;
use crate::exit::Route;
use crate::failure::Failure;
use crate::gather::{Add, Gather, KeyOf};
use crate::need::MAX_AMOUNT;
use crate::ticket::Unfinished;

/// The number of shards of a stage whose groups have keys.
const SHARDS: usize = 16;

impl<In, G, K> Code<In> for Gather<In, G, K>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
{
    type Out = G;

    fn groups(&self) -> Option<GroupRules> {
        Some(self.rules())
    }

    fn lane<X: Route<G>>(self, front: Front<In>, exit: X) -> Box<dyn Lane> {
        let shards = if matches!(self.key, KeyOf::All(_)) { 1 } else { SHARDS };
        Box::new(GatherLane {
            front,
            gather: Contained::new(self),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            held: Column::new(),
            exit,
        })
    }
}

struct GatherLane<In, G, K, X> {
    front: Front<In>,
    gather: Contained<Gather<In, G, K>>,
    shards: Box<[Mutex<Shard<G, K>>]>,
    hasher: RandomState,
    /// The groups that holders hold open.
    held: Column<Held<K>>,
    exit: X,
}

/// A holder's reference to its group.
struct Held<K> {
    key: Key<K>,
    /// The group's number.
    group: u64,
}

/// The groups of some keys.
struct Shard<G, K> {
    open: HashMap<Key<K>, Box<Group<G>>, BuildHasherDefault<Hashed>>,
    /// Groups that take no further member, by their numbers.
    full: HashMap<u64, Box<Group<G>>>,
}

impl<G, K> Default for Shard<G, K> {
    fn default() -> Self {
        Shard { open: HashMap::default(), full: HashMap::default() }
    }
}

/// The key of a group, with its hash: a map that grows does not run the user code of its keys.
#[derive(Clone, PartialEq, Eq)]
struct Key<K> {
    hash: u64,
    of: KeyKind<K>,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyKind<K> {
    All,
    /// The number of the parent.
    Parent(u64),
    Of(K),
}

impl<K> Hash for Key<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The hasher of keys that are hashed already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes its hash alone")
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A group that members join.
struct Group<G> {
    value: Contained<G>,
    number: u64,
    units: u64,
    /// The weight of its members when they joined.
    joined_bytes: u64,
    /// The weight that the scheduler was told of.
    told_bytes: u64,
    /// The number of notes that were written about it.
    notes: u64,
}

/// The end of a unit's run.
enum Ended {
    /// The unit has joined a group, and nothing else is to be done for it.
    Joined,
    As(Verdict),
}

impl<In, G, K, X> Lane for GatherLane<In, G, K, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    X: Route<G>,
{
    fn run(&self, rows: &mut [Row], run: &mut Run<'_>) {
        let site = run.site;
        let units = rows.len() as u64;
        let mut clock = run.started_ns;
        run.settlement.to = GATHERED;
        run.settlement.plain = run.plain;
        for (place, row) in (0..).zip(&mut *rows) {
            if let Ended::As(verdict) = self.run_unit(row, run) {
                run.settlement.exceptions.push((place, verdict));
            }
            if site.is_witnessed() && matches!(self.gather.key, KeyOf::By(_)) {
                // A unit whose key was not computed has none.
                run.settlement.keys.resize(place as usize + 1, 0);
            }
            if run.time_each {
                let now = site.now();
                run.settlement.timings.push((now - clock, 1));
                clock = now;
            }
        }
        let ended_ns = if run.time_each { clock } else { site.now() };
        if !run.time_each {
            run.settlement.timings.push(((ended_ns - run.started_ns) / units.max(1), units));
        }
        run.settlement.ended_ns = ended_ns;
        let (busy_ns, timed) = (ended_ns - run.started_ns, run.settlement.timings.len());
        run.settlement.stage_runs.push(StageRun { stage: run.stage, busy_ns, timed });
    }

    /// The unit's payload, or the group that it holds open.
    fn take_input(&self, row: &mut Row) -> Option<Box<dyn Any + Send>> {
        // The comparison of keys is user code.
        match contain(|| self.take_group(row)).flatten() {
            Some(group) => Some(Box::new(group.value.into_inner())),
            None => self.front.take_input(row),
        }
    }

    fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any> {
        self.front.peek(row)
    }
}

impl<In, G, K, X> GatherLane<In, G, K, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    X: Route<G>,
{
    fn held<'a>(&'a self, row: &'a mut Row) -> &'a mut Option<Held<K>> {
        // SAFETY: the lane's column belongs to the flow that the row belongs to.
        unsafe { self.held.cell(row) }
    }

    fn shard(&self, key: &Key<K>) -> MutexGuard<'_, Shard<G, K>> {
        // The maps use the lowest and the highest bits of the hash.
        let shard = (key.hash >> 32) as usize % self.shards.len();
        // A panic in user code fails the unit and leaves the shard as it was.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the group that the unit holds open, so that it takes no further member.
    fn take_group(&self, row: &mut Row) -> Option<Box<Group<G>>> {
        let Held { key, group: number } = self.held(row).as_ref()?;
        let mut shard = self.shard(key);
        if let Some(group) = shard.full.remove(number) {
            return Some(group);
        }
        // An open group of this key may be another holder's.
        shard.open.get(key).filter(|group| group.number == *number)?;
        shard.open.remove(key)
    }

    fn run_unit(&self, row: &mut Row, run: &mut Run<'_>) -> Ended {
        if run.site.is_abandoned() {
            self.front.tickets.abandoned(row);
            return Ended::As(Verdict::LeftBehind);
        }
        if self.front.cell(row).is_none() {
            return Ended::As(self.end_group(row, run));
        }
        if let Some(refused) = self.refusal(row, run) {
            return Ended::As(self.front.fail(&Failure::permanent(refused), row, run));
        }
        match catch_unwind(AssertUnwindSafe(|| self.join(row, run))) {
            Ok(Ok(ended)) => ended,
            Ok(Err(failure)) => Ended::As(self.front.fail(&failure, row, run)),
            Err(panic) => {
                let failure = Failure::panic(&*panic);
                drop_panic(panic);
                Ended::As(self.front.fail(&failure, row, run))
            }
        }
    }

    fn refusal(&self, row: &Row, run: &Run<'_>) -> Option<String> {
        if run.plain {
            return None;
        }
        // SAFETY: nothing else reaches the record as long as this handle lives.
        let unit = unsafe { UnitRef::new(run.site.records(), row) };
        unit.look().refused().map(str::to_owned)
    }
}

// ---- members ------------------------------------------------------------------------------------------

impl<In, G, K, X> GatherLane<In, G, K, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    X: Route<G>,
{
    /// Lets a unit join the open group of its key, or open one. Runs user code.
    fn join(&self, row: &mut Row, run: &mut Run<'_>) -> Result<Ended, Failure> {
        let site = run.site;
        // SAFETY: the code below uses `row` for columns of payloads only, as long as this handle is used.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let (attempts, bytes) = if run.plain { (0, 0) } else { (unit.look().attempts(), unit.look().bytes()) };
        let input = self.front.cell(row).as_ref().expect("a granted unit has its payload");
        let of = match &self.gather.key {
            KeyOf::All(_) => Some(KeyKind::All),
            KeyOf::Parent(_) => unit.look().parent().map(|parent| KeyKind::Parent(parent.id)),
            KeyOf::By(key) => Some(KeyKind::Of(key(input))),
        };
        let cx = Cx {
            site,
            growth: run.growth,
            unit,
            attempts,
            stage: run.stage,
            deadline: None,
            taken: RefCell::default(),
            not_send: PhantomData,
        };
        let Some(of) = of else {
            // The unit has no family to wait for.
            let mut group = self.begin(site.next_group());
            let mut unit = self.add(&mut group, row, cx, bytes)?;
            return Ok(Ended::As(self.go_on(group, row, &mut unit, run)));
        };
        let hash = match &of {
            KeyKind::All => 0,
            // The flow gives these numbers out, so no input can make them collide.
            KeyKind::Parent(id) => mix(*id),
            KeyKind::Of(key) => self.hasher.hash_one(key),
        };
        if site.is_witnessed() && matches!(self.gather.key, KeyOf::By(_)) {
            run.settlement.keys.push(hash);
        }
        let key = Key { hash, of };
        let mut shard = self.shard(&key);
        if let Some(group) = shard.open.get_mut(&key) {
            let unit = self.add(group, row, cx, bytes)?;
            let full = self.is_full(group);
            let grown = self.grown(group);
            if full || grown > 0 {
                note_joined(group, grown, full, run);
            }
            if full && let Some(group) = shard.open.remove(&key) {
                shard.full.insert(group.number, group);
            }
            drop(shard);
            return Ok(self.end_member(row, &unit, run));
        }
        let mut group = self.begin(site.next_group());
        let mut unit = self.add(&mut group, row, cx, bytes)?;
        group.told_bytes = bytes;
        if self.is_full(&group) {
            drop(shard);
            return Ok(Ended::As(self.go_on(group, row, &mut unit, run)));
        }
        let grown = self.grown(&mut group);
        if grown > 0 {
            note_joined(&mut group, grown, false, run);
        }
        let number = group.number;
        *self.held(row) = Some(Held { key: key.clone(), group: number });
        shard.open.insert(key, group);
        drop(shard);
        self.drop_input(row);
        self.end_ticket(row, &unit);
        Ok(Ended::As(Verdict::Rest { group: number }))
    }

    fn begin(&self, number: u64) -> Box<Group<G>> {
        let value = Contained::new((self.gather.begin)());
        Box::new(Group { value, number, units: 0, joined_bytes: 0, told_bytes: 0, notes: 0 })
    }

    /// Adds the unit to the group.
    fn add<'r>(&self, group: &mut Group<G>, row: &mut Row, mut cx: Cx<'r>, bytes: u64) -> Result<UnitRef<'r>, Failure> {
        let cell = self.front.cell(row);
        match &self.gather.add {
            Add::Fold(add) => {
                let input = cell.as_mut().expect("a granted unit has its payload");
                add(&mut group.value, input, &mut cx)?;
            }
            Add::Keep(keep) => keep(&mut group.value, cell.take().expect("a granted unit has its payload")),
        }
        group.units += 1;
        group.joined_bytes = group.joined_bytes.saturating_add(bytes);
        Ok(cx.unit)
    }

    fn is_full(&self, group: &Group<G>) -> bool {
        group.units >= self.gather.max_units
            || group.joined_bytes >= self.gather.max_bytes
            || self.gather.full.as_ref().is_some_and(|full| full(&group.value))
    }

    /// The group's weight.
    fn weight(&self, group: &Group<G>) -> u64 {
        match (&self.gather.weigh, &self.gather.add) {
            (Some(weigh), _) => weigh(&group.value).min(MAX_AMOUNT),
            (None, Add::Keep(_)) => group.joined_bytes,
            (None, Add::Fold(_)) => group.told_bytes,
        }
    }

    /// The bytes that the group has grown by since the scheduler was told of its weight.
    fn grown(&self, group: &mut Group<G>) -> u64 {
        let weight = self.weight(group);
        let grown = weight.saturating_sub(group.told_bytes);
        group.told_bytes += grown;
        grown
    }

    fn end_member(&self, row: &mut Row, unit: &UnitRef<'_>, run: &mut Run<'_>) -> Ended {
        self.drop_input(row);
        let is_ticketed = self.end_ticket(row, unit);
        if run.plain && !unit.is_touched() {
            return Ended::Joined;
        }
        run.settlement.plain = false;
        if unit.look().moves_on() && !is_ticketed { Ended::Joined } else { Ended::As(Verdict::Join) }
    }

    fn drop_input(&self, row: &mut Row) {
        let input = self.front.cell(row).take();
        contain(|| drop(input));
    }

    /// Tells the unit's ticket that it has joined a group. Returns whether it has a ticket.
    fn end_ticket(&self, row: &mut Row, unit: &UnitRef<'_>) -> bool {
        let is_ticketed = unit.look().is_ticketed();
        if is_ticketed {
            contain(|| self.front.tickets.unfinished(row, Unfinished::Gathered));
        }
        is_ticketed
    }
}

/// Writes a note that members have joined the group, or adds to the last one, if that is about the same group.
fn note_joined<G>(group: &mut Group<G>, grown: u64, full: bool, run: &mut Run<'_>) {
    match run.settlement.groups.last_mut() {
        Some(GroupNote::Joined { group: last, bytes, full: is_full }) if *last == group.number => {
            *bytes = bytes.saturating_add(grown);
            *is_full |= full;
        }
        _ => {
            group.notes += 1;
            run.settlement.groups.push(GroupNote::Joined { group: group.number, bytes: grown, full });
        }
    }
}

// ---- groups that go on --------------------------------------------------------------------------------

impl<In, G, K, X> GatherLane<In, G, K, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    X: Route<G>,
{
    /// Ends the group that the unit holds open: the group goes on in its place.
    fn end_group(&self, row: &mut Row, run: &mut Run<'_>) -> Verdict {
        let Some(group) = contain(|| self.take_group(row)).flatten() else {
            let lost = Failure::permanent("the group is lost: the comparison of its key panics");
            return self.front.fail(&lost, row, run);
        };
        if let Some(refused) = self.refusal(row, run) {
            return self.fail_group(&Failure::permanent(refused), group, row, run);
        }
        // SAFETY: the code below uses `row` for columns of payloads only, as long as this handle is used.
        let mut unit = unsafe { UnitRef::new(run.site.records(), row) };
        self.go_on(group, row, &mut unit, run)
    }

    /// Sends the group to its exit as this unit.
    fn go_on(&self, mut group: Box<Group<G>>, row: &mut Row, unit: &mut UnitRef<'_>, run: &mut Run<'_>) -> Verdict {
        let aimed = catch_unwind(AssertUnwindSafe(|| {
            if let Some(finish) = &self.gather.finish {
                finish(&mut group.value);
            }
            (self.exit.aim(&group.value, unit), self.weight(&group))
        }));
        let (aim, weight) = match aimed {
            Ok(aimed) => aimed,
            Err(panic) => {
                let failure = Failure::panic(&*panic);
                drop_panic(panic);
                return self.fail_group(&failure, group, row, run);
            }
        };
        if aim.stage != NO_STAGE && run.site.is_abandoned() {
            self.keep(group, row);
            self.front.tickets.abandoned(row);
            return Verdict::LeftBehind;
        }
        let Group { value, number, notes, .. } = *group;
        // A group that was full at once has had no holder.
        if self.held(row).take().is_some() {
            run.settlement.groups.push(GroupNote::Ended { group: number, notes });
        } else {
            self.drop_input(row);
            self.end_ticket(row, unit);
            unit.change().set_ticketed(false);
        }
        contain(|| self.exit.land(value.into_inner(), aim, row, false));
        match aim.stage {
            NO_STAGE => Verdict::Retire,
            stage => Verdict::Go { stage, bytes: Some(aim.bytes.unwrap_or(weight)) },
        }
    }

    /// Ends the run of a unit whose group could not go on. The group stays with it, or is the input of its dead letter.
    fn fail_group(&self, failure: &Failure, group: Box<Group<G>>, row: &mut Row, run: &mut Run<'_>) -> Verdict {
        let (number, notes) = (group.number, group.notes);
        let was_held = self.held(row).is_some();
        let mut group = Some(group);
        let verdict = self.front.fail_with(failure, row, run, |_| {
            let value = group.take()?.value.into_inner();
            Some(Box::new(value))
        });
        match group {
            Some(group) => self.keep(group, row),
            None if was_held => {
                *self.held(row) = None;
                run.settlement.groups.push(GroupNote::Ended { group: number, notes });
            }
            None => {}
        }
        verdict
    }

    /// Keeps the group of a unit that runs here again, or is left behind.
    fn keep(&self, group: Box<Group<G>>, row: &mut Row) {
        let number = group.number;
        let key = match self.held(row) {
            Some(held) => held.key.clone(),
            // The group was full at once: no unit finds it by its key.
            None => {
                self.drop_input(row);
                let key = Key { hash: 0, of: KeyKind::All };
                *self.held(row) = Some(Held { key: key.clone(), group: number });
                key
            }
        };
        self.shard(&key).full.insert(number, group);
    }
}
