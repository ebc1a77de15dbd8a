//! A consumer or pool as other parties see it: its progress, and the parties it follows.

use std::collections::BTreeSet;
use std::fmt;
// These are the standard types even in a model: the `OnceLock` is read only after an acquiring load of `has_left`, so
// it needs no ordering of its own.
use std::sync::{Arc, OnceLock};

use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Progress, SequencerParts};

/// A party that a consumer may follow: the producers, or a party of consumers.
pub(super) trait Followed: Send + Sync {
    /// The parties to follow instead, if this one has left.
    fn instead(&self) -> Option<&Follows>;

    /// Like [`Progress::completed`]; `None` if the party has left.
    fn completed_if_here(&self, from: u64) -> Option<u64>;

    fn has_left(&self) -> bool {
        self.instead().is_some()
    }
}

impl<P: SequencerParts> Followed for P {
    /// Producers do not leave: their published events remain to be handled.
    fn instead(&self) -> Option<&Follows> {
        None
    }

    fn completed_if_here(&self, from: u64) -> Option<u64> {
        Some(self.completed(from))
    }
}

/// The parties that a consumer follows.
#[derive(Default, Clone)]
pub(super) struct Follows(Vec<Arc<dyn Followed>>);

impl Follows {
    /// Follows each of `parties` once; a party that has left is replaced with those that it followed.
    ///
    /// A party that has left is replaced only once, however many others followed it. Otherwise, with `k` layers of two
    /// parties that each follow both parties of the layer before, there would be 2^k paths to expand.
    pub(super) fn new<'a>(parties: impl IntoIterator<Item = &'a Arc<dyn Followed>>) -> Self {
        let mut follows = Follows::default();
        let mut seen = BTreeSet::new();
        let mut open = Vec::from_iter(parties);
        while let Some(party) = open.pop() {
            if !seen.insert(Arc::as_ptr(party).addr()) {
                continue;
            }
            match party.instead() {
                Some(instead) => open.extend(&instead.0),
                None => follows.0.push(Arc::clone(party)),
            }
        }
        follows
    }

    /// Adds a party, and forgets those that have left.
    pub(super) fn add(&mut self, party: &Arc<dyn Followed>) {
        *self = Follows::new(self.0.iter().chain([party]));
    }

    /// Replaces each party that has left with the parties that it followed.
    pub(super) fn forget_departed(&mut self) {
        *self = Follows::new(&self.0);
    }

    /// The position up to which all parties have completed, given that they have completed everything before `from`.
    pub(super) fn completed(&self, from: u64) -> u64 {
        // The list is rebuilt only if a party has left since the last call.
        self.completed_if_here(from).unwrap_or_else(|| Follows::new(&self.0).completed(from))
    }

    /// Like [`completed`](Self::completed), for a caller that may change the list: also removes parties that have left.
    pub(super) fn completed_forgetting(&mut self, from: u64) -> u64 {
        loop {
            if let Some(completed) = self.completed_if_here(from) {
                return completed;
            }
            self.forget_departed();
        }
    }

    /// The position up to which all parties have completed; `None` if one of them has left.
    fn completed_if_here(&self, from: u64) -> Option<u64> {
        let mut slowest = None;
        for party in &self.0 {
            let completed = party.completed_if_here(from)?;
            slowest = Some(slowest.map_or(completed, |slowest| completed.min(slowest)));
        }
        Some(slowest.unwrap_or(from))
    }
}

impl fmt::Debug for Follows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follows({} parties)", self.0.len())
    }
}

/// One consumer, or one pool.
///
/// When all members have left, the followers of the party follow the parties that it followed. So the remaining parties
/// stay in order.
///
/// Each member knows the parties that it follows, and forgets those that have left. The last member stores in `instead`
/// the parties that it still follows. So a departed party keeps in memory only the parties that were present when it
/// left, and none that had left earlier.
#[derive(Debug)]
pub(super) struct Party<C> {
    pub(super) own: C,
    /// The number of members that have not left.
    members: AtomicUsize,
    /// Set when the last member has left.
    has_left: AtomicBool,
    /// The parties to follow instead, written before `has_left` is set.
    instead: OnceLock<Follows>,
}

impl<C> Party<C> {
    pub(super) fn new(own: C, members: usize) -> Self {
        Party { own, members: AtomicUsize::new(members), has_left: AtomicBool::new(false), instead: OnceLock::new() }
    }

    /// Makes a member that followed `follows` leave; returns whether it was the last.
    pub(super) fn leave(&self, mut follows: Follows) -> bool {
        // Release and acquire: a thread that sees the last member leave also sees everything the other members did.
        if self.members.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        follows.forget_departed();
        self.instead.set(follows).expect("only one member is the last");
        // Release pairs with the acquire in `instead`: the members' reads of slots happen before later writes to those
        // slots.
        self.has_left.store(true, Ordering::Release);
        true
    }
}

impl<C: Progress> Followed for Party<C> {
    fn instead(&self) -> Option<&Follows> {
        // Acquire pairs with the release in `leave`.
        if self.has_left.load(Ordering::Acquire) { self.instead.get() } else { None }
    }

    fn completed_if_here(&self, from: u64) -> Option<u64> {
        // A thread whose `from` is beyond the members' progress has seen that they left, because positions are passed
        // between threads with release and acquire.
        if self.has_left() { None } else { Some(self.own.completed(from)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sequencer::Single;

    fn party() -> Arc<Party<Single>> {
        Arc::new(Party::new(Single::starting_at(0), 1))
    }

    fn followed(party: &Arc<Party<Single>>) -> Arc<dyn Followed> {
        Arc::clone(party) as Arc<dyn Followed>
    }

    #[test]
    fn a_departed_party_keeps_no_earlier_one_alive() {
        let producers = Arc::new(Single::starting_at(7)) as Arc<dyn Followed>;
        let mut last = party();
        let mut follows = Follows::new([&producers]);
        for _ in 0..100 {
            let next = party();
            // The next party joined while the one before was still present.
            let before = std::mem::replace(&mut follows, Follows::new([&followed(&last)]));
            let gone = Arc::downgrade(&last);
            assert!(last.leave(before));
            last = next;
            assert_eq!(follows.completed(0), 7);
            assert_eq!(gone.strong_count(), 1, "the list has dropped the departed party too early");
            assert_eq!(follows.completed_forgetting(0), 7);
            assert_eq!((gone.strong_count(), follows.0.len()), (0, 1));
        }
    }
}
