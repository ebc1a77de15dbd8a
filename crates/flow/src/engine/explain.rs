//! Explanation: where one unit is and what it waits for, and which units hold a resource.
//!
//! No index leads from a number to a unit, because an index would cost time for every unit and serve only rare
//! searches. A search therefore walks over the units in flight (see `units/walk`), in steps of [`STEP`] units under the
//! mutex. Between two steps other threads can take the mutex, and a unit may move. If the unit moves to a list that the
//! walk has not reached yet, the walk finds it there. If the walk misses the unit, a second walk follows.

use super::claims::{Grant, GrantList, InstanceId, NO_STAGE, Want};
use super::crew::notes::BatchNote;
use super::stages::stage::StageState;
use super::state::State;
use super::units::column::Row;
#[cfg(feature = "trace")]
use super::units::record::Record;
use super::units::walk::{See, Sight, Walk, WalkedTo};
use crate::explain::{Doing, Held, LineState, NoLine, UnitPlace, UnitState, WaitsFor};
use crate::resource::Supply;

/// The number of units whose payloads a step passes to user code.
const PAYLOADS: usize = 1_024;

/// The number of units that a step inspects. A step takes a tenth of a millisecond, less than the time for which a
/// waiter spins for the mutex.
const STEP: usize = 4_096;

/// A unit that was found, and the line in which it waits.
pub(super) struct Found {
    pub(super) unit: UnitState,
    pub(super) stands: Option<Stands>,
}

/// The line in which a unit waits. The other waiters and the holders are looked up later, in further steps.
pub(super) struct Stands {
    pub(super) resource: u16,
    pub(super) key: Option<String>,
    pub(super) amount: u64,
    pub(super) ahead: u64,
    /// The stage itself is in line, for the permit of its next batch.
    pub(super) for_batch: bool,
}

/// The search for a unit.
pub(super) struct UnitSearch {
    number: u64,
    at: WalkedTo,
    /// The lowest and the highest unit number that the search has seen.
    pub(super) seen: Option<(u64, u64)>,
}

/// The search for the holders of an instance.
pub(super) struct HolderSearch {
    at: WalkedTo,
    most: usize,
    pub(super) holders: Vec<UnitPlace>,
    pub(super) in_all: u64,
    /// The sum of the amounts that the holders hold.
    pub(super) held: u64,
}

/// The search for units by their payloads.
pub(super) struct PayloadSearch {
    at: WalkedTo,
    most: usize,
    pub(super) found: Vec<UnitPlace>,
    pub(super) in_all: u64,
}

/// The result of a step of a search.
pub(super) enum Stepped<T> {
    Found(T),
    /// The search needs another step.
    GoesOn,
    Over,
}

impl UnitSearch {
    pub(super) fn new(number: u64) -> Self {
        UnitSearch { number, at: WalkedTo::default(), seen: None }
    }

    fn see(&mut self, id: u64) -> bool {
        let (low, high) = self.seen.unwrap_or((id, id));
        self.seen = Some((low.min(id), high.max(id)));
        id == self.number
    }
}

impl HolderSearch {
    pub(super) fn new(most: usize) -> Self {
        HolderSearch { at: WalkedTo::default(), most, holders: Vec::new(), in_all: 0, held: 0 }
    }

    /// Adds an amount that a holder holds.
    fn count(&mut self, amount: u64) {
        self.held = self.held.saturating_add(amount);
    }

    /// Adds a holder. Builds the holder's description only if it will be shown.
    fn add(&mut self, place: impl FnOnce() -> UnitPlace) {
        self.in_all += 1;
        if self.holders.len() < self.most {
            self.holders.push(place());
        }
    }
}

impl PayloadSearch {
    pub(super) fn new(most: usize) -> Self {
        PayloadSearch { at: WalkedTo::default(), most, found: Vec::new(), in_all: 0 }
    }
}

// ---- a unit -------------------------------------------------------------------------------------------

impl State {
    /// Passes to `see` each unit that no worker has in hand, in the order of the units' path through the flow.
    fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        // A unit moves from a timer or the line for bytes to a queue, from a queue to a line, and from a line to a
        // granted batch. So a walk in this order finds most units that move during the walk. Units that have done their
        // own work and only wait for other units come last.
        self.timers.walk(walk, see);
        self.grants.walk(walk, see);
        self.stages.walk(walk, see);
        self.units.walk(walk, see);
    }

    /// One step of the search for a unit.
    pub(super) fn search_unit(&self, search: &mut UnitSearch, now: u64) -> Stepped<Found> {
        let mut found = None;
        let mut walk = Walk::step(search.at, STEP);
        self.walk(&mut walk, &mut |row, stage, sight| {
            if search.see(self.units.stamp(row).id()) {
                found = Some(self.found(row, stage, &sight, now));
            }
        });
        if let Some(found) = found {
            return Stepped::Found(found);
        }
        if let Some(at) = walk.end() {
            search.at = at;
            return Stepped::GoesOn;
        }
        for batch in self.crew.notes().batches() {
            for unit in batch.units() {
                search.see(unit.id);
            }
            let Some(unit) = batch.unit(search.number) else { continue };
            let stage = self.stages.at(batch.stage());
            // The amounts that the batch holds are divided among its units.
            let of_batch = batch.held().iter().map(|grant| share(grant, batch.len()));
            let unit = UnitState {
                unit: unit.id,
                stage: Some(stage.name().to_owned()),
                doing: Doing::Running,
                for_ns: Some(now.saturating_sub(batch.since_ns())),
                age_ns: now.saturating_sub(unit.admitted_ns),
                waits_for: None,
                holds: self.held(of_batch.chain(unit.held.iter().copied())),
                attempts: unit.attempts,
                bytes: unit.bytes,
                parent: unit.parent,
            };
            return Stepped::Found(Found { unit, stands: None });
        }
        Stepped::Over
    }

    /// One step of the search for units by their payloads. `is_meant` selects units by their rows and stages.
    pub(super) fn search_payloads(
        &self,
        search: &mut PayloadSearch,
        now: u64,
        is_meant: &mut dyn FnMut(&Row, u16) -> bool,
    ) -> Stepped<()> {
        let mut walk = Walk::step(search.at, PAYLOADS);
        self.walk(&mut walk, &mut |row, stage, sight| {
            let id = self.units.stamp(row).id();
            // A unit that has moved may be seen again, so units that are already in `found` are skipped.
            if stage == NO_STAGE || search.found.iter().any(|place| place.unit == id) || !is_meant(row, stage) {
                return;
            }
            search.in_all += 1;
            if search.found.len() < search.most {
                search.found.push(UnitPlace {
                    unit: id,
                    stage: self.name_of(stage),
                    doing: doing(&sight),
                    amount: 0,
                    for_ns: since(&sight).map_or(0, |since_ns| now.saturating_sub(since_ns)),
                });
            }
        });
        match walk.end() {
            Some(at) => {
                search.at = at;
                Stepped::GoesOn
            }
            None => Stepped::Over,
        }
    }

    /// One step of a walk over the units that wait to run in a stage. `see` gets the number, the stage and the record
    /// of each unit.
    #[cfg(feature = "trace")]
    pub(super) fn search_waiting(&self, at: &mut WalkedTo, see: &mut dyn FnMut(u64, u16, &Record)) -> Stepped<()> {
        let mut walk = Walk::step(*at, STEP);
        self.walk(&mut walk, &mut |row, stage, sight| {
            if stage != NO_STAGE && !matches!(sight, Sight::ForChildren { .. } | Sight::ForMembers) {
                see(self.units.stamp(row).id(), stage, self.units.look(row));
            }
        });
        match walk.end() {
            Some(next) => {
                *at = next;
                Stepped::GoesOn
            }
            None => Stepped::Over,
        }
    }

    /// The number of units that workers have in hand.
    pub(super) fn in_hand(&self) -> u64 {
        self.stages.iter().map(StageState::in_hand).sum()
    }

    /// The number that the next unit will get, and the number of units in hand that have no note. The second number
    /// includes the children that runs in progress may produce, because these already have numbers.
    pub(super) fn numbers(&self) -> (u64, u64) {
        let in_hand = self.in_hand();
        let noted: u64 = self.crew.notes().batches().map(BatchNote::len).sum();
        (self.next_id(), in_hand.saturating_sub(noted) + self.intake.budget().reserved_units())
    }

    fn found(&self, row: &Row, stage: u16, sight: &Sight<'_>, now: u64) -> Found {
        let (stamp, record) = (self.units.stamp(row), self.units.look(row));
        let of_batch: GrantList = match sight {
            Sight::Granted { permits, held, units, .. } => {
                permits.iter().chain(*held).map(|grant| share(grant, *units as u64)).collect()
            }
            _ => GrantList::new(),
        };
        let (waits_for, stands) = self.waits_for(stage, sight, now);
        let unit = UnitState {
            unit: stamp.id(),
            stage: self.name_of(stage),
            doing: doing(sight),
            for_ns: since(sight).map(|since_ns| now.saturating_sub(since_ns)),
            age_ns: now.saturating_sub(stamp.admitted_ns()),
            waits_for,
            holds: self.held(of_batch.into_iter().chain(record.held().iter().copied())),
            attempts: record.attempts(),
            bytes: record.bytes(),
            parent: record.parent().map(|parent| parent.id),
        };
        Found { unit, stands }
    }

    fn name_of(&self, stage: u16) -> Option<String> {
        (stage != NO_STAGE).then(|| self.stages.at(stage).name().to_owned())
    }

    fn waits_for(&self, stage: u16, sight: &Sight<'_>, now: u64) -> (Option<WaitsFor>, Option<Stands>) {
        let ahead = |ahead: usize| ahead as u64;
        let waits_for = match *sight {
            Sight::Queued { run, place, .. } => {
                let state = self.stages.at(stage);
                let before = state.ahead_of(run, place);
                let lacks = |permit: &&Want| !self.grants.is_free(permit.instance, permit.amount, None, now);
                if let Some(permit) = state.permits().iter().filter(|_| state.awaits_permit()).find(lacks) {
                    let (resource, amount) = (self.grants.resource_of(permit.instance), permit.amount);
                    let stands = Stands { resource, key: None, amount, ahead: ahead(before), for_batch: true };
                    return (None, Some(stands));
                }
                let resource = state.queues_for();
                let holds_up = |want: &&Want| Some(self.grants.resource_of(want.instance).into()) == resource;
                if let Some(want) = state.wants().iter().find(holds_up) {
                    let (resource, amount) = (self.grants.resource_of(want.instance), want.amount);
                    // The unit will join the end of the resource's line, so all waiters there are ahead of it.
                    let ahead = self.grants.sight_of(want.instance, 0).waiters + ahead(before);
                    return (None, Some(Stands { resource, key: None, amount, ahead, for_batch: false }));
                }
                self.worker(stage, Some(ahead(before)))
            }
            Sight::Granted { .. } => self.worker(stage, None),
            Sight::InLine { instance, amount, ahead: before, .. } => {
                let resource = self.grants.resource_of(instance);
                let key = self.grants.key_of(instance).map(str::to_owned);
                return (None, Some(Stands { resource, key, amount, ahead: ahead(before), for_batch: false }));
            }
            Sight::ForKeys { resource, ahead: before, .. } => WaitsFor::Key {
                resource: self.resource_name(resource),
                ahead: ahead(before),
                keys: self.grants.some_keys(resource, 0).1,
            },
            Sight::ForMemory { bytes, ahead: before, .. } => WaitsFor::Memory { bytes, ahead: ahead(before) },
            Sight::ForRoom { ahead: before, .. } => WaitsFor::Room { ahead: ahead(before) },
            Sight::Pausing { until_ns } => WaitsFor::Time { left_ns: until_ns.saturating_sub(now) },
            Sight::ForChildren { children } => WaitsFor::Children { children },
            Sight::ForMembers => WaitsFor::Members,
        };
        (Some(waits_for), None)
    }

    fn worker(&self, stage: u16, ahead: Option<u64>) -> WaitsFor {
        let state = self.stages.at(stage);
        let shared = if state.is_blocking() { usize::MAX } else { self.crew.shared_workers() + state.workers().floor };
        let ceiling = state.workers().ceiling.min(shared) as u64;
        WaitsFor::Worker { ahead, busy: state.busy() as u64, ceiling }
    }

    fn resource_name(&self, resource: u16) -> String {
        self.grants.specs().nth(resource.into()).map(|spec| spec.name.clone()).unwrap_or_default()
    }

    fn held(&self, grants: impl Iterator<Item = Grant>) -> Vec<Held> {
        let held = |grant: Grant| Held {
            resource: self.resource_name(self.grants.resource_of(grant.instance)),
            key: self.grants.key_of(grant.instance).map(str::to_owned),
            amount: grant.amount,
        };
        grants.map(held).collect()
    }
}

/// One unit's share of a grant that is held by a batch of `units` units.
fn share(grant: &Grant, units: u64) -> Grant {
    Grant { amount: grant.amount.div_ceil(units.max(1)), ..*grant }
}

fn doing(sight: &Sight<'_>) -> Doing {
    match sight {
        Sight::Granted { .. } => Doing::Granted,
        Sight::Pausing { .. } => Doing::Pausing,
        Sight::ForChildren { .. } => Doing::AwaitingChildren,
        Sight::ForMembers => Doing::AwaitingMembers,
        _ => Doing::Waiting,
    }
}

/// The time at which the unit joined its list, if the list records that time.
fn since(sight: &Sight<'_>) -> Option<u64> {
    match *sight {
        Sight::Queued { since_ns, .. }
        | Sight::Granted { since_ns, .. }
        | Sight::InLine { since_ns, .. }
        | Sight::ForKeys { since_ns, .. }
        | Sight::ForMemory { since_ns, .. }
        | Sight::ForRoom { since_ns, .. } => Some(since_ns),
        Sight::Pausing { .. } | Sight::ForChildren { .. } | Sight::ForMembers => None,
    }
}

// ---- a line -------------------------------------------------------------------------------------------

impl State {
    /// Finds a resource by its name, and checks that the key exists if the resource has keys. An error lists up to
    /// `some` keys.
    pub(super) fn find_line(&self, resource: &str, key: Option<&str>, some: usize) -> Result<u16, NoLine> {
        let Some(index) = self.grants.resource_named(resource) else {
            let known: Vec<_> = self.grants.specs().map(|spec| format!("`{}`", spec.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(NoLine::UnknownResource { resource: resource.to_owned(), known });
        };
        let keyed = self.grants.specs().nth(index.into()).is_some_and(|spec| spec.keyed);
        if !keyed && key.is_some() {
            return Err(NoLine::NotKeyed { resource: resource.to_owned() });
        }
        if keyed && key.is_none_or(|key| self.grants.find_instance(index, Some(key)).is_none()) {
            let (some, keys) = self.grants.some_keys(index, some);
            return Err(NoLine::NoKey { resource: resource.to_owned(), key: key.map(str::to_owned), keys, some });
        }
        Ok(index)
    }

    /// The line of a resource or of one of its keys, without the holders; `None` if the key no longer has users.
    pub(super) fn line(&self, resource: u16, key: Option<&str>, most: usize, now: u64) -> Option<LineState> {
        let sight = self.grants.sight_of(self.grants.find_instance(resource, key)?, most);
        let spec = self.grants.specs().nth(resource.into())?;
        let (capacity, rate_per_s) = match spec.supply {
            Supply::Tokens(tokens) => (tokens, None),
            Supply::Rate(rate) => (rate.burst, Some(rate.per_second)),
        };
        let place = |(row, stage, amount, since_ns): (&Row, u16, u64, u64)| UnitPlace {
            unit: self.units.stamp(row).id(),
            stage: self.name_of(stage),
            doing: Doing::Waiting,
            amount,
            for_ns: now.saturating_sub(since_ns),
        };
        let behind = self.stages.iter().filter(|stage| key.is_none() && stage.queues_for() == Some(resource.into()));
        Some(LineState {
            resource: spec.name.clone(),
            key: key.map(str::to_owned),
            kind: spec.kind().into(),
            capacity,
            rate_per_s,
            ready_in_ns: sight.ready_ns.map(|at| at.saturating_sub(now)),
            in_use: sight.in_use,
            holders: Vec::new(),
            holders_in_all: 0,
            in_use_unnamed: 0,
            waiters: sight.waiters + behind.map(StageState::in_queue).sum::<u64>(),
            first_in_line: sight.first.into_iter().map(place).collect(),
            oldest_ns: sight.oldest_ns.map(|since_ns| now.saturating_sub(since_ns)),
        })
    }

    /// One step of the search for the units that hold an instance.
    pub(super) fn search_holders(
        &self,
        search: &mut HolderSearch,
        resource: u16,
        key: Option<&str>,
        now: u64,
    ) -> Stepped<()> {
        let Some(instance) = self.grants.find_instance(resource, key) else { return Stepped::Over };
        if search.at == WalkedTo::default() {
            self.holders_in_hand(search, instance, now);
        }
        let in_use = self.grants.sight_of(instance, 0).in_use;
        if search.held >= in_use {
            return Stepped::Over;
        }
        let mut walk = Walk::step(search.at, STEP);
        self.walk(&mut walk, &mut |row, stage, sight| {
            let of_batch = match sight {
                Sight::Granted { permits, held, .. } => amount_of(permits, instance) + amount_of(held, instance),
                _ => 0,
            };
            let own = amount_of(self.units.look(row).held(), instance);
            if own + of_batch == 0 {
                return;
            }
            let (of_batch_once, units) = match sight {
                Sight::Granted { place, units, .. } => (if place == 0 { of_batch } else { 0 }, units as u64),
                _ => (0, 1),
            };
            search.count(own + of_batch_once);
            search.add(|| UnitPlace {
                unit: self.units.stamp(row).id(),
                stage: self.name_of(stage),
                doing: doing(&sight),
                amount: own + of_batch.div_ceil(units),
                for_ns: since(&sight).map_or(0, |since_ns| now.saturating_sub(since_ns)),
            });
        });
        match walk.end() {
            Some(at) => {
                search.at = at;
                Stepped::GoesOn
            }
            None => Stepped::Over,
        }
    }

    fn holders_in_hand(&self, search: &mut HolderSearch, instance: InstanceId, now: u64) {
        for batch in self.crew.notes().batches() {
            let of_batch = amount_of(batch.held(), instance);
            search.count(of_batch);
            let stage = self.stages.at(batch.stage());
            for unit in batch.units() {
                let own = amount_of(&unit.held, instance);
                search.count(own);
                if own + of_batch > 0 {
                    search.add(|| UnitPlace {
                        unit: unit.id,
                        stage: Some(stage.name().to_owned()),
                        doing: Doing::Running,
                        amount: own + of_batch.div_ceil(batch.len().max(1)),
                        for_ns: now.saturating_sub(batch.since_ns()),
                    });
                }
            }
        }
    }
}

fn amount_of(grants: &[Grant], instance: InstanceId) -> u64 {
    grants.iter().filter(|grant| grant.instance == instance).map(|grant| grant.amount).sum()
}
