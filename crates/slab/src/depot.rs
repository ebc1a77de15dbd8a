//! The depot: a lock-free list of chains of free objects, which all caches share.
//!
//! ```text
//!  head ─► first of a chain ─► first of the next chain ─► …
//!  (tag, by)    │ next in the chain
//!               ▼
//!             second … last
//! ```
//!
//! The depot is a Treiber stack with a chain of objects at each node, so one exchange moves a whole chain. The head is
//! 128 bits: the first object, the slot of the cache that exchanged it last, and a tag that every exchange increments.
//! The tag is the generation counter of Nathan Taylor's allocator and rules out the ABA problem. With 64 bits the tag
//! never wraps: at 10 million exchanges a second that would take 58 000 years. A 64-bit head would leave 32 bits for
//! the tag, which would wrap within minutes; the wide exchange costs a few nanoseconds more, once per chain of objects.
//!
//! # A kill between two instructions
//! A process may die while it moves a chain, just before its exchange of the head or just after it. Other processes
//! cannot distinguish the two cases unless the exchange leaves a trace. So each cache announces in its slot the
//! operation that it is about to do and the tag that the head will have, and the head names the cache that exchanged it
//! last. Before another cache exchanges the head, it notes the head's tag in the slot of the cache that the head names.
//! So a dead cache's exchange happened if and only if
//!
//! - the head still carries its tag and its name, or
//! - its slot records that the tag was seen.
//!
//! A survivor must read the head first, and then the note. If the head no longer carries the dead cache's tag and name
//! when the survivor reads it, the note was made before the head changed.

use crate::primitive::{AtomicU64, AtomicU128, Ordering, fence};
use crate::slot::{Intent, Slot};
use crate::word::{Generation, State, Word};

/// The index that stands for no object.
pub(crate) const NONE: u32 = u32::MAX;

/// Damaged contents of shared memory, which no sequence of this library's instructions can have left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) what: &'static str,
    pub(crate) at: u64,
}

/// A free object that one cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) generation: Generation,
    pub(crate) index: u64,
}

/// The depot's head, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first object of the first chain, or [`NONE`].
    pub(crate) first: u32,
    /// One more than the slot of the cache that exchanged the head last; 0 before the first exchange.
    pub(crate) by: u32,
    pub(crate) tag: u64,
}

impl Head {
    pub(crate) fn pack(self) -> u128 {
        u128::from(self.tag) << 64 | u128::from(self.by) << 32 | u128::from(self.first)
    }

    pub(crate) fn unpack(bits: u128) -> Self {
        Head { first: bits as u32, by: (bits >> 32) as u32, tag: (bits >> 64) as u64 }
    }
}

/// The links of an object: the next object of its chain, and the first object of the next chain.
pub(crate) fn link(next: u32, next_chain: u32) -> u64 {
    u64::from(next_chain) << 32 | u64::from(next)
}

/// The next object of a chain.
pub(crate) fn next(link: u64) -> u32 {
    link as u32
}

/// The first object of the next chain.
pub(crate) fn next_chain(link: u64) -> u32 {
    (link >> 32) as u32
}

/// The depot. Its parts may be anywhere in memory. An exchange adds `STEP` to the tag; with a `STEP` of 0, a model
/// shows the ABA problem.
#[derive(Clone, Copy)]
pub(crate) struct Depot<'a, const STEP: u64 = 1> {
    pub(crate) head: &'a AtomicU128,
    pub(crate) words: &'a [AtomicU64],
    pub(crate) links: &'a [AtomicU64],
    pub(crate) slots: &'a [Slot],
    /// The maximum number of objects in a chain.
    pub(crate) chain: usize,
}

impl<const STEP: u64> Depot<'_, STEP> {
    /// Puts a chain of objects, cached by `slot`, into the depot. Lock-free.
    ///
    /// # Errors
    /// Returns [`Damage`] if the head names a cache that does not exist.
    pub(crate) fn give(&self, slot: u16, chain: &[Entry]) -> Result<(), Damage> {
        let Some(first) = chain.first() else { return Ok(()) };
        let first = first.index as u32;
        for pair in chain.windows(2) {
            // Relaxed, here and below: the exchange of the head publishes the links.
            self.links[pair[0].index as usize].store(link(pair[1].index as u32, NONE), Ordering::Relaxed);
        }
        let last = chain[chain.len() - 1].index as usize;
        self.links[last].store(link(NONE, NONE), Ordering::Relaxed);
        let second = next(self.links[first as usize].load(Ordering::Relaxed));

        let mut head = Head::unpack(self.head.load(Ordering::Acquire));
        // The announcement comes first: from here on a survivor finds the whole chain by the announcement, whatever the
        // objects' words say.
        self.slots[usize::from(slot)].announce(Intent::Give(first), head.tag.wrapping_add(STEP));
        for entry in chain {
            // Release: the word does not become free before the announcement is visible.
            self.words[entry.index as usize].store(entry.generation.free(), Ordering::Release);
        }
        loop {
            self.note(head, slot)?;
            self.links[first as usize].store(link(second, head.first), Ordering::Relaxed);
            let Err(found) = self.exchange(head, first, slot) else { break };
            head = found;
            self.slots[usize::from(slot)].target.store(head.tag.wrapping_add(STEP), Ordering::Release);
        }
        self.slots[usize::from(slot)].settle();
        Ok(())
    }

    /// Takes a chain out of the depot and passes each of its objects, cached by `slot`, to `keep`; returns their
    /// number. Lock-free.
    ///
    /// # Errors
    /// Returns [`Damage`] if the chain leads outside the slab. The kept objects are sound; the others are lost until a
    /// process opens the slab alone.
    pub(crate) fn take(&self, slot: u16, mut keep: impl FnMut(Entry)) -> Result<usize, Damage> {
        let mut head = Head::unpack(self.head.load(Ordering::Acquire));
        if head.first == NONE {
            return Ok(0);
        }
        let own = &self.slots[usize::from(slot)];
        loop {
            own.announce(Intent::Take(head.first), head.tag.wrapping_add(STEP));
            self.note(head, slot)?;
            // If another cache has taken the chain meanwhile, this link is out of date, and the exchange fails because
            // the tag has changed.
            let below = next_chain(self.link_of(head.first)?.load(Ordering::Relaxed));
            let Err(found) = self.exchange(head, below, slot) else { break };
            head = found;
            if head.first == NONE {
                own.settle();
                return Ok(0);
            }
        }
        let taken = self.walk(head.first, |index, word| {
            if word.state() != Some(State::Free) {
                return Err(Damage { what: "an object in the depot is not free", at: index });
            }
            let generation = word.generation();
            self.words[index as usize].store(generation.cached(slot), Ordering::Release);
            keep(Entry { generation, index });
            Ok(())
        });
        // The announcement ends after an error, too: the kept objects are in use already, and a later survivor of this
        // cache must not take them back.
        own.settle();
        // Pairs with the acquire fence of a reader: a reader that sees what an object's next holder writes also sees
        // the words of this chain.
        fence(Ordering::Release);
        taken
    }

    /// Completes the announced operation of a dead cache. Afterwards the words of all objects that the cache was moving
    /// name its slot. A call that was interrupted may be repeated from the beginning. The caller must be the slot's
    /// only owner.
    ///
    /// # Errors
    /// Returns [`Damage`] if the announcement is invalid, or if the chain leads outside the slab or contains an object that
    /// is not free.
    pub(crate) fn settle(&self, slot: u16) -> Result<(), Damage> {
        let own = &self.slots[usize::from(slot)];
        let word = own.intent.load(Ordering::Acquire);
        if word == 0 {
            return Ok(());
        }
        let damage = Damage { what: "a cache announced an operation that does not exist", at: word };
        let intent = Intent::read(word).ok_or(damage)?;
        let target = own.target.load(Ordering::Acquire);
        // The head is read first, then the note; the top of this file says why.
        let head = Head::unpack(self.head.load(Ordering::Acquire));
        let done = (head.by == u32::from(slot) + 1 && head.tag == target) || own.done.load(Ordering::Acquire) == target;
        let in_hand = match intent {
            Intent::Give(first) => (!done).then_some(first),
            Intent::Take(first) => done.then_some(first),
        };
        if let Some(first) = in_hand {
            self.walk(first, |index, word| {
                if !matches!(word.state(), Some(State::Free | State::Cached(_))) {
                    return Err(Damage { what: "an object on its way to or from the depot is not free", at: index });
                }
                // Some of the words name the slot already, if the cache or an earlier survivor died half-way.
                self.words[index as usize].store(word.generation().cached(slot), Ordering::Release);
                Ok(())
            })?;
        }
        own.settle();
        Ok(())
    }

    /// Notes, for the cache that exchanged the head last, that its exchange was seen. Every exchange comes after such a
    /// note, because the head is about to lose the only other trace of the previous exchange.
    fn note(&self, head: Head, slot: u16) -> Result<(), Damage> {
        if head.by == 0 || head.by == u32::from(slot) + 1 {
            return Ok(());
        }
        let by = head.by as usize - 1;
        let other = self.slots.get(by).ok_or(Damage { what: "the head names no cache", at: by as u64 })?;
        // The maximum keeps a late note from replacing a newer one. AcqRel: pairs with `settle`, which reads the head
        // first.
        other.done.fetch_max(head.tag, Ordering::AcqRel);
        Ok(())
    }

    /// Exchanges the head if it is still the one that was read; the tag rules out a head that has changed and changed
    /// back.
    fn exchange(&self, old: Head, first: u32, slot: u16) -> Result<(), Head> {
        let new = Head { first, by: u32::from(slot) + 1, tag: old.tag.wrapping_add(STEP) };
        // Release: the cache that takes this chain sees its links and words. Acquire: this cache sees the links and
        // words of a chain that it takes, and the bytes that the last holders of its objects wrote.
        let outcome = self.head.compare_exchange(old.pack(), new.pack(), Ordering::AcqRel, Ordering::Acquire);
        outcome.map(drop).map_err(Head::unpack)
    }

    /// Visits the objects of a chain; returns their number. The walk always ends, perhaps with a [`Damage`], even if
    /// other caches change the chain meanwhile.
    pub(crate) fn walk(
        &self,
        first: u32,
        mut visit: impl FnMut(u64, Word) -> Result<(), Damage>,
    ) -> Result<usize, Damage> {
        let mut index = first;
        for count in 1..=self.chain {
            let following = next(self.link_of(index)?.load(Ordering::Relaxed));
            let word = Word(self.words[index as usize].load(Ordering::Relaxed));
            visit(u64::from(index), word)?;
            if following == NONE {
                return Ok(count);
            }
            index = following;
        }
        Err(Damage { what: "a chain in the depot has no end", at: u64::from(first) })
    }

    fn link_of(&self, index: u32) -> Result<&AtomicU64, Damage> {
        let damage = Damage { what: "a chain in the depot leads outside the slab", at: u64::from(index) };
        self.links.get(index as usize).ok_or(damage)
    }
}
