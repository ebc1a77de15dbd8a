//! Rebuilding the free list from the objects' words, in a slab that no other process uses.
//!
//! The words alone say which objects are allocated; links, announcements and the depot's head are only a faster way to
//! find the free ones. So a process that has the slab to itself discards the links, announcements and head, whatever
//! their state (for example, after a power failure that wrote some pages and not others), and builds them again.

use std::sync::atomic::Ordering;

use crate::depot::{Entry, Head, NONE};
use crate::mapped::attach::Others;
use crate::mapped::error::Error;
use crate::mapped::mapping::Mapping;
use crate::mapped::process::Identity;
use crate::mapped::recover::{Chains, Recovered};
use crate::primitive::AtomicU64;
use crate::word::{Generation, State, Word};

/// Rebuilds the free list. The caller holds the rebuild lock and no cache is in use, so the slab does not change
/// meanwhile; if the caller dies, the next holder starts over. Calls `begins` once the words have proved sound, before
/// the first change.
pub(crate) fn rebuild(mapping: &Mapping, others: Others, begins: impl FnOnce()) -> Result<Recovered, Error> {
    let words = check(mapping)?;
    begins();
    mapping.capacity_word().fetch_max(words.len() as u64, Ordering::AcqRel);
    let mut recovered = Recovered::default();
    for slot in mapping.slots() {
        slot.settle();
        slot.done.store(0, Ordering::Relaxed);
        let found = slot.owner.load(Ordering::SeqCst);
        // If the owner is alive, it registered after this process had checked the slots. It is about to see that this
        // process holds the lock, and to step back; until then its slot must not go to another cache.
        let is_gone = |owner| others == Others::Absent || !mapping.lives(owner);
        let is_cleared = Identity::read(found).is_some_and(is_gone)
            && slot.owner.compare_exchange(found, Identity::NONE, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        recovered.caches += u64::from(is_cleared);
    }
    mapping.head().store(Head { first: NONE, by: 0, tag: 0 }.pack(), Ordering::Release);

    // No process has a cache, so the chains can be put into the depot in the name of any slot.
    let mut chains = Chains::new(mapping, 0);
    for (index, word) in (0..).zip(words) {
        let found = Word(word.load(Ordering::Relaxed));
        let generation = found.generation();
        match found.state() {
            // Fresh objects come after all used ones, so an unused word among used ones means that a power failure lost
            // the used word.
            Some(State::Virgin) => chains.push(Entry { generation: Generation::FIRST, index })?,
            Some(State::Free) => chains.push(Entry { generation, index })?,
            Some(State::Cached(_)) => {
                recovered.freed += 1;
                chains.push(Entry { generation, index })?;
            }
            Some(State::Held(slot)) => {
                recovered.orphans += 1;
                mapping.orphan(index, slot);
            }
            Some(State::Published | State::Orphan | State::Retired) | None => {}
        }
    }
    chains.finish()?;
    mapping.fresh().store(words.len() as u64, Ordering::Release);
    Ok(recovered)
}

/// Checks, before the first change, that every word is one that the library writes; returns the words up to the last
/// object ever used.
fn check(mapping: &Mapping) -> Result<&[AtomicU64], Error> {
    let capacity = mapping.capacity_word().load(Ordering::Acquire);
    if capacity > mapping.header.geometry.max_objects {
        return Err(Error::Damaged { what: "more objects are in use than there are", at: capacity });
    }
    let words = mapping.written_words();
    let used = words.iter().rposition(|word| word.load(Ordering::Relaxed) != 0).map_or(0, |last| last + 1);
    let words = &words[..used];
    let broken = words.iter().position(|word| {
        let state = Word(word.load(Ordering::Relaxed)).state();
        match state {
            Some(State::Cached(slot) | State::Held(slot)) => u64::from(slot) >= mapping.header.geometry.caches,
            state => state.is_none(),
        }
    });
    match broken {
        Some(index) => Err(Error::Damaged { what: "the word of an object makes no sense", at: index as u64 }),
        None => Ok(words),
    }
}
