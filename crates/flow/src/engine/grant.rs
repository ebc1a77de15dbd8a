//! Grants: a unit gets all it needs at once, before a worker is spent on it.
//!
//! # How a queue is granted
//! `pump` looks at a stage's queue from its front as long as the stage has seats (its workers could run
//! more). A unit whose needs are all free takes them and joins a granted batch. A unit that lacks something
//! *parks* in the first-come-first-served line of the first thing it lacks, holding nothing; the queue goes
//! on with the next unit. So a busy key holds up only the units that need it.
//!
//! When something is given back, `serve` wakes the head of that line, which tries for *everything* again:
//! it is granted, or it parks at the end of the line of what it still lacks, and the next in line is tried.
//! A newcomer never takes what others wait for in line.
//!
//! # Why nobody waits for ever
//! Units with several needs could miss each other's moments: `a` is free when `b` is not, and the other way
//! round. A unit that was woken [`BOUNCES_MOST`] times in vain acquires its needs *in order* instead: one
//! after the other along the flow's resource order (a topological order of "holds a, asks for b", which the
//! build proved to exist), keeping what it has, and waiting its turn in each line. Hence a unit waits for at
//! most `BOUNCES_MOST + 1 + needs` passes through lines that are first come, first served.
//!
//! # Why nothing deadlocks
//! Whoever holds one thing and waits for another waits for something later in the resource order: a unit
//! holds things across stages only along that order (checked at build time), and inside one grant it holds
//! nothing while it waits, or, in order, only earlier things. So along any chain of "waits for a holder of"
//! the order rises, and the last holder is not waiting for a resource. It is running, waiting for a worker
//! or for a moment, and will give back what it holds. Bytes come last in the order and have their own rule
//! (`serve_memory`).

use super::column::Row;
use super::state::{GrantedBatch, Instance, State, TimerAction, Waiter};
use super::unit::{Grant, Grants, InstanceId, NO_STAGE, Wants};
use crate::resource::Supply;

/// How often a unit is woken in vain before it acquires its needs in order.
pub(crate) const BOUNCES_MOST: u8 = 8;

/// Why a unit could not be granted.
enum Lack {
    /// One of its needs.
    Need(InstanceId),
    /// A permit for its stage's next batch.
    Permit(InstanceId),
    /// A key for one of its needs: there are too many keys of this resource.
    Key(u16),
}

impl State {
    /// Grants units from the front of a stage's queue while there are seats.
    pub(crate) fn pump(&mut self, stage: u16, now: u64) {
        let s = usize::from(stage);
        if self.stages[s].wants.is_empty() && !self.stages[s].dynamic && self.stages[s].permits.is_empty() {
            return self.pump_free(stage, now);
        }
        while !self.stages[s].waiting.is_empty() && self.stages[s].has_seat() {
            if self.opens_batch(stage) {
                if self.stages[s].awaits_permit {
                    return;
                }
                if let Some(instance) = self.lacking_permit(stage, None, now) {
                    return self.await_permit(stage, instance, now);
                }
            }
            if let Some(row) = self.pop_waiting(stage) {
                self.try_unit(row, stage, None, now);
            }
        }
    }

    /// The same for a stage that needs nothing.
    fn pump_free(&mut self, stage: u16, now: u64) {
        while self.stage(stage).has_seat() && !self.stage(stage).waiting.is_empty() {
            let batch = self.open_batch(stage, now, Grants::new());
            let state = &mut self.stages[usize::from(stage)];
            let target = state.batch_target();
            let seats = state.ceiling * target - state.granted - state.running;
            let batch = &mut state.batches[batch];
            let most = seats.min(target.saturating_sub(batch.rows.len()).max(1));
            let (taken, queued_ns) = state.waiting.take_run(&mut batch.rows, most, &mut self.spares);
            batch.note_arrival(queued_ns, taken as u32);
            state.granted += taken;
        }
    }

    /// Takes the first unit of the stage's queue.
    fn pop_waiting(&mut self, stage: u16) -> Option<Row> {
        let (mut row, queued_ns) = self.stages[usize::from(stage)].waiting.pop_front(&mut self.spares)?;
        self.units.unit(&mut row).queued_ns = queued_ns;
        Some(row)
    }

    /// Puts it back.
    fn unpop_waiting(&mut self, mut row: Row, stage: u16) {
        let queued_ns = self.units.unit(&mut row).queued_ns;
        self.stages[usize::from(stage)].waiting.push_front(queued_ns, row, &mut self.spares);
    }

    /// Grants the unit, or parks it. `woken_at`: it was just taken out of that instance's line.
    fn try_unit(&mut self, mut row: Row, stage: u16, woken_at: Option<InstanceId>, now: u64) {
        if self.units.unit(&mut row).needs.as_ref().is_some_and(|needs| needs.in_order) {
            return self.acquire_in_order(row, stage, now);
        }
        match self.all_at_once(&mut row, stage, woken_at, now) {
            Ok(()) => self.join_batch(row, stage, now),
            Err(lack) => {
                if woken_at.is_some() && !matches!(lack, Lack::Key(_)) {
                    let needs = self.units.unit(&mut row).needs();
                    needs.bounces += 1;
                    if needs.bounces > BOUNCES_MOST {
                        self.begin_in_order(&mut row, stage);
                        return self.acquire_in_order(row, stage, now);
                    }
                }
                match lack {
                    Lack::Need(instance) => self.park(row, stage, instance, now),
                    Lack::Key(resource) => self.park_for_key(row, stage, resource, now),
                    Lack::Permit(instance) => {
                        self.unpop_waiting(row, stage);
                        if !self.stage(stage).awaits_permit {
                            self.await_permit(stage, instance, now);
                        }
                    }
                }
            }
        }
    }

    /// Takes all the unit needs, and a permit if it opens a batch; or nothing.
    fn all_at_once(&mut self, row: &mut Row, stage: u16, woken_at: Option<InstanceId>, now: u64) -> Result<(), Lack> {
        let wants = self.wants(row, stage, now)?;
        for want in &wants {
            if !self.is_free(want.instance, want.amount, woken_at, now) {
                return Err(Lack::Need(want.instance));
            }
        }
        let opens = self.opens_batch(stage);
        if opens && let Some(instance) = self.lacking_permit(stage, woken_at, now) {
            return Err(Lack::Permit(instance));
        }
        let mut held = Grants::new();
        for want in &wants {
            held.extend(self.take(want.grant(stage), now));
        }
        if !wants.is_empty() {
            let needs = self.units.unit(row).needs();
            needs.held.append(&mut held);
            needs.wants.clear();
            needs.bounces = 0;
        }
        if opens {
            let permits = self.take_permits(stage, now);
            self.open_batch(stage, now, permits);
        }
        Ok(())
    }

    /// What the unit needs in this stage, with keys looked up.
    fn wants(&mut self, row: &mut Row, stage: u16, now: u64) -> Result<Wants, Lack> {
        let s = usize::from(stage);
        if !self.stages[s].dynamic {
            return Ok(self.stages[s].wants.clone());
        }
        let units = self.units.clone();
        let needs = units.unit(row).needs();
        if needs.wants.is_empty() {
            let mut wants = self.stages[s].wants.clone();
            for ask in &needs.asks {
                let instance = match &ask.key {
                    None => u32::from(ask.resource),
                    Some(key) => match self.instance_of(ask.resource, key, now) {
                        Some(instance) => instance,
                        None => {
                            for want in &wants {
                                self.forget(want.instance, now);
                            }
                            return Err(Lack::Key(ask.resource));
                        }
                    },
                };
                self.use_key(instance);
                match wants.iter_mut().find(|want| want.instance == instance) {
                    Some(want) => {
                        want.amount += ask.amount;
                        if want.until == NO_STAGE {
                            want.until = ask.until;
                        }
                        self.forget(instance, now);
                    }
                    None => wants.push(ask.want(instance)),
                }
            }
            needs.wants = wants;
        }
        Ok(needs.wants.clone())
    }

    // ---- in order -------------------------------------------------------------------------------------

    fn begin_in_order(&mut self, row: &mut Row, stage: u16) {
        let permits = self.stage(stage).permits.clone();
        let constant = self.stage(stage).wants.clone();
        let units = self.units.clone();
        let needs = units.unit(row).needs();
        if needs.wants.is_empty() {
            needs.wants = constant;
        }
        needs.wants.extend(permits);
        needs.wants.sort_by_key(|want| {
            let resource = self.instances[want.instance as usize].resource;
            (self.resources[usize::from(resource)].rank, want.instance)
        });
        needs.in_order = true;
        needs.next_want = 0;
    }

    /// Acquires the unit's remaining needs one after the other, and parks at the first that is not free.
    fn acquire_in_order(&mut self, mut row: Row, stage: u16, now: u64) {
        let units = self.units.clone();
        loop {
            let needs = units.unit(&mut row).needs();
            let Some(&want) = needs.wants.get(usize::from(needs.next_want)) else { break };
            if !self.is_free(want.instance, want.amount, None, now) {
                return self.park(row, stage, want.instance, now);
            }
            self.acquire_next(&mut row, stage, now);
        }
        let needs = units.unit(&mut row).needs();
        needs.in_order = false;
        needs.bounces = 0;
        needs.wants.clear();
        let permits: Grants =
            needs.held.iter().filter(|g| g.until == NO_STAGE && g.from == NO_STAGE).copied().collect();
        if !permits.is_empty() {
            needs.held.retain(|g| !(g.until == NO_STAGE && g.from == NO_STAGE));
            self.new_batch(stage, now, permits);
        } else if self.opens_batch(stage) {
            self.open_batch(stage, now, Grants::new());
        }
        self.join_batch(row, stage, now);
    }

    fn acquire_next(&mut self, row: &mut Row, stage: u16, now: u64) {
        let units = self.units.clone();
        let needs = units.unit(row).needs();
        let want = needs.wants[usize::from(needs.next_want)];
        needs.next_want += 1;
        // A permit is marked by coming from no stage until its batch is made.
        let from = if want.for_batch { NO_STAGE } else { stage };
        needs.held.extend(self.take(want.grant(from), now));
    }

    // ---- batches --------------------------------------------------------------------------------------

    /// Whether the next unit granted in this stage must take the permits of a new batch.
    fn opens_batch(&self, stage: u16) -> bool {
        let state = &self.stages[usize::from(stage)];
        !state.permits.is_empty() && state.batches.back().is_none_or(|batch| batch.rows.len() >= state.batch_target())
    }

    /// The batch to join: the last one if it has room, or a new one.
    fn open_batch(&mut self, stage: u16, now: u64, permits: Grants) -> usize {
        let state = &self.stages[usize::from(stage)];
        let target = state.batch_target();
        match state.batches.back() {
            Some(batch) if batch.rows.len() < target && permits.is_empty() => state.batches.len() - 1,
            _ => self.new_batch(stage, now, permits),
        }
    }

    fn new_batch(&mut self, stage: u16, now: u64, permits: Grants) -> usize {
        let rows = self.spares.take();
        let state = &mut self.stages[usize::from(stage)];
        state.batches.push_back(GrantedBatch { rows, arrivals: Default::default(), permits, opened_ns: now });
        let wait = state.batch.wait;
        let last = state.batches.len() - 1;
        if !wait.is_zero() {
            self.set_timer(now.saturating_add(wait.as_nanos() as u64), TimerAction::Batch);
        }
        last
    }

    fn join_batch(&mut self, mut row: Row, stage: u16, now: u64) {
        let batch = self.open_batch(stage, now, Grants::new());
        let queued_ns = self.units.unit(&mut row).queued_ns;
        let state = self.stage(stage);
        state.batches[batch].note_arrival(queued_ns, 1);
        state.batches[batch].rows.push_back(row);
        state.granted += 1;
    }

    fn lacking_permit(&mut self, stage: u16, woken_at: Option<InstanceId>, now: u64) -> Option<InstanceId> {
        let permits = self.stages[usize::from(stage)].permits.clone();
        permits.iter().find(|p| !self.is_free(p.instance, p.amount, woken_at, now)).map(|p| p.instance)
    }

    fn take_permits(&mut self, stage: u16, now: u64) -> Grants {
        let permits = self.stages[usize::from(stage)].permits.clone();
        permits.iter().filter_map(|permit| self.take(permit.grant(stage), now)).collect()
    }

    fn await_permit(&mut self, stage: u16, instance: InstanceId, now: u64) {
        self.stage(stage).awaits_permit = true;
        self.instances[instance as usize].waiters.push_back(Waiter::Stage(stage));
        self.set_rate_timer(instance, now);
    }

    // ---- lines ----------------------------------------------------------------------------------------

    /// Wakes whoever waits in the instance's line and can now be served.
    pub(crate) fn serve(&mut self, instance: InstanceId, now: u64) {
        let i = instance as usize;
        while let Some(amount) = self.head_amount(instance) {
            if !self.has(instance, amount, now) {
                return self.set_rate_timer(instance, now);
            }
            match self.instances[i].waiters.pop_front() {
                Some(Waiter::Unit { mut row, stage }) => {
                    self.unpark(&mut row, stage, self.instances[i].resource, now);
                    if self.units.unit(&mut row).needs().in_order {
                        self.acquire_next(&mut row, stage, now);
                        self.acquire_in_order(row, stage, now);
                    } else {
                        self.try_unit(row, stage, Some(instance), now);
                    }
                }
                Some(Waiter::Stage(stage)) => self.serve_stage(stage, instance, now),
                None => return,
            }
        }
        self.forget_if_unused(instance, now);
    }

    /// How much the head of the instance's line wants of it.
    fn head_amount(&mut self, instance: InstanceId) -> Option<u64> {
        let wants = match self.instances[instance as usize].waiters.front_mut()? {
            Waiter::Stage(stage) => &self.stages[usize::from(*stage)].permits,
            Waiter::Unit { row, stage } => {
                let needs = self.units.unit(row).needs();
                if needs.wants.is_empty() { &self.stages[usize::from(*stage)].wants } else { &needs.wants }
            }
        };
        let want = wants.iter().find(|want| want.instance == instance);
        Some(want.map_or(0, |want| want.amount))
    }

    /// A permit has come free for a stage: its first unit may open a batch.
    fn serve_stage(&mut self, stage: u16, instance: InstanceId, now: u64) {
        self.stage(stage).awaits_permit = false;
        while self.opens_batch(stage) && self.stage(stage).has_seat() {
            let Some(mut row) = self.pop_waiting(stage) else { break };
            // A unit that fails here for another permit has been passed over once more.
            if let Some(other) = self.lacking_permit(stage, Some(instance), now) {
                let needs = self.units.unit(&mut row).needs();
                needs.bounces += 1;
                if needs.bounces > BOUNCES_MOST && self.wants(&mut row, stage, now).is_ok() {
                    self.begin_in_order(&mut row, stage);
                    self.acquire_in_order(row, stage, now);
                } else {
                    self.unpop_waiting(row, stage);
                    self.await_permit(stage, other, now);
                }
                return;
            }
            self.try_unit(row, stage, Some(instance), now);
            if self.stage(stage).awaits_permit {
                return;
            }
        }
        self.mark_pump(stage);
    }

    fn park(&mut self, mut row: Row, stage: u16, instance: InstanceId, now: u64) {
        self.units.unit(&mut row).needs().parked_ns = now;
        let resource = self.instances[instance as usize].resource;
        self.stage(stage).parked[usize::from(resource)] += 1;
        self.instances[instance as usize].waiters.push_back(Waiter::Unit { row, stage });
        self.set_rate_timer(instance, now);
    }

    fn park_for_key(&mut self, mut row: Row, stage: u16, resource: u16, now: u64) {
        self.units.unit(&mut row).needs().parked_ns = now;
        self.stage(stage).parked[usize::from(resource)] += 1;
        self.resources[usize::from(resource)].key_waiters.push_back((row, stage));
        self.keys_freed.push(resource);
    }

    fn unpark(&mut self, row: &mut Row, stage: u16, resource: u16, now: u64) {
        let waited = now.saturating_sub(self.units.unit(row).needs().parked_ns);
        let state = self.stage(stage);
        state.parked[usize::from(resource)] -= 1;
        state.stats.waited_for_resource(resource, waited);
    }

    // ---- instances ------------------------------------------------------------------------------------

    /// Whether a newcomer may have it: there is enough, and nobody waits for it in line.
    fn is_free(&self, instance: InstanceId, amount: u64, woken_at: Option<InstanceId>, now: u64) -> bool {
        let line = &self.instances[instance as usize].waiters;
        (line.is_empty() || woken_at == Some(instance)) && self.has(instance, amount, now)
    }

    /// Whether there is enough of it now. More than the whole capacity may be had when nothing is in use.
    fn has(&self, instance: InstanceId, amount: u64, now: u64) -> bool {
        let state = &self.instances[instance as usize];
        match self.resources[usize::from(state.resource)].spec.supply {
            Supply::Tokens(capacity) => {
                capacity > 0 && (state.in_use == 0 || state.in_use.saturating_add(amount) <= capacity)
            }
            Supply::Rate(_) => self.rate_ready_at(instance, amount) <= now,
        }
    }

    /// When a rate will have `amount` tokens.
    fn rate_ready_at(&self, instance: InstanceId, amount: u64) -> u64 {
        let state = &self.instances[instance as usize];
        match self.resources[usize::from(state.resource)].spec.supply {
            Supply::Tokens(_) => 0,
            Supply::Rate(rate) => {
                let slack = rate.burst.saturating_sub(amount) as f64 * rate.period_ns();
                state.full_at_ns.saturating_sub(slack as u64)
            }
        }
    }

    /// Takes what [`has`](Self::has) said is there; a rate's tokens are spent, so nothing is held.
    pub(crate) fn take(&mut self, grant: Grant, now: u64) -> Option<Grant> {
        let state = &mut self.instances[grant.instance as usize];
        let resource = &mut self.resources[usize::from(state.resource)];
        match resource.spec.supply {
            Supply::Tokens(_) => {
                state.in_use += grant.amount;
                resource.in_use += grant.amount;
                let peak = if resource.spec.keyed { state.in_use } else { resource.in_use };
                resource.peak_in_use = resource.peak_in_use.max(peak);
                Some(grant)
            }
            Supply::Rate(rate) => {
                let spent = (grant.amount as f64 * rate.period_ns()) as u64;
                state.full_at_ns = state.full_at_ns.max(now).saturating_add(spent);
                resource.peak_in_use = resource.peak_in_use.max(grant.amount);
                self.forget(grant.instance, now);
                None
            }
        }
    }

    /// Gives back a grant.
    pub(crate) fn release(&mut self, grant: Grant, now: u64) {
        let state = &mut self.instances[grant.instance as usize];
        state.in_use -= grant.amount;
        self.resources[usize::from(state.resource)].in_use -= grant.amount;
        if !state.waiters.is_empty() {
            self.to_serve.push(grant.instance);
        }
        self.forget(grant.instance, now);
    }

    fn set_rate_timer(&mut self, instance: InstanceId, now: u64) {
        let state = &self.instances[instance as usize];
        if state.timer_set || !matches!(self.resources[usize::from(state.resource)].spec.supply, Supply::Rate(_)) {
            return;
        }
        let Some(amount) = self.head_amount(instance) else { return };
        let at = self.rate_ready_at(instance, amount).max(now + 1);
        self.instances[instance as usize].timer_set = true;
        self.set_timer(at, TimerAction::Rate(instance));
    }

    // ---- keys -----------------------------------------------------------------------------------------

    /// The key's instance, made if there is none; `None` when there are too many keys already.
    fn instance_of(&mut self, resource: u16, key: &str, now: u64) -> Option<InstanceId> {
        if let Some(&instance) = self.resources[usize::from(resource)].keys.get(key) {
            return Some(instance);
        }
        self.forget_idle_rates(resource, now);
        let state = &mut self.resources[usize::from(resource)];
        if state.keys.len() >= state.spec.max_keys {
            return None;
        }
        let instance = Instance::new(resource, Some(key.into()));
        let id = match self.free_instances.pop() {
            Some(id) => {
                self.instances[id as usize] = instance;
                id
            }
            None => {
                self.instances.push(instance);
                (self.instances.len() - 1) as InstanceId
            }
        };
        state.keys.insert(key.into(), id);
        Some(id)
    }

    fn use_key(&mut self, instance: InstanceId) {
        self.instances[instance as usize].users += 1;
    }

    /// One user of a key less; the key is forgotten with its last one.
    fn forget(&mut self, instance: InstanceId, now: u64) {
        let state = &mut self.instances[instance as usize];
        if state.key.is_some() {
            state.users = state.users.saturating_sub(1);
            self.forget_if_unused(instance, now);
        }
    }

    /// A unit leaves while it still wanted something.
    pub(crate) fn forget_wants(&mut self, row: &mut Row, now: u64) {
        let Some(needs) = &mut self.units.unit(row).needs else { return };
        for want in std::mem::take(&mut needs.wants) {
            self.forget(want.instance, now);
        }
    }

    fn forget_if_unused(&mut self, instance: InstanceId, now: u64) {
        let state = &mut self.instances[instance as usize];
        if state.key.is_none() || state.users > 0 || !state.waiters.is_empty() || state.timer_set {
            return;
        }
        let resource = &mut self.resources[usize::from(state.resource)];
        if state.full_at_ns > now {
            if !std::mem::replace(&mut state.listed_idle, true) {
                resource.idle_rates.push_back(instance);
                if !resource.key_waiters.is_empty() {
                    self.keys_freed.push(state.resource);
                }
            }
        } else if !state.listed_idle
            && let Some(key) = state.key.take()
        {
            resource.keys.remove(&key);
            if !resource.key_waiters.is_empty() {
                self.keys_freed.push(state.resource);
            }
            self.free_instances.push(instance);
        }
    }

    /// Forgets keys of a rate whose tokens are back.
    fn forget_idle_rates(&mut self, resource: u16, now: u64) {
        while let Some(&instance) = self.resources[usize::from(resource)].idle_rates.front() {
            let state = &mut self.instances[instance as usize];
            if state.users == 0 && state.full_at_ns > now {
                return;
            }
            state.listed_idle = false;
            self.resources[usize::from(resource)].idle_rates.pop_front();
            self.forget_if_unused(instance, now);
        }
    }

    /// Lets units go on that wait for a key to be forgotten, as many as there are keys to make.
    pub(crate) fn serve_key_waiters(&mut self, resource: u16, now: u64) {
        self.forget_idle_rates(resource, now);
        let state = &mut self.resources[usize::from(resource)];
        let makeable = state.spec.max_keys.saturating_sub(state.keys.len()).min(state.key_waiters.len());
        let served: Vec<(Row, u16)> = state.key_waiters.drain(..makeable).collect();
        // Backwards, so that each comes to stand before the next one.
        for (mut row, stage) in served.into_iter().rev() {
            self.unpark(&mut row, stage, resource, now);
            self.unpop_waiting(row, stage);
            self.mark_pump(stage);
        }
        // Somebody must look again when the first idle key may be forgotten.
        let state = &mut self.resources[usize::from(resource)];
        let waits = !state.key_waiters.is_empty() && !state.keys_timer_set;
        if let Some(&idle) = state.idle_rates.front().filter(|_| waits) {
            state.keys_timer_set = true;
            let at_ns = self.instances[idle as usize].full_at_ns.max(now + 1);
            self.set_timer(at_ns, TimerAction::Keys(resource));
        }
    }

    // ---- memory ---------------------------------------------------------------------------------------

    /// Lets a unit that was cancelled for memory run again if its bytes fit now, or if nothing else in the
    /// flow can move: then it may exceed the budget, because only finishing frees memory.
    pub(crate) fn serve_memory(&mut self, now: u64) -> bool {
        let Some(head) = self.memory_waiters.front_mut() else { return false };
        let unit = self.units.unit(&mut head.row);
        let grows = head.wants_bytes.saturating_sub(unit.bytes);
        let fits = self.bytes.saturating_add(grows) <= self.memory_cap;
        let stuck = self.timers.is_empty() && self.stages.iter().all(|stage| stage.granted + stage.running == 0);
        if !fits && !stuck {
            return false;
        }
        unit.privileged |= !fits;
        unit.bytes += grows;
        self.bytes += grows;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        if let Some(waiter) = self.memory_waiters.pop_front() {
            let waited = now.saturating_sub(waiter.since_ns);
            self.stage(waiter.stage).stats.waited_for_memory(waited);
            self.enqueue(waiter.row, waiter.stage, now);
        }
        true
    }
}

impl GrantedBatch {
    fn note_arrival(&mut self, queued_ns: u64, units: u32) {
        match self.arrivals.last_mut().filter(|(at, _)| *at == queued_ns) {
            Some((_, n)) => *n += units,
            None => self.arrivals.push((queued_ns, units)),
        }
    }
}

impl Instance {
    pub(crate) fn new(resource: u16, key: Option<Box<str>>) -> Self {
        Instance {
            resource,
            in_use: 0,
            full_at_ns: 0,
            waiters: Default::default(),
            users: 0,
            key,
            timer_set: false,
            listed_idle: false,
        }
    }
}
