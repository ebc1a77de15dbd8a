//! The wait queue of a mutex or an event.

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

/// A waiter's position in the line. A woken waiter is removed from the line, and may enter it again at the same position. If a
/// fiber unwinds, dropping the `Place` removes the waiter.
pub(super) struct Place<'a> {
    list: &'a WaitList,
    ticket: Option<u64>,
}

impl<'a> Place<'a> {
    pub(super) fn new(list: &'a WaitList) -> Self {
        Place { list, ticket: None }
    }

    /// Calls `is_done`. If the result is `false`, makes sure that the waiter is in the line, at its former position if it has
    /// been there before.
    ///
    /// Both steps happen under the line's mutex. If another thread changes the condition and then calls
    /// [`wake_one`](WaitList::wake_one) or [`wake_all`](WaitList::wake_all), either `is_done` sees the change, or that call finds
    /// the waiter in the line.
    pub(super) fn enter_unless(&mut self, waiter: &Waiter, is_done: impl FnOnce() -> bool) -> bool {
        let mut line = self.list.line.lock();
        if is_done() {
            // If the waiter was woken, it has left the line already.
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
        // The waiter was woken but gives up, so it passes the wake-up on to the next waiter.
        if !was_in_line {
            self.list.wake_one();
        }
    }
}
