//! Iteration over the allocated objects.

use std::sync::atomic::Ordering;

use crate::mapped::attach::NO_OWNER;
use crate::mapped::handle::Handle;
use crate::mapped::mapping::Mapping;
use crate::mapped::process::Identity;
use crate::word::{State, Word};

/// The holder of an allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// All processes: each reaches the object by its handle.
    Published,
    /// A process that died, or a cache that has ended: any cache may claim or free the object.
    Orphan,
    /// A process, to which the object is private.
    Process {
        /// Its PID.
        pid: u32,
    },
}

/// An allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its handle; for a private object, the handle that it will have.
    pub handle: Handle,
    /// Its holder.
    pub holder: Holder,
    /// The application's number for its present or last holder; see [`RawSlab::owner`](crate::RawSlab::owner).
    pub owner: u64,
}

/// All allocated objects of a slab, in order; see [`RawSlab::live`](crate::RawSlab::live).
pub struct Live<'s> {
    mapping: &'s Mapping,
    next: u64,
}

impl<'s> Live<'s> {
    pub(crate) fn new(mapping: &'s Mapping, next: u64) -> Self {
        Live { mapping, next }
    }
}

impl Iterator for Live<'_> {
    type Item = Object;

    fn next(&mut self) -> Option<Object> {
        let words = self.mapping.used_words();
        while self.next < words.len() as u64 {
            let index = self.next;
            self.next += 1;
            let found = Word(words[index as usize].load(Ordering::Acquire));
            let holder = match found.state() {
                Some(State::Published) => Holder::Published,
                Some(State::Orphan) => Holder::Orphan,
                Some(State::Held(slot)) => Holder::Process { pid: holder(self.mapping, slot) },
                _ => continue,
            };
            let handle = Handle::new(self.mapping.header.identity, index, found.generation());
            return Some(Object { handle, holder, owner: owner(self.mapping, index, found) });
        }
        None
    }
}

/// The owner of an object with this word: the number of its present holder, or else of its last holder.
pub(crate) fn owner(mapping: &Mapping, index: u64, found: Word) -> u64 {
    match (mapping.owners(), found.state()) {
        (Some(_), Some(State::Held(slot))) => {
            mapping.slots().get(usize::from(slot)).map_or(NO_OWNER, |slot| slot.user.load(Ordering::Relaxed))
        }
        // Relaxed: the number was written before the word, and the word was read with acquire.
        (Some(owners), _) => owners[index as usize].load(Ordering::Relaxed),
        (None, _) => NO_OWNER,
    }
}

/// The process whose cache has a slot; 0 for a free slot.
pub(crate) fn holder(mapping: &Mapping, slot: u16) -> u32 {
    let owner = mapping.slots().get(usize::from(slot)).map(|slot| slot.owner.load(Ordering::Acquire));
    owner.and_then(Identity::read).map_or(0, Identity::pid)
}
