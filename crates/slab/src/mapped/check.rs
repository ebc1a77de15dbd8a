//! Counts objects by state, and checks that each is in exactly one place, or has exactly one holder.

use std::sync::atomic::Ordering;

use crate::depot::{Head, NONE, next_chain};
use crate::mapped::mapping::Mapping;
use crate::mapped::process::Identity;
use crate::slot::{Intent, Slot};
use crate::word::{State, Word};

/// The objects of a slab, counted by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The maximum number of objects.
    pub max_objects: u64,
    /// The number of objects that may be used before the slab grows.
    pub capacity: u64,
    /// Objects never used.
    pub virgin: u64,
    /// Objects free in the depot.
    pub free: u64,
    /// Objects free in the caches.
    pub cached: u64,
    /// Objects allocated and private.
    pub held: u64,
    /// Objects allocated and published.
    pub published: u64,
    /// Objects allocated whose holder has died.
    pub orphans: u64,
    /// Objects whose generations are used up.
    pub retired: u64,
    /// Objects whose words are invalid.
    pub damaged: u64,
    /// Caches in use.
    pub caches: u64,
}

impl Usage {
    pub(crate) fn count(mapping: &Mapping) -> Self {
        let capacity = mapping.capacity();
        let mut usage = Usage { max_objects: mapping.header.geometry.max_objects, capacity, ..Usage::default() };
        let used = mapping.written_words();
        usage.virgin = capacity.saturating_sub(used.len() as u64);
        for word in used {
            *match Word(word.load(Ordering::Acquire)).state() {
                Some(State::Virgin) => &mut usage.virgin,
                Some(State::Free) => &mut usage.free,
                Some(State::Cached(_)) => &mut usage.cached,
                Some(State::Held(_)) => &mut usage.held,
                Some(State::Published) => &mut usage.published,
                Some(State::Orphan) => &mut usage.orphans,
                Some(State::Retired) => &mut usage.retired,
                None => &mut usage.damaged,
            } += 1;
        }
        let in_use = |owner: u64| owner != Identity::NONE;
        usage.caches = mapping.slots().iter().filter(|slot| in_use(slot.owner.load(Ordering::Acquire))).count() as u64;
        usage
    }

    /// The number of allocated objects: private, published or orphaned.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.held + self.published + self.orphans
    }
}

/// The result of [`RawSlab::verify`](crate::RawSlab::verify) or [`Inspection::report`](crate::Inspection::report).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The objects by state.
    pub usage: Usage,
    /// The violated invariants; empty for a sound slab.
    pub problems: Vec<String>,
}

impl Report {
    pub(crate) fn of(mapping: &Mapping) -> Self {
        Report { problems: problems(mapping), usage: Usage::count(mapping) }
    }

    /// Whether every invariant holds.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Whether the free list is as a rebuild would make it. The caller has checked that no process uses the slab, and has
/// recovered all dead caches.
pub(crate) fn is_whole(mapping: &Mapping) -> bool {
    let head = Head::unpack(mapping.head().load(Ordering::Acquire));
    let is_quiet =
        |slot: &Slot| slot.intent.load(Ordering::Acquire) == 0 && slot.done.load(Ordering::Acquire) <= head.tag;
    mapping.slots().iter().all(is_quiet)
        && head.by as usize <= mapping.slots().len()
        && mapping.capacity_word().load(Ordering::Acquire) == mapping.capacity()
        && mapping.fresh().load(Ordering::Acquire) <= mapping.capacity()
        && mapping.written_words().len() == mapping.used_words().len()
        && problems(mapping).is_empty()
}

/// Lists the violated invariants.
fn problems(mapping: &Mapping) -> Vec<String> {
    let mut problems = Vec::new();
    let moving = moving(mapping);
    let in_depot = walk(mapping, &moving, &mut problems);
    // A half-rebuilt list is not a problem: if the process that was rebuilding it has died, the next holder of the lock
    // starts over.
    let is_remade = mapping.is_half_rebuilt();
    let owners: Vec<u64> = mapping.slots().iter().map(|slot| slot.owner.load(Ordering::Acquire)).collect();
    let fresh = mapping.fresh().load(Ordering::Acquire);
    for (index, word) in mapping.written_words().iter().enumerate() {
        let state = Word(word.load(Ordering::Acquire)).state();
        match state {
            Some(State::Free) if !in_depot[index] && !moving[index] && !is_remade => {
                problems.push(format!("object {index} is free and lost"));
            }
            // (A *held* object of a slot without an owner is not a problem: it was forgotten, and the next recovery
            // makes it an orphan.)
            Some(State::Cached(slot)) if !is_remade => {
                if owners.get(usize::from(slot)).is_none_or(|&owner| owner == Identity::NONE) {
                    problems.push(format!("object {index} is free in cache {slot}, which has no owner"));
                }
            }
            Some(State::Held(slot)) if usize::from(slot) >= owners.len() => {
                problems.push(format!("object {index} is held by cache {slot}, which does not exist"));
            }
            Some(State::Virgin) if (index as u64) < fresh => {
                problems.push(format!("object {index} was never used, although the header counts it as used"));
            }
            None => problems.push(format!("the word of object {index} makes no sense")),
            Some(_) => {}
        }
    }
    problems
}

/// Marks the objects in chains whose move a cache has announced.
fn moving(mapping: &Mapping) -> Vec<bool> {
    let depot = mapping.depot();
    let mut moving = vec![false; depot.words.len()];
    for slot in depot.slots {
        if let Some(Intent::Give(first) | Intent::Take(first)) = Intent::read(slot.intent.load(Ordering::Acquire)) {
            // A chain that leads outside the slab is reported when the depot is walked, or when its announcement is
            // completed.
            let _ = depot.walk(first, |index, _| {
                moving[index as usize] = true;
                Ok(())
            });
        }
    }
    moving
}

/// Marks the objects that the depot holds, by its links.
fn walk(mapping: &Mapping, moving: &[bool], problems: &mut Vec<String>) -> Vec<bool> {
    let depot = mapping.depot();
    let mut seen = vec![false; depot.words.len()];
    let mut first = mapping.first_chain();
    while first != NONE {
        let mut again = false;
        let walked = depot.walk(first, |index, word| {
            if word.state() != Some(State::Free) && !moving[index as usize] {
                problems.push(format!("object {index} is in the depot and not free"));
            }
            if std::mem::replace(&mut seen[index as usize], true) {
                problems.push(format!("object {index} is in the depot twice"));
                again = true;
            }
            Ok(())
        });
        if let Err(damage) = walked {
            problems.push(format!("{} ({})", damage.what, damage.at));
            break;
        }
        if again {
            break;
        }
        first = next_chain(depot.links[first as usize].load(Ordering::Acquire));
    }
    seen
}
