//! A *line*: a wait queue in the order of tickets.

use std::collections::VecDeque;

/// The entries of waiters in the order of their tickets. The entry of the longest waiter is first.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(super) struct Line<E> {
    entries: VecDeque<(u64, E)>,
    tickets: u64,
}

impl<E> Line<E> {
    pub(super) const fn new() -> Self {
        Line { entries: VecDeque::new(), tickets: 0 }
    }

    /// Returns a new ticket, whose position is at the end of the line.
    pub(super) fn draw(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Adds an entry at the end of the line and returns its ticket.
    pub(super) fn enter(&mut self, entry: E) -> u64 {
        let ticket = self.draw();
        self.entries.push_back((ticket, entry));
        ticket
    }

    /// Adds an entry at the ticket's position, unless the ticket is in the line already.
    pub(super) fn keep(&mut self, ticket: u64, entry: impl FnOnce() -> E) {
        if let Err(place) = self.position(ticket) {
            self.entries.insert(place, (ticket, entry()));
        }
    }

    pub(super) fn contains(&self, ticket: u64) -> bool {
        self.position(ticket).is_ok()
    }

    /// Removes the entry with this ticket, if it is in the line.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<E> {
        let place = self.position(ticket).ok()?;
        self.entries.remove(place).map(|(_, entry)| entry)
    }

    /// Removes the entry of the longest waiter.
    pub(super) fn pop_front(&mut self) -> Option<E> {
        self.entries.pop_front().map(|(_, entry)| entry)
    }

    /// Removes all entries.
    pub(super) fn take(&mut self) -> impl Iterator<Item = E> + use<E> {
        std::mem::take(&mut self.entries).into_iter().map(|(_, entry)| entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Returns the position of a ticket. If the ticket is not in the line, returns as the error the position at which it belongs.
    fn position(&self, ticket: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&ticket, |(ticket, _)| *ticket)
    }
}
