//! Recovery: a survivor acts for dead caches while live ones continue.
//!
//! A survivor becomes the dead cache. It takes over the slot, and completes the operation on the depot that the cache
//! had announced. It finds the cache's objects by their words, gives the free ones to the depot *in that cache's name*,
//! and marks the held ones as orphans. Then it releases the slot. Recovery consists of the same steps as ordinary work,
//! so if a survivor dies in the middle, the next survivor recovers it by the same rules.
//!
//! No lock is needed: a compare-and-swap takes a slot over, and only a slot's owner changes its objects. Several
//! survivors divide the dead caches among themselves. A stopped survivor keeps the slots that it has taken over, and no
//! others, until it continues or dies.

use std::ops::AddAssign;
use std::sync::atomic::Ordering;

use crate::depot::Entry;
use crate::mapped::error::Error;
use crate::mapped::mapping::Mapping;
use crate::mapped::process::{self, Identity};
use crate::word::{State, Word};

/// The result of a recovery from the death of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Caches of dead processes that were recovered.
    pub caches: u64,
    /// Free objects of those caches, which are in the depot now.
    pub freed: u64,
    /// Objects that were held or forgotten, which any cache can claim or free now.
    pub orphans: u64,
    /// Caches left as they are, because their shared memory is invalid: their free objects are out of reach until the
    /// slab is opened while no process uses it.
    pub damaged: u64,
}

impl AddAssign for Recovered {
    fn add_assign(&mut self, other: Self) {
        self.caches += other.caches;
        self.freed += other.freed;
        self.orphans += other.orphans;
        // The last recovery has checked the same damaged caches again, so its count replaces the earlier one.
        self.damaged = other.damaged;
    }
}

/// The relation of a recovery to the rebuild lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The lock must be free.
    Unlocked,
    /// The caller holds the lock.
    Locked,
}

impl Mapping {
    /// Gives the free objects of dead processes to the depot, and marks the held ones as orphans. If `thoroughly`, also
    /// marks the forgotten objects (`std::mem::forget`) of caches that have ended; for that it reads all words even if
    /// no process has died. Returns `None` if a process holds the rebuild lock, or if the slab has not been used since
    /// the last boot.
    pub(crate) fn recover_beside(&self, thoroughly: bool, passage: Passage) -> Result<Option<Recovered>, Error> {
        let namespace = process::namespace()?;
        // While no process has a cache, a process of another namespace may open the slab. This may have happened since
        // this process opened the slab.
        self.check_namespace(namespace)?;
        if !self.may_recover(namespace, passage) {
            return Ok(None);
        }
        let mut wards =
            Wards { mapping: self, own: Identity::own()?.recovering().word(), namespace, passage, slots: Vec::new() };
        wards.take_over_the_dead();
        // The check is repeated now that this process owns the slots; `attach.rs` says why.
        if !self.may_recover(namespace, passage) {
            return Ok(None);
        }
        if wards.slots.is_empty() && !thoroughly {
            return Ok(Some(Recovered::default()));
        }
        Ok(Some(wards.recover(thoroughly)))
    }

    fn may_recover(&self, namespace: u64, passage: Passage) -> bool {
        passage == Passage::Locked || self.is_ready(namespace)
    }
}

/// The slots that this process has taken over. On drop, each remaining slot gets its previous owner back.
struct Wards<'s> {
    mapping: &'s Mapping,
    /// This process, acting for dead caches.
    own: u64,
    namespace: u64,
    passage: Passage,
    /// By slot number, up to the highest slot taken over.
    slots: Vec<Option<Ward<'s>>>,
}

/// A slot that was taken over.
struct Ward<'s> {
    /// The previous owner: a dead process, or none.
    before: u64,
    /// Free objects on their way to the depot.
    chains: Chains<'s>,
    is_damaged: bool,
}

impl<'s> Wards<'s> {
    fn take_over_the_dead(&mut self) {
        let mapping = self.mapping;
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        for (number, slot) in (0..).zip(mapping.slots()) {
            let found = slot.owner.load(Ordering::SeqCst);
            let Some(owner) = Identity::read(found) else { continue };
            if !alive.contains(&owner) && !dead.contains(&owner) {
                if mapping.lives(owner) { alive.push(owner) } else { dead.push(owner) }
            }
            // The namespace is read after the owner: it can't change while any slot has an owner, so the process was
            // looked up in the right namespace.
            if dead.contains(&owner) && mapping.namespace_word().load(Ordering::SeqCst) == self.namespace {
                self.take_over(number, found);
            }
        }
    }

    /// Takes a slot over if it still has this owner; fails if another survivor, or a new cache, was faster.
    fn take_over(&mut self, number: u16, before: u64) -> bool {
        let owner = &self.mapping.slots()[usize::from(number)].owner;
        let is_ours = owner.compare_exchange(before, self.own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if is_ours {
            let chains = Chains::new(self.mapping, number);
            self.slots.resize_with(self.slots.len().max(usize::from(number) + 1), || None);
            self.slots[usize::from(number)] = Some(Ward { before, chains, is_damaged: false });
        }
        is_ours
    }

    fn recover(mut self, thoroughly: bool) -> Recovered {
        let mut recovered = Recovered::default();
        // The announced operations are completed first. This writes the dead cache's slot into the words of the chain
        // that it was moving, so the scan below finds these objects.
        for (number, ward) in (0..).zip(&mut self.slots) {
            if let Some(ward) = ward {
                ward.is_damaged = self.mapping.depot().settle(number).is_err();
            }
        }
        for (index, word) in (0..).zip(self.mapping.used_words()) {
            self.recover_object(index, Word(word.load(Ordering::Acquire)), thoroughly, &mut recovered);
        }
        for ward in self.slots.iter_mut().flatten().filter(|ward| !ward.is_damaged) {
            ward.is_damaged = ward.chains.finish().is_err();
        }
        // The slots are given up last: until then, a survivor of this process finds the remaining objects by their
        // slots.
        self.give_up(&mut recovered);
        recovered
    }

    /// If the object's cache is a ward, frees the object, or marks it as an orphan if it was held. `found` is the
    /// object's word as it was read before. Only a cache changes the words of its objects, and this process acts for the
    /// wards. If a slot becomes a ward only during this call, however, the slot's last cache may have changed the word
    /// since it was read.
    fn recover_object(&mut self, index: u64, found: Word, thoroughly: bool, recovered: &mut Recovered) {
        match found.state() {
            Some(State::Cached(number)) => {
                let entry = Entry { generation: found.generation(), index };
                recovered.freed += u64::from(self.free(number, entry));
            }
            Some(State::Held(number)) if self.is_ward(number) || thoroughly && self.take_over_ended(number) => {
                // Acquire: pairs with the release of the last store to the word. That store came before the slot's last
                // owner gave the slot up.
                let now = Word(self.mapping.words()[index as usize].load(Ordering::Acquire));
                if now.state() == Some(State::Held(number)) {
                    recovered.orphans += 1;
                    self.mapping.orphan(index, number);
                }
            }
            _ => {}
        }
    }

    fn ward(&mut self, number: u16) -> Option<&mut Ward<'s>> {
        self.slots.get_mut(usize::from(number))?.as_mut()
    }

    fn is_ward(&mut self, number: u16) -> bool {
        self.ward(number).is_some()
    }

    /// Puts a free object on its way to the depot if it belongs to a dead cache; returns whether it does.
    fn free(&mut self, number: u16, entry: Entry) -> bool {
        let Some(ward) = self.ward(number) else { return false };
        if ward.is_damaged || ward.before == Identity::NONE {
            return false;
        }
        ward.is_damaged = ward.chains.push(entry).is_err();
        true
    }

    /// Takes over a slot that has no owner but still has a forgotten object.
    fn take_over_ended(&mut self, number: u16) -> bool {
        let slot = self.mapping.slots().get(usize::from(number));
        if slot.is_none_or(|slot| slot.owner.load(Ordering::SeqCst) != Identity::NONE) {
            return false;
        }
        // The order is the same as for dead caches: the slot is taken first, and the lock is checked afterwards.
        if !self.take_over(number, Identity::NONE) {
            return false;
        }
        let may_recover = self.mapping.may_recover(self.namespace, self.passage);
        if !may_recover {
            self.hand_back(usize::from(number));
        }
        may_recover
    }

    /// Ends the recovery: a slot whose objects are all found is free, and every other slot gets its previous owner
    /// back.
    fn give_up(&mut self, recovered: &mut Recovered) {
        for number in 0..self.slots.len() {
            let Some(ward) = &self.slots[number] else { continue };
            if ward.is_damaged {
                recovered.damaged += 1;
                self.hand_back(number);
                continue;
            }
            recovered.caches += u64::from(ward.before != Identity::NONE);
            // Release: the next owner of the slot finds nothing of the previous one.
            self.replace_owner(number, Identity::NONE);
            self.slots[number] = None;
        }
    }

    fn hand_back(&mut self, number: usize) {
        if let Some(ward) = self.slots[number].take() {
            self.replace_owner(number, ward.before);
        }
    }

    /// Replaces the owner of a slot, if this process is still the owner. A plain store would be wrong: a newcomer of
    /// another namespace may have mistaken this process for a dead one, and taken the slot over. The newcomer is about
    /// to step back.
    fn replace_owner(&self, number: usize, new: u64) {
        let owner = &self.mapping.slots()[number].owner;
        let _ = owner.compare_exchange(self.own, new, Ordering::Release, Ordering::Relaxed);
    }
}

impl Drop for Wards<'_> {
    fn drop(&mut self) {
        for number in 0..self.slots.len() {
            self.hand_back(number);
        }
    }
}

/// Free objects on their way to the depot, a chain at a time.
pub(crate) struct Chains<'a> {
    mapping: &'a Mapping,
    slot: u16,
    chain: Vec<Entry>,
}

impl<'a> Chains<'a> {
    /// The cache with this slot gives the objects.
    pub(crate) fn new(mapping: &'a Mapping, slot: u16) -> Self {
        Chains { mapping, slot, chain: Vec::with_capacity(mapping.header.geometry.chain as usize) }
    }

    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Error> {
        self.chain.push(entry);
        if self.chain.len() as u64 == self.mapping.header.geometry.chain { self.finish() } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.mapping.depot().give(self.slot, &self.chain)?;
        self.chain.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawSlab;

    #[test]
    fn an_object_that_changed_hands_before_the_take_over_is_left_alone() {
        let slab = RawSlab::options(8, 1).chain(1).private().unwrap();
        let (first, second) = (slab.cache().unwrap(), slab.cache().unwrap());
        let mapping = std::sync::Arc::clone(first.mapping());
        let word = || Word(mapping.words()[0].load(Ordering::Acquire));
        drop(first.alloc().unwrap());
        let object = first.alloc().unwrap();
        let found = word();
        drop(object);
        drop(first);
        let object = second.alloc().unwrap();
        let held = word();
        assert!(matches!((found.state(), held.state()), (Some(State::Held(a)), Some(State::Held(b))) if a != b));

        let own = Identity::own().unwrap().recovering().word();
        let namespace = process::namespace().unwrap();
        let mut wards = Wards { mapping: &mapping, own, namespace, passage: Passage::Locked, slots: Vec::new() };
        let mut recovered = Recovered::default();
        wards.recover_object(0, found, true, &mut recovered);
        assert_eq!((recovered.orphans, word().state()), (0, held.state()));
        drop(object);
    }
}
