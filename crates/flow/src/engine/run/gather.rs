//! The lane of a stage that gathers its units: each joins the open group of its key, or opens one.
//!
//! The first member of a group becomes its holder. The scheduler lets it rest (see `units/groups`) and enqueues it again
//! when the group is to be closed; its payload is in the group by then, which tells a holder from a unit that has just
//! come. Up to that run further members may join, unless the group is full.
//!
//! Members join under the mutex of their group's shard, so those of different shards join at the same time. The members of a
//! batch that join one group, or the groups of one parent, keep the mutex from one to the next.

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
use super::settlement::{Run, Settlement, StageRun, Verdict};
use crate::contain::{Contained, contain, drop_panic};
use crate::cx::Cx;
use crate::engine::claims::{GATHERED, NO_STAGE, UNDECIDED};
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

impl<In, G, K, Out> Code<In> for Gather<In, G, K, Out>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
{
    type Out = Out;

    fn groups(&self) -> Option<GroupRules> {
        Some(self.rules())
    }

    fn lane<X: Route<Out>>(self, front: Front<In>, exit: X) -> Box<dyn Lane> {
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

struct GatherLane<In, G, K, Out, X> {
    front: Front<In>,
    gather: Contained<Gather<In, G, K, Out>>,
    shards: Box<[Mutex<Shard<G, K, Out>>]>,
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
struct Shard<G, K, Out> {
    /// A member of one of many groups finds it in memory that no cache holds. So it lies in the table itself.
    open: HashMap<Key<K>, Group<G>, BuildHasherDefault<Hashed>>,
    /// Groups that take no further member, by their numbers.
    full: HashMap<u64, Box<Closed<G, Out>>>,
}

impl<G, K, Out> Default for Shard<G, K, Out> {
    fn default() -> Self {
        Shard { open: HashMap::default(), full: HashMap::default() }
    }
}

/// The shard that the members of a batch join in.
struct At<'a, G, K, Out>(Option<Entered<'a, G, K, Out>>);

/// A shard that a worker has entered.
struct Entered<'a, G, K, Out> {
    place: usize,
    shard: MutexGuard<'a, Shard<G, K, Out>>,
    /// The group that the last member joined, out of its table as long as the worker stays: the next member mostly joins
    /// the same one. Only of a stage whose keys are the flow's own.
    last: Option<(Key<K>, Group<G>)>,
}

impl<'a, G, K: Eq, Out> At<'a, G, K, Out> {
    /// The shard of this key, which the worker stays in until it leaves.
    fn enter<In, X>(&mut self, lane: &'a GatherLane<In, G, K, Out, X>, key: &Key<K>) -> &mut Entered<'a, G, K, Out> {
        let place = lane.place(key);
        if self.0.as_ref().is_some_and(|entered| entered.place != place) {
            // Two mutexes at once could be a circle.
            self.leave();
        }
        self.0.get_or_insert_with(|| Entered { place, shard: lane.lock(place), last: None })
    }

    fn leave(&mut self) {
        if let Some(mut entered) = self.0.take() {
            entered.put_back();
        }
    }
}

impl<G, K: Eq, Out> Entered<'_, G, K, Out> {
    /// The open group of this key, which is the flow's own.
    fn last(&mut self, key: &Key<K>) -> Option<&mut Group<G>> {
        if !self.last.as_ref().is_some_and(|(last, _)| last.is(key)) {
            self.put_back();
            self.last = self.shard.open.remove_entry(key);
        }
        self.last.as_mut().map(|(_, group)| group)
    }

    /// Puts the group that the last member joined back into its table.
    fn put_back(&mut self) {
        if let Some((key, group)) = self.last.take() {
            self.shard.open.insert(key, group);
        }
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

impl<K> Key<K> {
    /// Whether both are the same, of keys that are the flow's own.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        match (&self.of, &other.of) {
            (KeyKind::All, KeyKind::All) => true,
            (KeyKind::Parent(one), KeyKind::Parent(other)) => one == other,
            _ => false,
        }
    }
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

/// A group that takes no further member.
struct Closed<G, Out> {
    value: Contained<Value<G, Out>>,
    number: u64,
    notes: u64,
    joined_bytes: u64,
    told_bytes: u64,
}

/// The value of a closed group.
enum Value<G, Out> {
    /// As its members have joined it.
    Joined(G),
    /// As it goes on.
    Mapped(Out),
    /// The code that maps it has panicked.
    Lost,
}

impl<G> Group<G> {
    fn close<Out>(self) -> Closed<G, Out> {
        let Group { value, number, notes, joined_bytes, told_bytes, .. } = self;
        Closed { value: Contained::new(Value::Joined(value.into_inner())), number, notes, joined_bytes, told_bytes }
    }
}

/// The end of a unit's run.
enum Ended {
    /// Nothing else is to be done for the unit: it has joined a group ([`GATHERED`]), or it is a group that goes on, or
    /// retires, with this weight.
    Moves {
        to: u16,
        bytes: u64,
    },
    As(Verdict),
}

impl Ended {
    const JOINED: Self = Ended::Moves { to: GATHERED, bytes: 0 };

    /// Notes the end of the unit at `place`: most units of a batch move to the same place.
    fn note(self, place: u32, settlement: &mut Settlement) {
        let verdict = match self {
            Ended::Moves { to, .. } if to == settlement.to => return,
            Ended::Moves { to, .. } if settlement.to == UNDECIDED => return settlement.to = to,
            Ended::Moves { to: GATHERED, .. } => Verdict::Join,
            Ended::Moves { to: NO_STAGE, .. } => Verdict::Retire,
            Ended::Moves { to, bytes } => Verdict::Go { stage: to, bytes: Some(bytes) },
            Ended::As(verdict) => verdict,
        };
        settlement.exceptions.push((place, verdict));
    }
}

impl<In, G, K, Out, X> Lane for GatherLane<In, G, K, Out, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
    X: Route<Out>,
{
    fn run(&self, rows: &mut [Row], run: &mut Run<'_>) {
        let site = run.site;
        let units = rows.len() as u64;
        let mut clock = run.started_ns;
        run.settlement.to = UNDECIDED;
        run.settlement.plain = run.plain;
        let mut at = At(None);
        for (place, row) in (0..).zip(&mut *rows) {
            self.run_unit(row, run, &mut at).note(place, run.settlement);
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
        at.leave();
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
            Some(group) => self.input_of(*group),
            None => self.front.take_input(row),
        }
    }

    fn gathers_families(&self) -> bool {
        matches!(self.gather.key, KeyOf::Parent(_))
    }

    fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any> {
        self.front.peek(row)
    }
}

impl<In, G, K, Out, X> GatherLane<In, G, K, Out, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
    X: Route<Out>,
{
    fn held<'a>(&'a self, row: &'a mut Row) -> &'a mut Option<Held<K>> {
        // SAFETY: the lane's column belongs to the flow that the row belongs to.
        unsafe { self.held.cell(row) }
    }

    fn shard(&self, key: &Key<K>) -> MutexGuard<'_, Shard<G, K, Out>> {
        self.lock(self.place(key))
    }

    /// Takes the group that the unit holds open, so that it takes no further member.
    fn take_group(&self, row: &mut Row) -> Option<Box<Closed<G, Out>>> {
        let Held { key, group: number } = self.held(row).as_ref()?;
        let mut shard = self.shard(key);
        if let Some(group) = shard.full.remove(number) {
            return Some(group);
        }
        // An open group of this key may be another holder's.
        shard.open.get(key).filter(|group| group.number == *number)?;
        Some(Box::new(shard.open.remove(key)?.close()))
    }

    fn run_unit<'s>(&'s self, row: &mut Row, run: &mut Run<'_>, at: &mut At<'s, G, K, Out>) -> Ended {
        if run.site.is_abandoned() {
            at.leave();
            self.front.tickets.abandoned(row);
            return Ended::As(Verdict::LeftBehind);
        }
        if self.front.cell(row).is_none() {
            at.leave();
            return self.end_group(row, run);
        }
        if let Some(refused) = self.refusal(row, run) {
            at.leave();
            return Ended::As(self.front.fail(&Failure::permanent(refused), row, run));
        }
        match catch_unwind(AssertUnwindSafe(|| self.join(row, run, at))) {
            Ok(Ok(ended)) => ended,
            Ok(Err(failure)) => {
                at.leave();
                Ended::As(self.front.fail(&failure, row, run))
            }
            Err(panic) => {
                at.leave();
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

impl<In, G, K, Out, X> GatherLane<In, G, K, Out, X> {
    /// The number of the key's shard.
    fn place(&self, key: &Key<K>) -> usize {
        // The maps use the lowest and the highest bits of the hash.
        (key.hash >> 32) as usize % self.shards.len()
    }

    fn lock(&self, place: usize) -> MutexGuard<'_, Shard<G, K, Out>> {
        // A panic in user code fails the unit and leaves the shard as it was.
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// ---- members ------------------------------------------------------------------------------------------

impl<In, G, K, Out, X> GatherLane<In, G, K, Out, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
    X: Route<Out>,
{
    /// Lets a unit join the open group of its key, or open one. Runs user code.
    fn join<'s>(&'s self, row: &mut Row, run: &mut Run<'_>, at: &mut At<'s, G, K, Out>) -> Result<Ended, Failure> {
        let site = run.site;
        // SAFETY: the code below uses `row` for columns of payloads only, as long as this handle is used.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let (attempts, bytes) = if run.plain { (0, 0) } else { (unit.look().attempts(), unit.look().own_bytes()) };
        let input = self.front.cell(row).as_ref().expect("a granted unit has its payload");
        let of = match &self.gather.key {
            KeyOf::All(_) => Some(KeyKind::All),
            KeyOf::Parent(_) => unit.look().parent().map(|parent| KeyKind::Parent(parent.id)),
            KeyOf::By(key) => Some(KeyKind::Of(key(input))),
        };
        let cx = Cx {
            site,
            advance: run.advance,
            unit,
            attempts,
            stage: run.stage,
            deadline: None,
            taken: RefCell::default(),
            not_send: PhantomData,
        };
        let Some(of) = of else {
            // The unit has no family to wait for.
            at.leave();
            let mut group = self.begin(site.next_group());
            let mut unit = self.add(&mut group, row, cx, bytes)?;
            return Ok(self.go_on(Box::new(group.close()), row, &mut unit, run));
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
        // The code of other keys must not run under the mutex.
        let stays = !matches!(self.gather.key, KeyOf::By(_));
        let entered = at.enter(self, &key);
        let group = if stays { entered.last(&key) } else { entered.shard.open.get_mut(&key) };
        if let Some(group) = group {
            let unit = self.add(group, row, cx, bytes)?;
            let full = self.is_full(group);
            let grown = self.grown(group);
            if full || grown > 0 {
                note_joined(group, grown, full, run);
            }
            if full {
                entered.put_back();
                if let Some(group) = entered.shard.open.remove(&key) {
                    entered.shard.full.insert(group.number, Box::new(group.close()));
                }
            }
            if !stays {
                at.leave();
            }
            return Ok(self.end_member(row, &unit, run));
        }
        let mut group = self.begin(site.next_group());
        let mut unit = self.add(&mut group, row, cx, bytes)?;
        // What is charged to the unit is charged for the group from now on.
        group.told_bytes = if run.plain { 0 } else { unit.look().bytes() };
        if self.is_full(&group) {
            at.leave();
            return Ok(self.go_on(Box::new(group.close()), row, &mut unit, run));
        }
        let grown = self.grown(&mut group);
        if grown > 0 {
            note_joined(&mut group, grown, false, run);
        }
        let number = group.number;
        *self.held(row) = Some(Held { key: key.clone(), group: number });
        if stays {
            entered.last = Some((key, group));
        } else {
            entered.shard.open.insert(key, group);
            at.leave();
        }
        self.drop_input(row);
        self.end_ticket(row, &unit);
        Ok(Ended::As(Verdict::Rest { group: number }))
    }

    fn begin(&self, number: u64) -> Group<G> {
        let value = Contained::new((self.gather.begin)());
        Group { value, number, units: 0, joined_bytes: 0, told_bytes: 0, notes: 0 }
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

    /// The weight of a group with members of `joined` bytes, of which the scheduler was told that it weighs `told` bytes.
    fn weight(&self, group: &G, joined: u64, told: u64) -> u64 {
        match (&self.gather.weigh, &self.gather.add) {
            (Some(weigh), _) => weigh(group).min(MAX_AMOUNT),
            (None, Add::Keep(_)) => joined,
            (None, Add::Fold(_)) => told,
        }
    }

    /// The bytes that the group has grown by since the scheduler was told of its weight.
    fn grown(&self, group: &mut Group<G>) -> u64 {
        let weight = self.weight(&group.value, group.joined_bytes, group.told_bytes);
        let grown = weight.saturating_sub(group.told_bytes);
        group.told_bytes += grown;
        grown
    }

    fn end_member(&self, row: &mut Row, unit: &UnitRef<'_>, run: &mut Run<'_>) -> Ended {
        self.drop_input(row);
        let is_ticketed = self.end_ticket(row, unit);
        if run.plain && !unit.is_touched() {
            return Ended::JOINED;
        }
        run.settlement.plain = false;
        if unit.look().moves_on() && !is_ticketed { Ended::JOINED } else { Ended::As(Verdict::Join) }
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

impl<In, G, K, Out, X> GatherLane<In, G, K, Out, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
    X: Route<Out>,
{
    /// Ends the group that the unit holds open: the group goes on in its place.
    fn end_group(&self, row: &mut Row, run: &mut Run<'_>) -> Ended {
        let Some(group) = contain(|| self.take_group(row)).flatten() else {
            let lost = Failure::permanent("the group is lost: the comparison of its key panics");
            return Ended::As(self.front.fail(&lost, row, run));
        };
        if let Some(refused) = self.refusal(row, run) {
            return Ended::As(self.fail_group(&Failure::permanent(refused), group, row, run));
        }
        // SAFETY: the code below uses `row` for columns of payloads only, as long as this handle is used.
        let mut unit = unsafe { UnitRef::new(run.site.records(), row) };
        self.go_on(group, row, &mut unit, run)
    }

    /// Sends the group to its exit as this unit.
    fn go_on(&self, mut group: Box<Closed<G, Out>>, row: &mut Row, unit: &mut UnitRef<'_>, run: &mut Run<'_>) -> Ended {
        let aimed = catch_unwind(AssertUnwindSafe(|| {
            self.close(&mut group);
            match &*group.value {
                Value::Mapped(out) => Some(self.exit.aim(out, unit)),
                Value::Joined(_) | Value::Lost => None,
            }
        }));
        let aim = match aimed {
            Ok(Some(aim)) => aim,
            Ok(None) => {
                let lost = Failure::permanent("the group is lost: the code that maps it has panicked");
                return Ended::As(self.fail_group(&lost, group, row, run));
            }
            Err(panic) => {
                let failure = Failure::panic(&*panic);
                drop_panic(panic);
                return Ended::As(self.fail_group(&failure, group, row, run));
            }
        };
        if aim.stage != NO_STAGE && run.site.is_abandoned() {
            self.keep(group, row);
            self.front.tickets.abandoned(row);
            return Ended::As(Verdict::LeftBehind);
        }
        let Closed { value, number, notes, told_bytes, .. } = *group;
        // A group that was full at once has had no holder.
        if self.held(row).take().is_some() {
            run.settlement.groups.push(GroupNote::Ended { group: number, notes });
        } else {
            self.drop_input(row);
            self.end_ticket(row, unit);
            unit.change().set_ticketed(false);
        }
        let Value::Mapped(out) = value.into_inner() else { unreachable!("it was aimed above") };
        contain(|| self.exit.land(out, aim, row, false));
        let bytes = aim.bytes.unwrap_or(told_bytes);
        let only_moves = unit.look().moves_on();
        match aim.stage {
            NO_STAGE if !only_moves => Ended::As(Verdict::Retire),
            stage if stage != NO_STAGE && (!only_moves || bytes > unit.look().bytes()) => {
                Ended::As(Verdict::Go { stage, bytes: Some(bytes) })
            }
            to => {
                run.settlement.plain = false;
                if to != NO_STAGE {
                    run.settlement.lighter |= bytes != unit.look().bytes();
                    unit.set_next_bytes(bytes);
                }
                Ended::Moves { to, bytes }
            }
        }
    }

    /// Makes of a group what goes on, once. Runs user code.
    fn close(&self, group: &mut Closed<G, Out>) {
        let Value::Joined(joined) = &mut *group.value else { return };
        if let Some(finish) = &self.gather.finish {
            finish(joined);
        }
        group.told_bytes = self.weight(joined, group.joined_bytes, group.told_bytes);
        self.map(&mut group.value);
    }

    /// Maps a group that is not mapped yet. Runs user code.
    fn map(&self, value: &mut Value<G, Out>) {
        *value = match std::mem::replace(value, Value::Lost) {
            Value::Joined(joined) => Value::Mapped((self.gather.map)(joined)),
            other => other,
        };
    }

    /// The input of the dead letter of a group.
    fn input_of(&self, group: Closed<G, Out>) -> Option<Box<dyn Any + Send>> {
        let mut value = group.value;
        contain(|| self.map(&mut value));
        match value.into_inner() {
            Value::Mapped(out) => Some(Box::new(out)),
            Value::Joined(_) | Value::Lost => None,
        }
    }

    /// Ends the run of a unit whose group could not go on. The group stays with it, or is the input of its dead letter.
    fn fail_group(&self, failure: &Failure, group: Box<Closed<G, Out>>, row: &mut Row, run: &mut Run<'_>) -> Verdict {
        let (number, notes) = (group.number, group.notes);
        let was_held = self.held(row).is_some();
        let mut group = Some(group);
        let verdict = self.front.fail_with(failure, row, run, |_| self.input_of(*group.take()?));
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
    fn keep(&self, group: Box<Closed<G, Out>>, row: &mut Row) {
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
