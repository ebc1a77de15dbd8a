//! Loom models of the depot: every interleaving, and every value that a weakly ordered machine may read.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::depot::{Depot, Entry, Head, NONE};
use crate::primitive::{AtomicU64, AtomicU128};
use crate::slot::Slot;
use crate::word::{Generation, State, Word};

/// A depot with its parts, and the objects themselves, whose accesses loom checks.
struct Store {
    head: AtomicU128,
    words: Vec<AtomicU64>,
    links: Vec<AtomicU64>,
    slots: Vec<Slot>,
    objects: Vec<UnsafeCell<u64>>,
}

impl Store {
    /// A depot with all `objects` in it, in chains of `chain`; the first object is on top. The cache with the last slot
    /// gave them.
    fn new(objects: u64, caches: usize, chain: usize) -> Arc<Store> {
        let zeros = |count: u64| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let slot = || {
            let [owner, intent, target, done, user] = std::array::from_fn(|_| AtomicU64::new(0));
            Slot { owner, intent, target, done, user }
        };
        let store = Store {
            head: AtomicU128::new(Head { first: NONE, by: 0, tag: 0 }.pack()),
            words: zeros(objects),
            links: zeros(objects),
            slots: (0..caches).map(|_| slot()).collect(),
            objects: (0..objects).map(|_| UnsafeCell::new(0)).collect(),
        };
        let all: Vec<Entry> = (0..objects).map(|index| Entry { generation: Generation::FIRST, index }).collect();
        for chain in all.chunks(chain).rev() {
            store.depot::<1>(chain.len()).give(caches as u16 - 1, chain).unwrap();
        }
        Arc::new(store)
    }

    fn depot<const STEP: u64>(&self, chain: usize) -> Depot<'_, STEP> {
        Depot { head: &self.head, words: &self.words, links: &self.links, slots: &self.slots, chain }
    }

    fn take<const STEP: u64>(&self, slot: u16, chain: usize) -> Vec<Entry> {
        let mut taken = Vec::new();
        self.depot::<STEP>(chain).take(slot, |entry| taken.push(entry)).unwrap();
        taken
    }

    /// Writes to objects that the caller holds. Loom panics if another thread holds one of them as well, or if the
    /// writes of its last holder are not visible.
    fn touch(&self, entries: &[Entry]) {
        for entry in entries {
            // SAFETY: `with_mut` makes loom panic if another thread accesses the object at the same time.
            self.objects[entry.index as usize].with_mut(|object| unsafe { *object += 1 });
        }
    }
}

/// Two caches never take the same objects, and every object that they return is in the depot.
#[test]
fn chains_change_hands_whole() {
    loom::model(|| {
        let store = Store::new(4, 2, 2);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || {
            let taken = other.take::<1>(1, 2);
            other.touch(&taken);
            other.depot::<1>(2).give(1, &taken).unwrap();
        });
        let taken = store.take::<1>(0, 2);
        assert_eq!(taken.len(), 2);
        store.touch(&taken);
        store.depot::<1>(2).give(0, &taken).unwrap();
        thread.join().unwrap();
        let mut left: Vec<u64> = (0..2).flat_map(|_| store.take::<1>(0, 2)).map(|entry| entry.index).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2, 3]);
        assert!(store.take::<1>(0, 2).is_empty());
    });
}

/// A survivor knows that an exchange happened even if another cache has exchanged the head since.
#[test]
fn an_exchange_followed_by_one_of_another_cache_is_known_to_have_happened() {
    loom::model(|| {
        let store = Store::new(2, 2, 1);
        let other = Arc::clone(&store);
        // The other cache exchanges the head, and may overwrite the trace of this one.
        let thread = thread::spawn(move || {
            let taken = other.take::<1>(1, 1);
            other.touch(&taken);
            taken.len()
        });
        let taken = store.take::<1>(0, 1);
        // This is the state after this cache has died with its chain, before it settled its announcement.
        let head = Head::unpack(store.head.load(crate::primitive::Ordering::Acquire));
        let own = &store.slots[0];
        let target = own.target.load(crate::primitive::Ordering::Relaxed);
        for entry in &taken {
            store.words[entry.index as usize].store(entry.generation.free(), crate::primitive::Ordering::Release);
        }
        own.announce(crate::slot::Intent::Take(taken[0].index as u32), target);
        store.depot::<1>(1).settle(0).unwrap();
        let word = Word(store.words[taken[0].index as usize].load(crate::primitive::Ordering::Relaxed));
        assert_eq!(word.state(), Some(State::Cached(0)), "taken, and not found: {head:?}");
        assert_eq!(thread.join().unwrap(), 1);
    });
}

/// The ABA problem, step by step: one cache allocates and is about to exchange the head A for its successor B, when
/// another cache allocates A, allocates B, and frees A.
fn aba<const STEP: u64>() {
    loom::model(|| {
        let store = Store::new(3, 2, 1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || {
            let a = other.take::<STEP>(1, 1);
            let b = other.take::<STEP>(1, 1);
            other.depot::<STEP>(1).give(1, &a).unwrap();
            b
        });
        let mine = store.take::<STEP>(0, 1);
        let theirs = thread.join().unwrap();
        let rest: Vec<Entry> = (0..3).flat_map(|_| store.take::<STEP>(0, 1)).collect();
        let mut all: Vec<u64> = mine.iter().chain(&theirs).chain(&rest).map(|entry| entry.index).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2], "an object is free and allocated at once, or neither");
    });
}

#[test]
fn with_a_generation_a_head_that_came_back_fails_the_exchange() {
    aba::<1>();
}

#[test]
#[should_panic]
fn without_a_generation_a_head_that_came_back_corrupts_the_list() {
    aba::<0>();
}
