//! The values and the waiters of a channel, as they are under its lock.
//!
//! **Senders.** A sender that finds the channel full enters a line together with its value. A receiver that takes a value
//! out of the channel moves the first value of the line into it, which completes that send. No newcomer comes in between.
//!
//! **Receivers.** A receiver that finds no value enters a line. The next value is *promised* to the first receiver of
//! the line, which leaves the line and is woken. A promise reserves one of the values for it, so no newcomer takes the
//! last one; which of the values it gets is decided when it takes one, so the values keep their order. If the receiver
//! gives up instead, its promise goes to the next in line.
//!
//! A ticket shows a waiter whether its turn has come: until then the ticket is in the line.
//!
//! Between two calls:
//!
//! - There are at most `capacity` values, and at most as many promises as values.
//! - While a receiver is in line, all values are promised.
//! - While a sender is in line and there are receivers, the channel is full.
//!
//! No call runs code of a user: values and waiters leave through the results, and the caller drops and wakes them
//! after it has released the lock. The waiters' type is a parameter so that a test can explore every order of calls.

#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::VecDeque;

use millstream_ring::channel::{Disconnected, SendError, TryRecvError, TrySendError};

use crate::sync::line::Line;

/// See the [module](self).
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(super) struct Queue<T, W> {
    values: VecDeque<T>,
    capacity: usize,
    /// The number of receivers that have left the line for a value and have not taken it yet.
    promises: usize,
    /// The number of handles.
    senders: usize,
    receivers: usize,
    sending: Line<(W, T)>,
    receiving: Line<W>,
}

/// The waiters to wake after a value was taken out.
pub(super) struct Woken<W> {
    sender: Option<W>,
    receiver: Option<W>,
    /// All receivers in line, after the last value.
    last: Vec<W>,
}

impl<W> Woken<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.sender.is_none() && self.receiver.is_none() && self.last.is_empty()
    }
}

impl<W> IntoIterator for Woken<W> {
    type Item = W;
    type IntoIter =
        std::iter::Chain<std::iter::Chain<std::option::IntoIter<W>, std::option::IntoIter<W>>, std::vec::IntoIter<W>>;

    fn into_iter(self) -> Self::IntoIter {
        self.sender.into_iter().chain(self.receiver).chain(self.last)
    }
}

/// A value that was taken out, and the waiters to wake.
type Taken<T, W> = (T, Woken<W>);

impl<T, W: Clone> Queue<T, W> {
    /// Returns an empty queue with one sender and one receiver. `values` has room for `capacity` values.
    pub(super) fn new(values: VecDeque<T>, capacity: usize) -> Self {
        let (sending, receiving) = (Line::new(), Line::new());
        Queue { values, capacity, promises: 0, senders: 1, receivers: 1, sending, receiving }
    }

    /// Sends a value if there is room, and returns the receiver to wake.
    pub(super) fn send(&mut self, value: T) -> Result<Option<W>, TrySendError<T>> {
        if self.receivers == 0 {
            return Err(TrySendError::Disconnected(value));
        }
        if self.values.len() == self.capacity {
            return Err(TrySendError::Full(value));
        }
        self.values.push_back(value);
        Ok(self.promise())
    }

    /// Enters the line of senders, after [`send`](Self::send) has found no room, and returns the ticket.
    pub(super) fn enter_sending(&mut self, waiter: W, value: T) -> u64 {
        self.sending.enter((waiter, value))
    }

    /// Returns the fate of a value in line: sent, or returned because the receivers are gone; `None` while it waits. After
    /// an answer other than `None` the ticket is void.
    pub(super) fn sent(&mut self, ticket: u64) -> Option<Result<(), SendError<T>>> {
        if self.receivers > 0 && self.sending.contains(ticket) {
            return None;
        }
        Some(self.sending.remove(ticket).map_or(Ok(()), |(_, value)| Err(SendError(value))))
    }

    /// Leaves the line of senders. Returns the value with its waiter, or `None` if it has been sent.
    pub(super) fn leave_sending(&mut self, ticket: u64) -> Option<(W, T)> {
        self.sending.remove(ticket)
    }

    /// Takes a value that is promised to no other receiver.
    pub(super) fn receive(&mut self) -> Result<Taken<T, W>, TryRecvError> {
        if self.values.len() > self.promises {
            Ok(self.take())
        } else if self.has_ended() {
            Err(TryRecvError::Disconnected)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Enters the line of receivers, after [`receive`](Self::receive) has found no value, and returns the ticket.
    pub(super) fn enter_receiving(&mut self, waiter: W) -> u64 {
        self.receiving.enter(waiter)
    }

    /// Takes the value that was promised to a receiver from the line; `None` while it waits. After an answer other than
    /// `None` the ticket is void.
    pub(super) fn received(&mut self, ticket: u64) -> Option<Result<Taken<T, W>, Disconnected>> {
        if !self.receiving.contains(ticket) {
            self.promises -= 1;
            return Some(Ok(self.take()));
        }
        if !self.has_ended() {
            return None;
        }
        self.receiving.remove(ticket);
        Some(Err(Disconnected))
    }

    /// Leaves the line of receivers. If a value was promised already, the promise goes to the receiver returned, which
    /// must be woken, or is void if the line is empty.
    pub(super) fn leave_receiving(&mut self, ticket: u64) -> Option<W> {
        if self.receiving.remove(ticket).is_some() {
            return None;
        }
        self.promises -= 1;
        self.promise()
    }

    pub(super) fn add_sender(&mut self) {
        self.senders += 1;
    }

    pub(super) fn add_receiver(&mut self) {
        self.receivers += 1;
    }

    /// Removes a sender, and returns the receivers to wake.
    pub(super) fn remove_sender(&mut self) -> Vec<W> {
        self.senders -= 1;
        self.receivers_at_the_end()
    }

    /// Removes a receiver. If it was the last one, returns the values that remain and the senders to wake.
    pub(super) fn remove_receiver(&mut self) -> (VecDeque<T>, Vec<W>) {
        self.receivers -= 1;
        if self.receivers > 0 {
            return (VecDeque::new(), Vec::new());
        }
        let senders = self.sending.iter().map(|(waiter, _)| waiter.clone()).collect();
        (std::mem::take(&mut self.values), senders)
    }

    /// Returns whether no value is left and none can come. A promise may still pass to another receiver, so the last value
    /// must have been taken, not only promised.
    fn has_ended(&self) -> bool {
        self.senders == 0 && self.values.is_empty()
    }

    fn receivers_at_the_end(&self) -> Vec<W> {
        if self.has_ended() { self.receiving.iter().cloned().collect() } else { Vec::new() }
    }

    fn take(&mut self) -> Taken<T, W> {
        let value = self.values.pop_front().expect("a receiver may take a value that is there");
        let sender = self.sending.pop_front().map(|(sender, value)| {
            self.values.push_back(value);
            sender
        });
        let receiver = self.promise();
        (value, Woken { sender, receiver, last: self.receivers_at_the_end() })
    }

    /// Promises a value to the first receiver in line. Each call makes at most one more value available, so one promise
    /// is enough.
    fn promise(&mut self) -> Option<W> {
        if self.values.len() == self.promises {
            return None;
        }
        let receiver = self.receiving.pop_front()?;
        self.promises += 1;
        Some(receiver)
    }
}
