//! Acting for the dead, while the living go on.
//!
//! A survivor becomes the dead cache: it takes over the slot, brings to an end what that was doing to the depot, finds its
//! objects by their words, gives the free ones to the depot *as that cache*, marks those it held as orphans, and gives the
//! slot up. So recovery is made of the same steps as ordinary work, and if the survivor dies in the middle the next one
//! begins again with the same rules.

use std::sync::atomic::Ordering;

use crate::depot::Entry;
use crate::mapped::error::Error;
use crate::mapped::process::Identity;
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
}

impl Shared {
    /// Returns what dead processes had in their caches, and marks what they held. If `thoroughly`, marks what ended caches have left, too:
    /// objects that were forgotten (`std::mem::forget`), which takes a look at all words though nobody has died. The caller is at the
    /// gate.
    pub(crate) fn recover_at_the_gate(&self, thoroughly: bool) -> Result<Recovered, Error> {
        // Nobody registers a cache while we are at the gate, so slots that are free now stay so.
        let ended: Vec<bool> =
            self.slots().iter().map(|slot| slot.owner.load(Ordering::SeqCst) == Identity::NOBODY).collect();
        let taken = self.take_over()?;
        if taken.is_empty() && !thoroughly {
            return Ok(Recovered::default());
        }
        let recovered = self.act_for(&taken.iter().map(|&(slot, _)| slot).collect::<Vec<_>>(), &ended);
        if recovered.is_err() {
            // What is damaged is for whoever opens the slab alone, and must not seem to be in use until then.
            for (slot, owner) in taken {
                self.slots()[usize::from(slot)].owner.store(owner, Ordering::Release);
            }
        }
        recovered
    }

    fn act_for(&self, dead: &[u16], ended: &[bool]) -> Result<Recovered, Error> {
        let mut recovered = Recovered { caches: dead.len() as u64, ..Recovered::default() };
        for &slot in dead {
            self.depot().settle(slot)?;
        }
        let mut is_dead = vec![false; self.slots().len()];
        dead.iter().for_each(|&slot| is_dead[usize::from(slot)] = true);
        let is = |slots: &[bool], slot: u16| slots.get(usize::from(slot)).copied().unwrap_or(false);

        // The words of a cache's objects are changed by that cache alone, and we are it now. Where nobody has died there are no chains.
        let mut chains = Chains::new(self, dead.first().copied().unwrap_or_default());
        for (index, word) in (0..).zip(&self.words()[..self.capacity() as usize]) {
            let found = Word(word.load(Ordering::Acquire));
            let generation = found.generation();
            match found.state() {
                Some(State::Cached(slot)) if is(&is_dead, slot) => {
                    recovered.freed += 1;
                    chains.push(Entry { generation, index })?;
                }
                Some(State::Held(slot)) if is(&is_dead, slot) || is(ended, slot) => {
                    recovered.orphans += 1;
                    self.orphan(index, slot);
                }
                _ => {}
            }
        }
        chains.finish()?;
        let own = Identity::own()?.recovering().word();
        for &slot in dead {
            // Release: whoever has the slot next finds nothing of the old one. An exchange, because a newcomer of another namespace, which is
            // about to step back, may have taken it for free.
            let owner = &self.slots()[usize::from(slot)].owner;
            let _ = owner.compare_exchange(own, Identity::NOBODY, Ordering::Release, Ordering::Relaxed);
        }
        Ok(recovered)
    }

    /// Makes the slots of dead processes ours; returns them with their owners.
    fn take_over(&self) -> Result<Vec<(u16, u64)>, Error> {
        let own = Identity::own()?.recovering().word();
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        let mut taken = Vec::new();
        for (number, slot) in (0..).zip(self.slots()) {
            let found = slot.owner.load(Ordering::Acquire);
            let Some(owner) = Identity::read(found) else { continue };
            if !alive.contains(&owner) && !dead.contains(&owner) {
                if self.lives(owner) { alive.push(owner) } else { dead.push(owner) }
            }
            // The exchange fails if another survivor was faster.
            if dead.contains(&owner)
                && slot.owner.compare_exchange(found, own, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                taken.push((number, found));
            }
        }
        Ok(taken)
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
