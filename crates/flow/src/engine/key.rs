//! The keys of a resource: made on demand, forgotten when they have no users, bounded in number.
//!
//! A key lives while a unit holds it, stands in its line, or is being granted; a rate's key also until its tokens are
//! back. A unit that needs a new key when there are [`max_keys`](crate::FlowBuilder::max_keys) waits for one to be
//! forgotten, first come, first served: while it waits no newcomer makes a key, however many keys the unit needs. If
//! its own stage needs several new keys, they are made together.

use super::column::Row;
use super::grant::Woken;
use super::state::{Instance, KeyWaiter, State, TimerAction};
use super::unit::{Ask, InstanceId, Want};

impl State {
    /// The instance of a resource's key, made if there is none; without a key, the resource's own.
    pub(crate) fn instance_of(&mut self, resource: u16, key: Option<&str>) -> InstanceId {
        let Some(key) = key else { return u32::from(resource) };
        let state = &mut self.resources[usize::from(resource)];
        if let Some(&instance) = state.keys.get(key) {
            return instance;
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
        id
    }

    /// The first resource whose keys would have to be made for `asks` and cannot be made now.
    pub(crate) fn lacking_keys(&mut self, asks: &[Ask], woken: Woken, now: u64) -> Option<u16> {
        for ask in asks.iter().filter(|ask| ask.key.is_some()) {
            let is_turn = woken == Woken::ForKeys(ask.resource);
            if !self.can_make_keys(ask.resource, keys_of(asks, ask.resource), is_turn, now) {
                return Some(ask.resource);
            }
        }
        None
    }

    /// Whether the missing ones among `keys` may be made now: there is room for them, and no other unit waits for that
    /// room, or it is the caller's turn.
    pub(crate) fn can_make_keys<'a>(
        &mut self,
        resource: u16,
        keys: impl Iterator<Item = &'a str>,
        is_turn: bool,
        now: u64,
    ) -> bool {
        let missing = self.missing_keys(resource, keys, now);
        let is_turn = is_turn || self.resources[usize::from(resource)].key_waiters.is_empty();
        missing == 0 || (is_turn && missing <= self.makeable_keys(resource))
    }

    /// The number of distinct keys among `keys` that do not exist.
    fn missing_keys<'a>(&mut self, resource: u16, keys: impl Iterator<Item = &'a str>, now: u64) -> usize {
        let existing = &self.resources[usize::from(resource)].keys;
        let mut missing: Vec<&str> = keys.filter(|&key| !existing.contains_key(key)).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.len() > self.makeable_keys(resource) {
            self.forget_idle_rates(resource, now);
        }
        missing.len()
    }

    /// The number of keys that may be made now.
    fn makeable_keys(&self, resource: u16) -> usize {
        let state = &self.resources[usize::from(resource)];
        state.spec.max_keys.saturating_sub(state.keys.len())
    }

    /// Counts one more user of a key.
    pub(crate) fn keep_alive(&mut self, instance: InstanceId) {
        self.instances[instance as usize].users += 1;
    }

    /// Counts one user of a key less; the key is forgotten with its last user.
    pub(crate) fn forget(&mut self, instance: InstanceId, now: u64) {
        let state = &mut self.instances[instance as usize];
        if state.key.is_some() {
            debug_assert!(state.users > 0, "a key was forgotten once too often");
            state.users = state.users.saturating_sub(1);
            self.forget_if_unused(instance, now);
        }
    }

    pub(crate) fn forget_all<'a>(&mut self, wants: impl Iterator<Item = &'a Want>, now: u64) {
        wants.for_each(|want| self.forget(want.instance, now));
    }

    pub(crate) fn forget_if_unused(&mut self, instance: InstanceId, now: u64) {
        let state = &mut self.instances[instance as usize];
        if state.key.is_none() || state.users > 0 || !state.waiters.is_empty() || state.timer_set_ns.is_some() {
            return;
        }
        let resource = &mut self.resources[usize::from(state.resource)];
        if state.full_at_ns > now {
            if !std::mem::replace(&mut state.listed_idle, true) {
                resource.idle_rates.push_back(instance);
                resource.idle_until_ns = resource.idle_until_ns.min(state.full_at_ns);
                let resource = state.resource;
                self.set_keys_timer(resource, now);
            }
        } else if !state.listed_idle
            && let Some(key) = state.key.take()
        {
            resource.keys.remove(&key);
            self.keys_freed.push(state.resource);
            self.free_instances.push(instance);
        }
    }

    /// Forgets keys of a rate whose tokens are back.
    fn forget_idle_rates(&mut self, resource: u16, now: u64) {
        let state = &mut self.resources[usize::from(resource)];
        if now < state.idle_until_ns {
            return;
        }
        state.idle_until_ns = u64::MAX;
        for instance in std::mem::take(&mut state.idle_rates) {
            self.instances[instance as usize].listed_idle = false;
            // This lists the key again if its tokens are not back yet.
            self.forget_if_unused(instance, now);
        }
    }

    pub(crate) fn park_for_keys(&mut self, mut row: Row, stage: u16, resource: u16, now: u64) {
        self.units.unit(&mut row).needs().parked_ns = now;
        self.stage(stage).count_parked(resource);
        let state = &mut self.resources[usize::from(resource)];
        state.key_waiters.push_back(KeyWaiter { row, stage });
        self.set_keys_timer(resource, now);
    }

    /// Serves the units that wait for keys to be forgotten.
    pub(crate) fn serve_key_waiters(&mut self, resource: u16, now: u64) {
        let r = usize::from(resource);
        if self.resources[r].key_waiters.is_empty() {
            return;
        }
        self.forget_idle_rates(resource, now);
        while let Some(KeyWaiter { mut row, stage }) = self.resources[r].key_waiters.pop_front() {
            // The needs are taken out for the check, so that the state may change meanwhile.
            let asks = std::mem::take(&mut self.units.unit(&mut row).needs().asks);
            let is_served = self.can_make_keys(resource, keys_of(&asks, resource), true, now);
            self.units.unit(&mut row).needs().asks = asks;
            if !is_served {
                self.resources[r].key_waiters.push_front(KeyWaiter { row, stage });
                break;
            }
            self.unpark(&mut row, stage, resource, now);
            self.try_unit(row, stage, Woken::ForKeys(resource), now);
        }
        self.set_keys_timer(resource, now);
    }

    /// Sets a timer for the moment at which an idle key may be forgotten for a waiting unit.
    fn set_keys_timer(&mut self, resource: u16, now: u64) {
        let state = &mut self.resources[usize::from(resource)];
        if state.key_waiters.is_empty() || state.keys_timer_set {
            return;
        }
        if !state.idle_rates.is_empty() {
            state.keys_timer_set = true;
            let at_ns = state.idle_until_ns.max(now + 1);
            self.set_timer(at_ns, TimerAction::Keys(resource));
        }
    }
}

/// The keys of a resource among the needs of a unit.
fn keys_of(asks: &[Ask], resource: u16) -> impl Iterator<Item = &str> {
    asks.iter().filter(move |ask| ask.resource == resource).filter_map(|ask| ask.key.as_deref())
}
