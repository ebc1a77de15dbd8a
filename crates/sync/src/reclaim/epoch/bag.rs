//! A thread's garbage: one bag that fills, and sealed bags that wait for their grace period.

use std::collections::VecDeque;

use crate::primitive::Ticket;
use crate::reclaim::retired::Retired;

/// Objects that were all unlinked before the epoch began and before the ticket was drawn.
pub(super) struct Sealed {
    pub(super) objects: Vec<Retired>,
    pub(super) epoch: u64,
    pub(super) ticket: Ticket,
}

/// Objects whose grace period is not over.
#[derive(Default)]
pub(super) struct Bags {
    pub(super) filling: Vec<Retired>,
    pub(super) sealed: VecDeque<Sealed>,
}

impl Bags {
    /// The number of bags at the front whose fence has been passed. Asking passes a fence if that takes no waiting.
    pub(super) fn fenced(&self) -> usize {
        self.sealed.iter().take_while(|bag| bag.ticket.is_done()).count()
    }

    /// The objects of those among the first `fenced` bags whose readers have all left: no reader is in an epoch before
    /// `oldest`.
    pub(super) fn expired(&mut self, fenced: usize, oldest: u64) -> impl Iterator<Item = Vec<Retired>> {
        let expired = self.sealed.iter().take(fenced).take_while(|bag| bag.epoch <= oldest).count();
        self.sealed.drain(..expired).map(|bag| bag.objects)
    }
}
