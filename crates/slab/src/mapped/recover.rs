//! Acting for the dead, while the living go on.
//!
//! A survivor becomes the dead cache: it takes over the slot, completes what the cache had announced to the depot, finds the cache's objects by their words,
//! gives the free ones to the depot *in that cache's name*, marks those it held as orphans, and gives the slot up. Recovery consists of the same steps as
//! ordinary work, so the next survivor acts for one that dies in the middle by the same rules.
//!
//! No lock is needed: a slot is taken over by compare-and-swap, and its objects are its owner's alone. Several survivors share the dead among them. One
//! that is stopped keeps what it has taken over, and nothing else, until it goes on or dies.

use std::ops::AddAssign;
use std::sync::atomic::Ordering;

use crate::depot::Entry;
use crate::mapped::error::Error;
use crate::mapped::process::{self, Identity};
use crate::mapped::shared::Shared;
use crate::word::{State, Word};

/// What was found in the hands of dead processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Their caches.
    pub caches: u64,
    /// Free objects, which are in the depot now.
    pub freed: u64,
    /// Objects that they held, or that were forgotten, which can be claimed or freed now.
    pub orphans: u64,
    /// Caches that are left as they are, because the memory they shared makes no sense: free objects of theirs are out of reach until the slab is opened
    /// while no process uses it.
    pub damaged: u64,
}

impl AddAssign for Recovered {
    fn add_assign(&mut self, other: Self) {
        self.caches += other.caches;
        self.freed += other.freed;
        self.orphans += other.orphans;
        // Those of before were looked at again.
        self.damaged = other.damaged;
    }
}

/// How a recovery passes the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It must be open.
    Open,
    /// The caller is there.
    Ours,
}

impl Shared {
    /// Returns what dead processes had in their caches, and marks what they held. If `thoroughly`, marks what ended caches have left, too: objects that
    /// were forgotten (`std::mem::forget`), which takes a look at all words though no process has died. `None` if the gate is shut, or the slab was not
    /// used since the last boot.
    pub(crate) fn recover_beside(&self, thoroughly: bool, passage: Passage) -> Result<Option<Recovered>, Error> {
        let namespace = process::namespace()?;
        // Those who have come since this process opened the slab, when no process had a cache, may be of another namespace.
        self.check_namespace(namespace)?;
        if !self.may_recover(namespace, passage) {
            return Ok(None);
        }
        let mut wards =
            Wards { shared: self, own: Identity::own()?.recovering().word(), namespace, passage, slots: Vec::new() };
        wards.take_over_the_dead();
        // Again, now that the slots are ours; see `attach.rs`.
        if !self.may_recover(namespace, passage) {
            return Ok(None);
        }
        if wards.slots.is_empty() && !thoroughly {
            return Ok(Some(Recovered::default()));
        }
        Ok(Some(wards.recover(thoroughly)))
    }

    fn may_recover(&self, namespace: u64, passage: Passage) -> bool {
        passage == Passage::Ours || self.is_ready(namespace)
    }
}

/// The slots that this process has taken over. Those that are left when this is dropped are as they were before.
struct Wards<'s> {
    shared: &'s Shared,
    /// This process, acting for others.
    own: u64,
    namespace: u64,
    passage: Passage,
    /// By number, up to the last one that was asked for.
    slots: Vec<Option<Ward<'s>>>,
}

/// A slot that was taken over.
struct Ward<'s> {
    /// Its owner before: a dead process, or none.
    before: u64,
    /// Free objects on their way to the depot.
    chains: Chains<'s>,
    is_damaged: bool,
}

impl<'s> Wards<'s> {
    fn take_over_the_dead(&mut self) {
        let shared = self.shared;
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        for (number, slot) in (0..).zip(shared.slots()) {
            let found = slot.owner.load(Ordering::SeqCst);
            let Some(owner) = Identity::read(found) else { continue };
            if !alive.contains(&owner) && !dead.contains(&owner) {
                if shared.lives(owner) { alive.push(owner) } else { dead.push(owner) }
            }
            // The namespace after the owner: it can't change while any slot has one, so the owner was looked for in the right one.
            if dead.contains(&owner) && shared.namespace_word().load(Ordering::SeqCst) == self.namespace {
                self.take_over(number, found);
            }
        }
    }

    /// Makes a slot ours if it has still this owner; fails if another survivor, or a new cache, was faster.
    fn take_over(&mut self, number: u16, before: u64) -> bool {
        let owner = &self.shared.slots()[usize::from(number)].owner;
        let is_ours = owner.compare_exchange(before, self.own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if is_ours {
            let chains = Chains::new(self.shared, number);
            self.slots.resize_with(self.slots.len().max(usize::from(number) + 1), || None);
            self.slots[usize::from(number)] = Some(Ward { before, chains, is_damaged: false });
        }
        is_ours
    }

    fn recover(mut self, thoroughly: bool) -> Recovered {
        let mut recovered = Recovered::default();
        for (number, ward) in (0..).zip(&mut self.slots) {
            if let Some(ward) = ward {
                ward.is_damaged = self.shared.depot().settle(number).is_err();
            }
        }
        for (index, word) in (0..).zip(self.shared.used_words()) {
            self.recover_object(index, Word(word.load(Ordering::Acquire)), thoroughly, &mut recovered);
        }
        for ward in self.slots.iter_mut().flatten().filter(|ward| !ward.is_damaged) {
            ward.is_damaged = ward.chains.finish().is_err();
        }
        self.give_up(&mut recovered);
        recovered
    }

    /// Frees or marks an object whose word was `found`, if its cache is a ward. A cache alone changes the words of its objects, and of a ward that is us;
    /// a slot that becomes a ward only here may have changed `found` until then.
    fn recover_object(&mut self, index: u64, found: Word, thoroughly: bool, recovered: &mut Recovered) {
        match found.state() {
            Some(State::Cached(number)) => {
                let entry = Entry { generation: found.generation(), index };
                recovered.freed += u64::from(self.free(number, entry));
            }
            Some(State::Held(number)) if self.is_ward(number) || thoroughly && self.take_over_ended(number) => {
                // Acquire: pairs with the release of the last store to the word, which comes before the slot's last owner gave it up.
                let now = Word(self.shared.words()[index as usize].load(Ordering::Acquire));
                if now.state() == Some(State::Held(number)) {
                    recovered.orphans += 1;
                    self.shared.orphan(index, number);
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

    /// Has a free object given to the depot if it is of a dead cache.
    fn free(&mut self, number: u16, entry: Entry) -> bool {
        let Some(ward) = self.ward(number) else { return false };
        if ward.is_damaged || ward.before == Identity::NOBODY {
            return false;
        }
        ward.is_damaged = ward.chains.push(entry).is_err();
        true
    }

    /// Takes over a slot that has no owner although an object is held by it: one that was forgotten.
    fn take_over_ended(&mut self, number: u16) -> bool {
        let slot = self.shared.slots().get(usize::from(number));
        if slot.is_none_or(|slot| slot.owner.load(Ordering::SeqCst) != Identity::NOBODY) {
            return false;
        }
        // As for the dead: first the slot, then the gate.
        if !self.take_over(number, Identity::NOBODY) {
            return false;
        }
        let may_recover = self.shared.may_recover(self.namespace, self.passage);
        if !may_recover {
            self.hand_back(usize::from(number));
        }
        may_recover
    }

    /// Ends the recovery: slots whose objects are all found are free, others as before.
    fn give_up(&mut self, recovered: &mut Recovered) {
        for number in 0..self.slots.len() {
            let Some(ward) = &self.slots[number] else { continue };
            if ward.is_damaged {
                recovered.damaged += 1;
                self.hand_back(number);
                continue;
            }
            recovered.caches += u64::from(ward.before != Identity::NOBODY);
            // Release: the next owner of the slot finds nothing of the old one.
            self.replace_owner(number, Identity::NOBODY);
            self.slots[number] = None;
        }
    }

    fn hand_back(&mut self, number: usize) {
        if let Some(ward) = self.slots[number].take() {
            self.replace_owner(number, ward.before);
        }
    }

    /// An exchange, because a newcomer of another namespace, which is about to step back, may have taken the slot for free.
    fn replace_owner(&self, number: usize, new: u64) {
        let owner = &self.shared.slots()[number].owner;
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
    shared: &'a Shared,
    slot: u16,
    chain: Vec<Entry>,
}

impl<'a> Chains<'a> {
    /// They are given by the cache with this slot.
    pub(crate) fn new(shared: &'a Shared, slot: u16) -> Self {
        Chains { shared, slot, chain: Vec::with_capacity(shared.header.geometry.chain as usize) }
    }

    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Error> {
        self.chain.push(entry);
        if self.chain.len() as u64 == self.shared.header.geometry.chain { self.finish() } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.shared.depot().give(self.slot, &self.chain)?;
        self.chain.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawSlab;

    #[test]
    fn an_object_that_changed_hands_before_its_slot_was_taken_over_is_left_alone() {
        let slab = RawSlab::options(8, 1).chain(1).private().unwrap();
        let (first, second) = (slab.cache().unwrap(), slab.cache().unwrap());
        let shared = std::sync::Arc::clone(first.shared());
        let word = || Word(shared.words()[0].load(Ordering::Acquire));
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
        let mut wards = Wards { shared: &shared, own, namespace, passage: Passage::Ours, slots: Vec::new() };
        let mut recovered = Recovered::default();
        wards.recover_object(0, found, true, &mut recovered);
        assert_eq!((recovered.orphans, word().state()), (0, held.state()));
        drop(object);
    }
}
