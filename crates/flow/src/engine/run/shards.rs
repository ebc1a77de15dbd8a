//! The groups of a stage that gathers, divided by their keys into shards with a mutex each.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::contain::Contained;
use crate::failure::Failure;

/// The number of shards of a stage whose groups have keys.
pub(super) const SHARDS: usize = 16;

/// See the [module](self).
pub(super) struct Shards<G, K, Out>(Box<[Mutex<Shard<G, K, Out>>]>);

impl<G, K, Out> Shards<G, K, Out> {
    /// Makes several shards, or one shard for groups without keys.
    pub(super) fn new(have_keys: bool) -> Self {
        Shards((0..if have_keys { SHARDS } else { 1 }).map(|_| Mutex::default()).collect())
    }

    /// The index of the key's shard.
    pub(super) fn place(&self, key: &Key<K>) -> usize {
        let spread = match &key.of {
            // Parents that are split in one run have numbers close to each other, and their children are gathered in
            // one run. So these families share a shard.
            KeyKind::Parent(id) => id >> 8,
            // The maps use the lowest and the highest bits of the hash, so the shard depends on bits between them.
            KeyKind::All | KeyKind::Of(_) => key.hash >> 32,
        };
        spread as usize % self.0.len()
    }

    /// The shard of this key.
    pub(super) fn of(&self, key: &Key<K>) -> MutexGuard<'_, Shard<G, K, Out>> {
        self.lock(self.place(key))
    }

    fn lock(&self, place: usize) -> MutexGuard<'_, Shard<G, K, Out>> {
        // A panic in user code fails the unit, and leaves the shard as it was. So a poisoned mutex is used like any
        // other.
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups of some keys.
pub(super) struct Shard<G, K, Out> {
    /// The groups are in the table itself, not behind pointers. If there are many groups, a group is rarely in the
    /// cache, so a look-up should load little memory.
    pub(super) open: HashMap<Key<K>, Group<G>, BuildHasherDefault<Hashed>>,
    /// Groups that take no further members, by their numbers.
    pub(super) full: FxHashMap<u64, Box<Closed<G, Out>>>,
}

impl<G, K, Out> Default for Shard<G, K, Out> {
    fn default() -> Self {
        Shard { open: HashMap::default(), full: FxHashMap::default() }
    }
}

/// The shard that a worker has entered while members of a batch join; `None` if it is in no shard.
pub(super) struct At<'a, G, K, Out>(Option<Entered<'a, G, K, Out>>);

/// A shard that a worker has entered.
pub(super) struct Entered<'a, G, K, Out> {
    place: usize,
    pub(super) shard: MutexGuard<'a, Shard<G, K, Out>>,
    /// The group that the last member joined. The group is not in its table until the worker leaves the shard, because
    /// the next member usually joins the same group. This field is used only if the flow itself computes the keys.
    pub(super) last: Option<(Key<K>, Group<G>)>,
}

impl<G, K, Out> Default for At<'_, G, K, Out> {
    fn default() -> Self {
        At(None)
    }
}

impl<'a, G, K: Eq, Out> At<'a, G, K, Out> {
    /// Enters the shard of this key. The worker stays in the shard until it leaves or enters another shard.
    pub(super) fn enter(&mut self, shards: &'a Shards<G, K, Out>, key: &Key<K>) -> &mut Entered<'a, G, K, Out> {
        let place = shards.place(key);
        if self.0.as_ref().is_some_and(|entered| entered.place != place) {
            // A worker that locked two mutexes at once could cause a deadlock, so it first leaves the shard that it is
            // in.
            self.leave();
        }
        self.0.get_or_insert_with(|| Entered { place, shard: shards.lock(place), last: None })
    }

    pub(super) fn leave(&mut self) {
        if let Some(mut entered) = self.0.take() {
            entered.put_back();
        }
    }
}

impl<G, K: Eq, Out> Entered<'_, G, K, Out> {
    /// The open group of this key. The flow itself must have computed the key.
    pub(super) fn last(&mut self, key: &Key<K>) -> Option<&mut Group<G>> {
        if !self.last.as_ref().is_some_and(|(last, _)| last.is(key)) {
            self.put_back();
            self.last = self.shard.open.remove_entry(key);
        }
        self.last.as_mut().map(|(_, group)| group)
    }

    /// Puts the group that the last member joined back into its table.
    pub(super) fn put_back(&mut self) {
        if let Some((key, group)) = self.last.take() {
            self.shard.open.insert(key, group);
        }
    }
}

/// The key of a group, stored with its hash, so that a map that grows does not run user code to compute hashes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key<K> {
    pub(super) hash: u64,
    pub(super) of: KeyKind<K>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum KeyKind<K> {
    All,
    /// The parent's number.
    Parent(u64),
    Of(K),
}

impl<K> Key<K> {
    /// Whether two keys that the flow itself has computed are equal.
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

/// The hasher for keys that already have a hash.
#[derive(Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes only its hash")
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A group that members join.
pub(super) struct Group<G> {
    pub(super) value: Contained<G>,
    pub(super) number: u64,
    pub(super) units: u64,
    /// The total weight of its members when they joined.
    pub(super) joined_bytes: u64,
    /// The weight last reported to the scheduler.
    pub(super) told_bytes: u64,
    /// The number of notes that workers have written about the group.
    pub(super) notes: u64,
}

/// A group that takes no further members.
pub(super) struct Closed<G, Out> {
    pub(super) value: Contained<Value<G, Out>>,
    pub(super) number: u64,
    pub(super) notes: u64,
    pub(super) joined_bytes: u64,
    pub(super) told_bytes: u64,
    /// The reason why the group cannot go on.
    pub(super) failure: Option<Failure>,
}

/// The value of a closed group.
pub(super) enum Value<G, Out> {
    /// The value that the group's members have built.
    Joined(G),
    /// The value that goes on.
    Mapped(Out),
    /// The value is lost, because the code that maps the group has panicked.
    Lost,
}

impl<G> Group<G> {
    /// Closes the group, which then goes on, or fails with `failure`.
    pub(super) fn close<Out>(self, failure: Option<Failure>) -> Closed<G, Out> {
        let Group { value, number, notes, joined_bytes, told_bytes, .. } = self;
        let value = Contained::new(Value::Joined(value.into_inner()));
        Closed { value, number, notes, joined_bytes, told_bytes, failure }
    }
}
