//! The keys of a resource: made on demand, forgotten when they have no users, and limited in number.
//!
//! A key lives while a unit holds it, waits in its line, or tries to take it. A rate's key also lives until its tokens
//! are back. The number of keys is limited to [`max_keys`](crate::builder::FlowBuilder::max_keys). A unit that needs a
//! new key beyond this limit waits until a key is forgotten, first come, first served. Meanwhile no newcomer makes a
//! key, however many keys the waiting unit needs. So a resource's slots for keys, `max_keys` of them, are themselves a
//! resource with a line. If a unit's stage needs several new keys, they are made together.

use super::grants::Grants;
use super::instance::Instance;
use super::resource::KeyWaiter;
use crate::engine::claims::{Ask, InstanceId, Step, Want};
use crate::engine::timers::{TimerAction, Timers};
use crate::engine::units::column::Row;

impl Grants {
    /// The instance of a resource's key, which is made if it does not exist. If `key` is `None`, the instance is the
    /// resource itself.
    pub(crate) fn instance_of(&mut self, resource: u16, key: Option<&str>) -> InstanceId {
        let Some(key) = key else { return u32::from(resource) };
        let state = &mut self.resources[usize::from(resource)];
        if let Some(&instance) = state.keys.get(key) {
            return instance;
        }
        let instance = Instance::new(resource, Some(key.into()));
        let id = match self.free.pop() {
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

    /// The first resource for which `asks` needs new keys that cannot be made now. If the unit is first in line for the
    /// keys of a resource, `turn` is that resource.
    pub(crate) fn lacking_keys(
        &mut self,
        asks: &[Ask],
        turn: Option<u16>,
        timers: &mut Timers,
        now: u64,
    ) -> Option<u16> {
        let keyed = asks.iter().filter(|ask| ask.key.is_some());
        keyed.map(|ask| ask.resource).find(|&resource| {
            let keys = keys_of(asks, resource);
            !self.can_make_keys(resource, keys, turn == Some(resource), timers, now)
        })
    }

    /// Makes all keys of a resource that `steps` need, so that the unit never keeps one key alive while it waits for
    /// another. If not all keys can be made now, makes none and returns `false`.
    pub(crate) fn look_up_steps(
        &mut self,
        resource: u16,
        steps: &mut [Step],
        is_turn: bool,
        timers: &mut Timers,
        now: u64,
    ) -> bool {
        let keys = steps.iter().filter(|step| step.resource == resource).filter_map(|step| step.key.as_deref());
        if !self.can_make_keys(resource, keys, is_turn, timers, now) {
            return false;
        }
        for step in steps.iter_mut().filter(|step| step.resource == resource && step.key.is_some()) {
            let instance = self.instance_of(resource, step.key.as_deref());
            self.add_user(instance);
            step.instance = Some(instance);
        }
        true
    }

    /// Whether the missing keys among `keys` may be made now: there are enough free slots, and no other unit is ahead
    /// in the line for them.
    fn can_make_keys<'a>(
        &mut self,
        resource: u16,
        keys: impl Iterator<Item = &'a str>,
        is_turn: bool,
        timers: &mut Timers,
        now: u64,
    ) -> bool {
        let missing = self.missing_keys(resource, keys, timers, now);
        let is_turn = is_turn || self.resources[usize::from(resource)].key_waiters.is_empty();
        missing == 0 || (is_turn && missing <= self.makeable_keys(resource))
    }

    /// The number of distinct keys among `keys` that do not exist. Forgets idle keys if there are too few free slots.
    fn missing_keys<'a>(
        &mut self,
        resource: u16,
        keys: impl Iterator<Item = &'a str>,
        timers: &mut Timers,
        now: u64,
    ) -> usize {
        let existing = &self.resources[usize::from(resource)].keys;
        let mut missing: Vec<&str> = keys.filter(|&key| !existing.contains_key(key)).collect();
        missing.sort_unstable();
        missing.dedup();
        let missing = missing.len();
        if missing > self.makeable_keys(resource) {
            self.forget_idle_rates(resource, timers, now);
        }
        missing
    }

    /// The number of keys that may be made now.
    fn makeable_keys(&self, resource: u16) -> usize {
        let state = &self.resources[usize::from(resource)];
        state.spec.max_keys.saturating_sub(state.keys.len())
    }

    /// Counts one more user of a key.
    pub(crate) fn add_user(&mut self, id: InstanceId) {
        self.instances[id as usize].users += 1;
    }

    /// Drops one user of a key. When the last user is gone, the key is forgotten, or listed as idle if it still owes
    /// tokens.
    pub(crate) fn drop_user(&mut self, id: InstanceId, timers: &mut Timers, now: u64) {
        let instance = &mut self.instances[id as usize];
        if instance.key.is_some() {
            debug_assert!(instance.users > 0, "a key loses more users than it has");
            instance.users = instance.users.saturating_sub(1);
            self.forget_if_unused(id, timers, now);
        }
    }

    /// Drops one user of the key of each need.
    pub(crate) fn drop_users<'a>(&mut self, wants: impl Iterator<Item = &'a Want>, timers: &mut Timers, now: u64) {
        wants.for_each(|want| self.drop_user(want.instance, timers, now));
    }

    pub(super) fn forget_if_unused(&mut self, id: InstanceId, timers: &mut Timers, now: u64) {
        let instance = &mut self.instances[id as usize];
        if instance.key.is_none() || instance.users > 0 || !instance.line.is_empty() || instance.timer_set_ns.is_some()
        {
            return;
        }
        let resource = &mut self.resources[usize::from(instance.resource)];
        if instance.full_at_ns > now {
            // If a key were forgotten while it owes tokens, it would be made again with a full burst. So the key is
            // only listed here, and is forgotten later.
            if !std::mem::replace(&mut instance.listed_idle, true) {
                resource.idle_rates.push_back(id);
                resource.idle_until_ns = resource.idle_until_ns.min(instance.full_at_ns);
                let resource = instance.resource;
                self.set_keys_timer(resource, timers, now);
            }
        } else if !instance.listed_idle
            && let Some(key) = instance.key.take()
        {
            resource.keys.remove(&key);
            self.keys_freed.push(instance.resource);
            self.free.push(id);
        }
    }

    /// Forgets the keys of a rate that have no users and whose tokens are back.
    fn forget_idle_rates(&mut self, resource: u16, timers: &mut Timers, now: u64) {
        let state = &mut self.resources[usize::from(resource)];
        if now < state.idle_until_ns {
            return;
        }
        state.idle_until_ns = u64::MAX;
        for instance in std::mem::take(&mut state.idle_rates) {
            self.instances[instance as usize].listed_idle = false;
            // This lists the key again if its tokens are not back yet.
            self.forget_if_unused(instance, timers, now);
        }
    }

    /// Puts a unit at the end of the line for keys of a resource.
    pub(crate) fn park_for_keys(&mut self, row: Row, stage: u16, resource: u16, timers: &mut Timers, now: u64) {
        let state = &mut self.resources[usize::from(resource)];
        state.key_waiters.push_back(KeyWaiter { row, stage, since_ns: now });
        self.set_keys_timer(resource, timers, now);
    }

    /// Takes a resource that may be able to make a key for a waiting unit.
    #[inline]
    pub(crate) fn next_with_free_keys(&mut self) -> Option<u16> {
        self.keys_freed.pop()
    }

    /// Whether units wait for keys of the resource. If so, forgets idle keys to make room.
    pub(crate) fn prepare_keys(&mut self, resource: u16, timers: &mut Timers, now: u64) -> bool {
        if self.resources[usize::from(resource)].key_waiters.is_empty() {
            return false;
        }
        self.forget_idle_rates(resource, timers, now);
        true
    }

    /// Takes the first unit in the line for keys.
    pub(crate) fn next_in_line_for_keys(&mut self, resource: u16) -> Option<KeyWaiter> {
        self.resources[usize::from(resource)].key_waiters.pop_front()
    }

    /// Whether the keys of the first unit in line can be made.
    pub(crate) fn has_keys_for(&mut self, asks: &[Ask], resource: u16, timers: &mut Timers, now: u64) -> bool {
        self.can_make_keys(resource, keys_of(asks, resource), true, timers, now)
    }

    /// Puts a unit back at the front of the line, because it must wait longer. Sets a timer for the time at which an
    /// idle key may be forgotten.
    pub(crate) fn put_back_for_keys(&mut self, waiter: KeyWaiter, resource: u16, timers: &mut Timers, now: u64) {
        self.resources[usize::from(resource)].key_waiters.push_front(waiter);
        self.set_keys_timer(resource, timers, now);
    }

    /// Notes that the line for keys may now be served, because a timer says that a key may be forgotten.
    pub(crate) fn keys_timer_fired(&mut self, resource: u16) {
        self.resources[usize::from(resource)].keys_timer_set = false;
        self.keys_freed.push(resource);
    }

    /// Sets a timer for the time at which an idle key may be forgotten for a waiting unit.
    fn set_keys_timer(&mut self, resource: u16, timers: &mut Timers, now: u64) {
        let state = &mut self.resources[usize::from(resource)];
        if state.key_waiters.is_empty() || state.keys_timer_set {
            return;
        }
        if !state.idle_rates.is_empty() {
            state.keys_timer_set = true;
            timers.set(state.idle_until_ns.max(now + 1), TimerAction::Keys(resource));
        }
    }
}

/// The keys of a resource among the needs of a unit.
fn keys_of(asks: &[Ask], resource: u16) -> impl Iterator<Item = &str> {
    asks.iter().filter(move |ask| ask.resource == resource).filter_map(|ask| ask.key.as_deref())
}
