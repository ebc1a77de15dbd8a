//! A consumer as others see it: how far it is, and whom it follows.

use std::collections::BTreeSet;
use std::fmt;
// The standard one in a model, too: `has_left` orders who reads it.
use std::sync::{Arc, OnceLock};

use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Progress, SequencerParts};

/// Whom a consumer may follow: the producers, or a party of consumers.
pub(super) trait Followed: Send + Sync {
    /// Who is to be followed instead, if this one has left.
    fn instead(&self) -> Option<&Follows>;

    /// As [`Progress::completed`]; `None` if it has left.
    fn completed_if_here(&self, from: u64) -> Option<u64>;

    fn has_left(&self) -> bool {
        self.instead().is_some()
    }
}

impl<P: SequencerParts> Followed for P {
    /// Producers stay: what they have published stays to be handled.
    fn instead(&self) -> Option<&Follows> {
        None
    }

    fn completed_if_here(&self, from: u64) -> Option<u64> {
        Some(self.completed(from))
    }
}

/// Those whom a consumer follows.
#[derive(Default, Clone)]
pub(super) struct Follows(Vec<Arc<dyn Followed>>);

impl Follows {
    /// Each of `parties` once; in the place of who has left, those whom it followed.
    ///
    /// Who has left is looked into once, however many followed it: of pairs that followed pairs there would be 2^k ways through k of them.
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

    /// Adds one, and forgets who has left.
    pub(super) fn add(&mut self, party: &Arc<dyn Followed>) {
        *self = Follows::new(self.0.iter().chain([party]));
    }

    /// Forgets who has left: those whom it followed take its place.
    pub(super) fn forget_who_left(&mut self) {
        *self = Follows::new(&self.0);
    }

    /// What all of them have completed, all being through with everything before `from`.
    pub(super) fn completed(&self, from: u64) -> u64 {
        // Again only if somebody has left meanwhile.
        self.completed_if_here(from).unwrap_or_else(|| Follows::new(&self.0).completed(from))
    }

    /// The same for who may change the list: who has left is not met again.
    pub(super) fn completed_forgetting(&mut self, from: u64) -> u64 {
        loop {
            if let Some(completed) = self.completed_if_here(from) {
                return completed;
            }
            self.forget_who_left();
        }
    }

    /// `None` if one of them has left.
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
/// When all its members have left, those behind it follow those whom it followed: the order between the others stays.
///
/// Whom it follows its members know, each for itself. They forget who has left, and the last one hands on whom it still follows. So
/// what a party keeps alive after it has left was there when it left, and does not grow with those who came and went before.
#[derive(Debug)]
pub(super) struct Party<C> {
    pub(super) own: C,
    /// How many have not left.
    members: AtomicUsize,
    /// Set when the last one has.
    has_left: AtomicBool,
    /// Written before that.
    instead: OnceLock<Follows>,
}

impl<C> Party<C> {
    pub(super) fn new(own: C, members: usize) -> Self {
        Party { own, members: AtomicUsize::new(members), has_left: AtomicBool::new(false), instead: OnceLock::new() }
    }

    /// One of its members leaves, which followed `follows`; whether it was the last.
    pub(super) fn leave(&self, mut follows: Follows) -> bool {
        // Release and acquire: the last one passes on what those before it did.
        if self.members.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        follows.forget_who_left();
        self.instead.set(follows).expect("one member is the last");
        // Release pairs with the acquire in `instead`: what members read of the slots comes before what others write to them.
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
        // Who has come further than the members did has seen that they left: `from` is handed on with release and acquire.
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
    fn who_has_left_keeps_nobody_who_left_before() {
        let producers = Arc::new(Single::starting_at(7)) as Arc<dyn Followed>;
        let mut last = party();
        let mut follows = Follows::new([&producers]);
        for _ in 0..100 {
            let next = party();
            // It came while the one before was there.
            let before = std::mem::replace(&mut follows, Follows::new([&followed(&last)]));
            let gone = Arc::downgrade(&last);
            assert!(last.leave(before));
            last = next;
            assert_eq!(follows.completed(0), 7);
            assert_eq!(gone.strong_count(), 1, "it is in the list still");
            assert_eq!(follows.completed_forgetting(0), 7);
            assert_eq!((gone.strong_count(), follows.0.len()), (0, 1));
        }
    }
}
