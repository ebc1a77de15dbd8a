//! The line of waiters in front of a mutex or an event.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::waiter::Waiter;

/// Waiters, the longest waiter first.
pub(super) struct WaitList {
    line: Mutex<Line>,
}

struct Line {
    /// The waiters, in the order of their tickets.
    waiters: VecDeque<(u64, Waiter)>,
    tickets: u64,
}

impl Line {
    /// Returns the position of a ticket, or the position where it would be.
    fn position(&self, ticket: u64) -> Result<usize, usize> {
        self.waiters.binary_search_by_key(&ticket, |(ticket, _)| *ticket)
    }
}

impl WaitList {
    pub(super) const fn new() -> Self {
        WaitList { line: Mutex::new(Line { waiters: VecDeque::new(), tickets: 0 }) }
    }

    /// Wakes the longest waiter and removes it.
    pub(super) fn wake_one(&self) {
        let first = self.line.lock().waiters.pop_front();
        if let Some((_, waiter)) = first {
            waiter.wake();
        }
    }

    /// Wakes and removes all waiters.
    pub(super) fn wake_all(&self) {
        let waiters = std::mem::take(&mut self.line.lock().waiters);
        waiters.iter().for_each(|(_, waiter)| waiter.wake());
    }
}

/// A waiter's place in the line, which it may lose and regain. If a fiber unwinds and drops its place, the line stays
/// in order.
pub(super) struct Place<'a> {
    list: &'a WaitList,
    ticket: Option<u64>,
}

impl<'a> Place<'a> {
    pub(super) fn new(list: &'a WaitList) -> Self {
        Place { list, ticket: None }
    }

    /// Checks `is_done` and, if the result is `false`, makes sure that the waiter is in the line. Both happen under the
    /// line's mutex, so a change before a [`wake_one`](WaitList::wake_one) or [`wake_all`](WaitList::wake_all) is
    /// either seen or followed by a wake-up. A waiter that lost its place regains it, near the front.
    pub(super) fn enter_unless(&mut self, waiter: &Waiter, is_done: impl FnOnce() -> bool) -> bool {
        let mut line = self.list.line.lock();
        if is_done() {
            // A woken waiter is no longer in the line.
            if let Some(Ok(place)) = self.ticket.take().map(|ticket| line.position(ticket)) {
                line.waiters.remove(place);
            }
            return true;
        }
        let ticket = *self.ticket.get_or_insert_with(|| {
            line.tickets += 1;
            line.tickets
        });
        if let Err(place) = line.position(ticket) {
            line.waiters.insert(place, (ticket, waiter.clone()));
        }
        false
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut line = self.list.line.lock();
        let place = line.position(ticket);
        if let Ok(place) = place {
            line.waiters.remove(place);
        }
        drop(line);
        // The wake-up belongs to a waiter that will use it.
        if place.is_err() {
            self.list.wake_one();
        }
    }
}
