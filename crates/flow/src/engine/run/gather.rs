//! The lane of a stage that gathers its units: each unit joins the open group of its key, or opens a new group.
//!
//! The first member of a group becomes its holder. The scheduler puts the holder to rest (see `units/groups`), and
//! enqueues it again when the group must be closed. By then the holder's payload is in the group, so the lane
//! recognizes a holder by its missing payload. Until the holder runs, further members may join, unless the group is
//! full.
//!
//! Members join under the mutex of their group's shard, so members of different shards can join at the same time. If
//! successive members of a batch join groups of one shard, the worker does not unlock the shard's mutex in between.

use std::any::Any;
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::batch_run::Run;
use super::front::{Front, mix};
use super::lane::{Code, Lane};
use super::settlement::{Settlement, StageRun, Verdict};
use super::shards::{At, Closed, Group, Key, KeyKind, SHARDS, Shards, Value};
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
        let shards = Shards::new(!matches!(self.key, KeyOf::All(_)));
        Box::new(GatherLane {
            front,
            gather: Contained::new(self),
            shards,
            hasher: RandomState::new(),
            held: Column::new(),
            exit,
        })
    }
}

struct GatherLane<In, G, K, Out, X> {
    front: Front<In>,
    gather: Contained<Gather<In, G, K, Out>>,
    shards: Shards<G, K, Out>,
    hasher: RandomState,
    /// The groups that units hold open.
    held: Column<Held<K>>,
    exit: X,
}

/// A holder's reference to its group.
struct Held<K> {
    key: Key<K>,
    /// The group's number.
    group: u64,
}

/// The state of a group that a member has joined.
struct Joined {
    full: bool,
    /// The bytes by which the group has grown.
    grown: u64,
    /// The failure of the group, if user code panicked after the member had joined.
    failure: Option<Failure>,
}

/// The end of a unit's run.
enum Ended {
    /// The unit has joined a group ([`GATHERED`]), or it represents a group that goes on or retires with this weight.
    /// In both cases the settlement has nothing else to do for the unit.
    Moves {
        to: u16,
        bytes: u64,
    },
    As(Verdict),
}

impl Ended {
    const JOINED: Self = Ended::Moves { to: GATHERED, bytes: 0 };

    /// Notes the end of the unit at `place`. The destination that most units of a batch share is noted only once.
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
        if self.has_keys() && site.is_witnessed() {
            run.settlement.keys.resize(rows.len(), 0);
        }
        if self.has_keys() && !run.time_each {
            self.run_by_shard(rows, run);
        } else {
            let mut at = At::default();
            for (place, row) in (0..).zip(&mut *rows) {
                self.run_unit(row, place, run, &mut at).note(place, run.settlement);
                if run.time_each {
                    let now = site.now();
                    run.settlement.timings.push((now - clock, 1));
                    clock = now;
                }
            }
            at.leave();
        }
        self.end_members(rows, run);
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
        // Comparing keys runs user code, which may panic.
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

    /// Takes the group that the unit holds open. No further member can then join it.
    fn take_group(&self, row: &mut Row) -> Option<Box<Closed<G, Out>>> {
        let Held { key, group: number } = self.held(row).as_ref()?;
        let mut shard = self.shards.of(key);
        if !shard.full.is_empty()
            && let Some(group) = shard.full.remove(number)
        {
            return Some(group);
        }
        let (key, group) = shard.open.remove_entry(key)?;
        if group.number == *number {
            return Some(Box::new(group.close(None)));
        }
        // The group belongs to another holder, so it stays open.
        shard.open.insert(key, group);
        None
    }

    /// Whether groups have keys, which user code computes.
    fn has_keys(&self) -> bool {
        matches!(self.gather.key, KeyOf::By(_))
    }

    fn run_unit<'s>(&'s self, row: &mut Row, place: u32, run: &mut Run<'_>, at: &mut At<'s, G, K, Out>) -> Ended {
        if let Some(ended) = self.run_without_key(row, run, at) {
            return ended;
        }
        self.contained(row, run, at, |row, run, at| match self.key_of(row, place, run) {
            // If user code computes the keys, the worker leaves the shard after each unit, because the code for the
            // next key must not run under the shard's mutex.
            Some(key) => self.join(row, key, !self.has_keys(), run, at),
            None => self.join_no_family(row, run, at),
        })
    }

    /// Ends the run of a unit that joins no group, because the flow was abandoned, the unit holds a group open, or the
    /// unit was refused.
    fn run_without_key<'s>(&'s self, row: &mut Row, run: &mut Run<'_>, at: &mut At<'s, G, K, Out>) -> Option<Ended> {
        if run.site.is_abandoned() {
            at.leave();
            self.front.tickets.abandoned(row);
            return Some(Ended::As(Verdict::LeftBehind));
        }
        if self.front.cell(row).is_none() {
            at.leave();
            return Some(self.end_group(row, run));
        }
        let refused = self.refusal(row, run)?;
        at.leave();
        Some(Ended::As(self.front.fail(&Failure::permanent(refused), row, run)))
    }

    /// Runs user code for a unit. The unit fails if the code returns an error or panics.
    fn contained<'s>(
        &'s self,
        row: &mut Row,
        run: &mut Run<'_>,
        at: &mut At<'s, G, K, Out>,
        code: impl FnOnce(&mut Row, &mut Run<'_>, &mut At<'s, G, K, Out>) -> Result<Ended, Failure>,
    ) -> Ended {
        let failure = match catch_unwind(AssertUnwindSafe(|| code(row, run, at))) {
            Ok(Ok(ended)) => return ended,
            Ok(Err(failure)) => failure,
            Err(panic) => {
                let failure = Failure::panic(&*panic);
                drop_panic(panic);
                failure
            }
        };
        at.leave();
        Ended::As(self.front.fail(&failure, row, run))
    }

    /// Runs units whose groups have keys, one shard after the other.
    ///
    /// If there are many keys, their groups do not fit into a cache. So all groups of a shard's units are looked up
    /// first, because the processor can then load several groups at the same time. When the units join afterwards,
    /// their groups are in the cache.
    fn run_by_shard(&self, rows: &mut [Row], run: &mut Run<'_>) {
        let mut keys: Vec<Option<Key<K>>> = Vec::with_capacity(rows.len());
        let mut ends = [0; SHARDS];
        for (place, row) in (0..).zip(&mut *rows) {
            let mut at = At::default();
            let mut key = None;
            let ended = self.run_without_key(row, run, &mut at).or_else(|| {
                let ended = self.contained(row, run, &mut at, |row, run, _| {
                    key = self.key_of(row, place, run);
                    Ok(Ended::JOINED)
                });
                key.is_none().then_some(ended)
            });
            match (&key, ended) {
                (Some(key), _) => ends[self.shards.place(key)] += 1,
                (None, ended) => ended.into_iter().for_each(|ended| ended.note(place, run.settlement)),
            }
            keys.push(key);
        }
        let mut begins = 0;
        for end in &mut ends {
            begins += std::mem::replace(end, begins);
        }
        let mut order = vec![0; begins as usize];
        for (place, key) in (0_u32..).zip(&keys) {
            let Some(key) = key else { continue };
            let next = &mut ends[self.shards.place(key)];
            order[*next as usize] = place;
            *next += 1;
        }
        // For each shard, `ends` now has the index in `order` after the shard's last unit.
        let mut begin = 0_u32;
        for end in ends {
            self.run_in_shard(&order[begin as usize..end as usize], rows, &mut keys, run);
            begin = end;
        }
        run.settlement.exceptions.sort_unstable_by_key(|(place, _)| *place);
    }

    /// Joins the units at these indices to their groups, which are in one shard.
    fn run_in_shard(&self, places: &[u32], rows: &mut [Row], keys: &mut [Option<Key<K>>], run: &mut Run<'_>) {
        let mut at = At::default();
        if let Some(first) = places.first().and_then(|&place| keys[place as usize].as_ref()) {
            let entered = at.enter(&self.shards, first);
            contain(|| {
                let keys = places.iter().filter_map(|&place| keys[place as usize].as_ref());
                black_box(keys.map(|key| entered.shard.open.get(key).map_or(0, |group| group.units)).sum::<u64>());
            });
        }
        for &place in places {
            let Some(key) = keys[place as usize].take() else { continue };
            let row = &mut rows[place as usize];
            self.contained(row, run, &mut at, |row, run, at| self.join(row, key, true, run, at))
                .note(place, run.settlement);
        }
        at.leave();
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

impl<In, G, K, Out, X> GatherLane<In, G, K, Out, X>
where
    In: Send + 'static,
    G: Send + 'static,
    K: Hash + Eq + Clone + Send + 'static,
    Out: Send + 'static,
    X: Route<Out>,
{
    /// The key of the group that a unit joins; `None` if the stage gathers families and the unit has no parent. Runs
    /// user code.
    fn key_of(&self, row: &mut Row, place: u32, run: &mut Run<'_>) -> Option<Key<K>> {
        let input = self.front.cell(row).as_ref().expect("a granted unit has its payload");
        let (hash, of) = match &self.gather.key {
            KeyOf::All(_) => (0, KeyKind::All),
            KeyOf::Parent(_) => {
                // SAFETY: nothing else reaches the record as long as this handle lives.
                let unit = unsafe { UnitRef::new(run.site.records(), row) };
                let id = unit.look().parent()?.id;
                // The flow itself numbers its units, so no input can make the hashes of these numbers collide.
                (mix(id), KeyKind::Parent(id))
            }
            KeyOf::By(key) => {
                let key = key(input);
                let hash = self.hasher.hash_one(&key);
                if let Some(told) = run.settlement.keys.get_mut(place as usize) {
                    *told = hash;
                }
                (hash, KeyKind::Of(key))
            }
        };
        Some(Key { hash, of })
    }

    /// The unit's context, and its weight.
    fn context<'r>(&self, row: &Row, run: &Run<'r>) -> (Cx<'r>, u64) {
        let site = run.site;
        // SAFETY: the callers use `row` for columns of payloads only, as long as this handle is used.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let (attempts, bytes) = if run.plain { (0, 0) } else { (unit.look().attempts(), unit.look().own_bytes()) };
        let (taken, stage) = (RefCell::default(), run.stage);
        (Cx { site, advance: run.advance, unit, attempts, stage, deadline: None, taken, not_send: PhantomData }, bytes)
    }

    /// Makes a separate group for a unit that has no family. Runs user code.
    fn join_no_family(&self, row: &mut Row, run: &mut Run<'_>, at: &mut At<'_, G, K, Out>) -> Result<Ended, Failure> {
        at.leave();
        let (cx, bytes) = self.context(row, run);
        let mut group = self.begin(run.site.next_group());
        let mut unit = self.add(&mut group, row, cx, bytes)?;
        Ok(self.go_on(Box::new(group.close(None)), row, &mut unit, run))
    }

    /// Joins a unit to the open group of its key, or opens a group. `stays` says whether the worker then stays in the
    /// shard. Runs user code.
    fn join<'s>(
        &'s self,
        row: &mut Row,
        key: Key<K>,
        stays: bool,
        run: &mut Run<'_>,
        at: &mut At<'s, G, K, Out>,
    ) -> Result<Ended, Failure> {
        let (cx, bytes) = self.context(row, run);
        let entered = at.enter(&self.shards, &key);
        let group = if self.has_keys() { entered.shard.open.get_mut(&key) } else { entered.last(&key) };
        if let Some(group) = group {
            let unit = self.add(group, row, cx, bytes)?;
            let Joined { full, grown, failure } = self.after_joining(group);
            if full || grown > 0 {
                note_joined(group, grown, full, run);
            }
            if full {
                entered.put_back();
                if let Some(group) = entered.shard.open.remove(&key) {
                    entered.shard.full.insert(group.number, Box::new(group.close(failure)));
                }
            }
            if !stays {
                at.leave();
            }
            return Ok(Self::end_member(&unit, run));
        }
        let mut group = self.begin(run.site.next_group());
        let before = if run.plain { 0 } else { cx.unit.look().bytes() };
        // Cloning the key runs user code. It may panic, so it happens before the unit joins.
        let held_key = key.clone();
        let mut unit = self.add(&mut group, row, cx, bytes)?;
        // From now on, the unit's own weight counts as the group's weight. In a chain, more bytes may still be charged
        // to the unit.
        if !run.plain || unit.is_touched() {
            group.told_bytes = unit.look().next_bytes(None, before);
            unit.set_next_bytes(group.told_bytes);
        }
        let Joined { full, grown, failure } = self.after_joining(&mut group);
        if full {
            at.leave();
            return Ok(self.go_on(Box::new(group.close(failure)), row, &mut unit, run));
        }
        if grown > 0 {
            note_joined(&mut group, grown, false, run);
        }
        let number = group.number;
        *self.held(row) = Some(Held { key: held_key, group: number });
        if self.has_keys() {
            entered.shard.open.insert(key, group);
        } else {
            entered.last = Some((key, group));
        }
        if !stays {
            at.leave();
        }
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

    /// Returns the state of a group that a member has joined. Runs user code.
    ///
    /// The member can no longer leave the group. So a panic here fails the group and not the member, and the group
    /// takes no further members.
    fn after_joining(&self, group: &mut Group<G>) -> Joined {
        let runs_user_code = self.gather.full.is_some() || self.gather.weigh.is_some();
        if !runs_user_code {
            return Joined { full: self.is_full(group), grown: self.grown(group), failure: None };
        }
        match catch_unwind(AssertUnwindSafe(|| (self.is_full(group), self.grown(group)))) {
            Ok((full, grown)) => Joined { full, grown, failure: None },
            Err(panic) => {
                // The failure is permanent, because in a retry the members would join a second time.
                let failure = Failure::panic(&*panic).to_permanent();
                drop_panic(panic);
                Joined { full: true, grown: 0, failure: Some(failure) }
            }
        }
    }

    fn is_full(&self, group: &Group<G>) -> bool {
        group.units >= self.gather.max_units
            || group.joined_bytes >= self.gather.max_bytes
            || self.gather.full.as_ref().is_some_and(|full| full(&group.value))
    }

    /// The weight of a group. Its members weigh `joined` bytes together, and the scheduler was last told that the group
    /// weighs `told` bytes.
    fn weight(&self, group: &G, joined: u64, told: u64) -> u64 {
        match (&self.gather.weigh, &self.gather.add) {
            (Some(weigh), _) => weigh(group).min(MAX_AMOUNT),
            (None, Add::Keep(_)) => joined,
            (None, Add::Fold(_)) => told,
        }
    }

    /// The bytes by which the group has grown since the scheduler was last told of its weight.
    fn grown(&self, group: &mut Group<G>) -> u64 {
        let weight = self.weight(&group.value, group.joined_bytes, group.told_bytes);
        let grown = weight.saturating_sub(group.told_bytes);
        group.told_bytes += grown;
        grown
    }

    fn end_member(unit: &UnitRef<'_>, run: &mut Run<'_>) -> Ended {
        if run.plain && !unit.is_touched() {
            return Ended::JOINED;
        }
        run.settlement.plain = false;
        if unit.look().moves_on() && !unit.look().is_ticketed() { Ended::JOINED } else { Ended::As(Verdict::Join) }
    }

    /// Ends the tickets of members, and drops the remains of their payloads. Both run user code, so this is done when
    /// the worker is in no shard.
    fn end_members(&self, rows: &mut [Row], run: &Run<'_>) {
        let settlement = &*run.settlement;
        let mut exceptions = settlement.exceptions.iter().peekable();
        for (place, row) in (0..).zip(rows) {
            let joins = match exceptions.next_if(|(at, _)| *at == place) {
                Some((_, verdict)) => matches!(verdict, Verdict::Join | Verdict::Rest { .. }),
                None => settlement.to == GATHERED,
            };
            if !joins {
                continue;
            }
            if !run.plain {
                // SAFETY: the code below uses `row` for columns of payloads only, as long as this handle is used.
                let unit = unsafe { UnitRef::new(run.site.records(), row) };
                self.end_ticket(row, &unit);
            }
            self.drop_input(row);
        }
    }

    fn drop_input(&self, row: &mut Row) {
        let input = self.front.cell(row).take();
        contain(|| drop(input));
    }

    /// Tells the unit's ticket, if there is one, that the unit has joined a group.
    fn end_ticket(&self, row: &mut Row, unit: &UnitRef<'_>) {
        if unit.look().is_ticketed() {
            contain(|| self.front.tickets.unfinished(row, Unfinished::Gathered));
        }
    }
}

/// Writes a note that members have joined the group, or extends the last note if it is about the same group.
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
    /// Ends the run of a holder: its group goes on in its place.
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

    /// Sends the group to the exit, with this unit's row.
    fn go_on(&self, mut group: Box<Closed<G, Out>>, row: &mut Row, unit: &mut UnitRef<'_>, run: &mut Run<'_>) -> Ended {
        if let Some(failure) = group.failure.take() {
            return Ended::As(self.fail_group(&failure, group, row, run));
        }
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
        // If the unit does not hold the group open, the unit never rested: the group became full with its first member.
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

    /// Finishes a group and maps it to the value that goes on, unless that has already been done. Runs user code.
    fn close(&self, group: &mut Closed<G, Out>) {
        let Value::Joined(joined) = &mut *group.value else { return };
        if let Some(finish) = &self.gather.finish {
            finish(joined);
        }
        group.told_bytes = self.weight(joined, group.joined_bytes, group.told_bytes);
        self.map(&mut group.value);
    }

    /// Maps a group that has not been mapped yet. Runs user code.
    fn map(&self, value: &mut Value<G, Out>) {
        *value = match std::mem::replace(value, Value::Lost) {
            Value::Joined(joined) => Value::Mapped((self.gather.map)(joined)),
            other => other,
        };
    }

    /// The input for the dead letter of a group.
    fn input_of(&self, group: Closed<G, Out>) -> Option<Box<dyn Any + Send>> {
        let mut value = group.value;
        contain(|| self.map(&mut value));
        match value.into_inner() {
            Value::Mapped(out) => Some(Box::new(out)),
            Value::Joined(_) | Value::Lost => None,
        }
    }

    /// Ends the run of a unit whose group could not go on. The group stays with the unit, or becomes the input of the
    /// unit's dead letter.
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

    /// Keeps the group of a unit that will run here again or is left behind.
    fn keep(&self, group: Box<Closed<G, Out>>, row: &mut Row) {
        let number = group.number;
        let key = match self.held(row) {
            Some(held) => held.key.clone(),
            // The group was full with its first member, so no unit finds it by a key.
            None => {
                self.drop_input(row);
                let key = Key { hash: 0, of: KeyKind::All };
                *self.held(row) = Some(Held { key: key.clone(), group: number });
                key
            }
        };
        self.shards.of(&key).full.insert(number, group);
    }
}
