//! The line of waiters in front of a mutex or an event.

use parking_lot::Mutex;

use super::line::Line;
use crate::waiter::Waiter;

/// Waiters, the longest waiter first.
pub(super) struct WaitList {
    line: Mutex<Line<Waiter>>,
}

impl WaitList {
    pub(super) const fn new() -> Self {
        WaitList { line: Mutex::new(Line::new()) }
    }

    /// Wakes the longest waiter and removes it.
    pub(super) fn wake_one(&self) {
        let first = self.line.lock().pop_front();
        if let Some(waiter) = first {
            waiter.wake();
        }
    }

    /// Wakes and removes all waiters.
    pub(super) fn wake_all(&self) {
        let waiters = self.line.lock().take();
        waiters.for_each(|waiter| waiter.wake());
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
            if let Some(ticket) = self.ticket.take() {
                line.remove(ticket);
            }
            return true;
        }
        let ticket = *self.ticket.get_or_insert_with(|| line.draw());
        line.keep(ticket, || waiter.clone());
        false
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let was_in_line = self.list.line.lock().remove(ticket).is_some();
        // This waiter was woken but gives up, so it passes the wake-up on to the next.
        if !was_in_line {
            self.list.wake_one();
        }
    }
}
