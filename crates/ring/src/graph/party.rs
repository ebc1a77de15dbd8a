//! A consumer as others see it: how far it is, and whom it follows.

use std::fmt;
use std::sync::Arc;

use crate::sequencer::{Progress, RETIRED};

/// Those whom a consumer follows.
#[derive(Clone, Default)]
pub(super) struct Follows(Vec<Arc<dyn Progress>>);

impl Follows {
    pub(super) fn new(parties: Vec<Arc<dyn Progress>>) -> Self {
        Follows(parties)
    }

    pub(super) fn push(&mut self, party: Arc<dyn Progress>) {
        self.0.push(party);
    }

    /// Puts those whom `party` follows in its place, each of them once.
    pub(super) fn replace<C>(&mut self, party: &Arc<Party<C>>) {
        let before = self.0.len();
        self.0.retain(|other| !same(other, party));
        if self.0.len() < before {
            for upstream in &party.follows.0 {
                if !self.0.iter().any(|other| same(other, upstream)) {
                    self.push(Arc::clone(upstream));
                }
            }
        }
    }

    /// What all of them have completed, all being through with everything before `from`.
    pub(super) fn completed(&self, from: u64) -> u64 {
        self.0.iter().map(|party| party.completed(from)).min().unwrap_or(from)
    }
}

/// Whether the two are one party.
fn same<A: ?Sized, B: ?Sized>(one: &Arc<A>, other: &Arc<B>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

impl fmt::Debug for Follows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follows({} parties)", self.0.len())
    }
}

/// One consumer, or one pool.
///
/// When it has left, those behind it follow those whom it followed: the order between the others stays.
#[derive(Debug)]
pub(super) struct Party<C> {
    pub(super) own: C,
    follows: Follows,
}

impl<C> Party<C> {
    pub(super) fn new(own: C, follows: Follows) -> Self {
        Party { own, follows }
    }

    /// Up to where it may consume, all before `from` being free.
    pub(super) fn free_until(&self, from: u64) -> u64 {
        self.follows.completed(from)
    }
}

impl<C: Progress> Progress for Party<C> {
    fn completed(&self, from: u64) -> u64 {
        match self.own.completed(from) {
            RETIRED => self.follows.completed(from),
            completed => completed,
        }
    }
}
