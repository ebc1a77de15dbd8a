//! A consumer as others see it: how far it is, and whom it follows.

use std::fmt;
use std::sync::Arc;

use crate::primitive::atomic::{AtomicUsize, Ordering};
use crate::sequencer::{Progress, SequencerParts};

/// Whom a consumer may follow: the producers, or a party of consumers.
pub(super) trait Followed: Progress {
    /// Who is to be followed instead, if this one has left.
    fn instead(&self) -> Option<&Follows>;

    fn has_left(&self) -> bool {
        self.instead().is_some()
    }
}

impl<P: SequencerParts> Followed for P {
    /// Producers stay: what they have published stays to be handled.
    fn instead(&self) -> Option<&Follows> {
        None
    }
}

/// Those whom a consumer follows.
#[derive(Default)]
pub(super) struct Follows(Vec<Arc<dyn Followed>>);

impl Follows {
    /// Each of `parties` once; in the place of who has left, those whom it followed.
    pub(super) fn new<'a>(parties: impl IntoIterator<Item = &'a Arc<dyn Followed>>) -> Self {
        let mut follows = Follows::default();
        parties.into_iter().for_each(|party| follows.add(party));
        follows
    }

    pub(super) fn add(&mut self, party: &Arc<dyn Followed>) {
        if let Some(instead) = party.instead() {
            instead.0.iter().for_each(|party| self.add(party));
        } else if !self.0.iter().any(|other| same(other, party)) {
            self.0.push(Arc::clone(party));
        }
    }

    /// Forgets who has left: those whom it followed take its place.
    pub(super) fn forget_who_left(&mut self) {
        *self = Follows::new(&self.0);
    }

    /// What all of them have completed, all being through with everything before `from`.
    pub(super) fn completed(&self, from: u64) -> u64 {
        self.0.iter().map(|party| party.completed(from)).min().unwrap_or(from)
    }
}

/// Whether the two are one party.
fn same(one: &Arc<dyn Followed>, other: &Arc<dyn Followed>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

impl fmt::Debug for Follows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follows({} parties)", self.0.len())
    }
}

/// One consumer, or one pool.
///
/// When all its members have left, those behind it follow those whom it followed: the order between the others stays.
#[derive(Debug)]
pub(super) struct Party<C> {
    pub(super) own: C,
    follows: Follows,
    /// How many have not left.
    members: AtomicUsize,
}

impl<C> Party<C> {
    pub(super) fn new(own: C, follows: Follows, members: usize) -> Self {
        Party { own, follows, members: AtomicUsize::new(members) }
    }

    /// Up to where it may consume, all before `from` being free.
    pub(super) fn free_until(&self, from: u64) -> u64 {
        self.follows.completed(from)
    }

    /// One of its members leaves; whether it was the last.
    pub(super) fn leave(&self) -> bool {
        // Release pairs with the acquire in `instead`: what members read of the slots comes before what others write to them. Acquire:
        // the last one passes on what those before it did.
        self.members.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl<C: Progress> Followed for Party<C> {
    fn instead(&self) -> Option<&Follows> {
        // Acquire pairs with the release in `leave`.
        (self.members.load(Ordering::Acquire) == 0).then_some(&self.follows)
    }
}

impl<C: Progress> Progress for Party<C> {
    fn completed(&self, from: u64) -> u64 {
        // Who has come further than the members did has seen that they left: `from` is handed on with release and acquire.
        self.instead().map_or_else(|| self.own.completed(from), |follows| follows.completed(from))
    }
}
