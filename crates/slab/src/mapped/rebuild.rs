//! Making the free list anew, alone, from the objects' words.
//!
//! The words alone say what is allocated; links, intents and the depot's head are only a faster way to what is not. So
//! whatever state those were left in (by a kill, or by a power failure that wrote some pages and others not), a process
//! that has the slab alone throws them away and makes them again.

use std::sync::atomic::Ordering;

use crate::depot::{Entry, Head, NONE};
use crate::mapped::attach::Others;
use crate::mapped::error::Error;
use crate::mapped::process::Identity;
use crate::mapped::recover::{Chains, Recovered};
use crate::mapped::shared::Shared;
use crate::word::{State, Word};

/// Makes the free list anew. The caller is at the gate and no cache is in use, so nothing changes meanwhile; if it dies, the
/// next one begins again. Calls `begins` when all is sound and before anything is changed.
pub(crate) fn rebuild(shared: &Shared, others: Others, begins: impl FnOnce()) -> Result<Recovered, Error> {
    let capacity = check(shared)?;
    begins();
    let mut recovered = Recovered::default();
    for slot in shared.slots() {
        slot.settle();
        slot.done.store(0, Ordering::Relaxed);
        let found = slot.owner.load(Ordering::SeqCst);
        // One that lives has come after we looked. It will see us at the gate and step back, and must not find its slot somebody else's then.
        let is_gone = |owner| others == Others::Absent || !shared.lives(owner);
        let is_cleared = Identity::read(found).is_some_and(is_gone)
            && slot.owner.compare_exchange(found, Identity::NOBODY, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        recovered.caches += u64::from(is_cleared);
    }
    shared.head().store(Head { first: NONE, by: 0, tag: 0 }.pack(), Ordering::Release);

    let mut fresh = capacity;
    // Nobody has a cache, so any slot will do to act with.
    let mut chains = Chains::new(shared, 0);
    for (index, word) in (0..).zip(&shared.words()[..capacity as usize]) {
        let found = Word(word.load(Ordering::Relaxed));
        let generation = found.generation();
        match found.state() {
            Some(State::Virgin) => fresh = fresh.min(index),
            Some(State::Free) => chains.push(Entry { generation, index })?,
            Some(State::Cached(_)) => {
                recovered.freed += 1;
                chains.push(Entry { generation, index })?;
            }
            Some(State::Held(slot)) => {
                recovered.orphans += 1;
                shared.orphan(index, slot);
            }
            Some(State::Published | State::Orphan | State::Retired) | None => {}
        }
    }
    chains.finish()?;
    shared.fresh().store(fresh, Ordering::Release);
    Ok(recovered)
}

/// Whether every word is one that we write, before anything is changed; the capacity.
fn check(shared: &Shared) -> Result<u64, Error> {
    let capacity = shared.capacity_word().load(Ordering::Acquire);
    if capacity > shared.header.geometry.max_objects {
        return Err(Error::Damaged { what: "more objects are in use than there are", at: capacity });
    }
    let broken = shared.words()[..capacity as usize].iter().position(|word| {
        let state = Word(word.load(Ordering::Relaxed)).state();
        match state {
            Some(State::Cached(slot) | State::Held(slot)) => u64::from(slot) >= shared.header.geometry.caches,
            state => state.is_none(),
        }
    });
    match broken {
        Some(index) => Err(Error::Damaged { what: "the word of an object makes no sense", at: index as u64 }),
        None => Ok(capacity),
    }
}
