//! The values and the waiters of a channel: the state that its lock protects.
//!
//! **Senders.** A sender that finds the channel full joins the line of waiting senders, together with its value. A receiver
//! that takes a value out of the channel also moves the first value of the line into the channel, which completes that send. No
//! newcomer can use the room in between.
//!
//! **Receivers.** A receiver that finds no value joins the line of waiting receivers. The next value is *promised* to the first
//! receiver of the line, which leaves the line and is woken. A promise does not reserve a particular value: when the receiver
//! runs, it takes the oldest value, so the values keep their order. Newcomers may take only values that are not reserved. If
//! the receiver gives up instead, its promise passes to the next receiver in line.
//!
//! Each waiter has a ticket. As long as the ticket is in the line, the waiter must wait.
//!
//! Between two calls:
//!
//! - There are at most `capacity` values, and at most as many promises as values.
//! - While a receiver is in line, all values are promised.
//! - While a sender is in line and there are receivers, the channel is full.
//!
//! No call runs the user's code: values and waiters are returned to the caller, which drops the values and wakes the waiters
//! after it has released the lock. The type of the waiters is a parameter for a test that explores every order of calls.

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
    /// The number of receivers that have been promised a value and have not taken it yet.
    promises: usize,
    /// The number of senders that exist.
    senders: usize,
    receivers: usize,
    sending: Line<(W, T)>,
    receiving: Line<W>,
}

/// The waiters to wake after a value has been taken out.
pub(super) struct Woken<W> {
    sender: Option<W>,
    receiver: Option<W>,
    /// If that was the last value and no sender is left, all receivers in line; otherwise empty.
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

    /// Adds a sender to the line of senders, after [`send`](Self::send) has found no room, and returns its ticket.
    pub(super) fn enter_sending(&mut self, waiter: W, value: T) -> u64 {
        self.sending.enter((waiter, value))
    }

    /// Returns what happened to a waiting sender's value: it was sent, or it is returned because all receivers are gone. `None`
    /// means that it still waits. After any other result, the ticket is no longer valid.
    pub(super) fn sent(&mut self, ticket: u64) -> Option<Result<(), SendError<T>>> {
        if self.receivers > 0 && self.sending.contains(ticket) {
            return None;
        }
        Some(self.sending.remove(ticket).map_or(Ok(()), |(_, value)| Err(SendError(value))))
    }

    /// Removes from the line a sender that stops waiting. Returns its value and its waiter, or `None` if the value has been
    /// sent.
    pub(super) fn leave_sending(&mut self, ticket: u64) -> Option<(W, T)> {
        self.sending.remove(ticket)
    }

    /// Takes a value, if there is one that is not promised to another receiver.
    pub(super) fn receive(&mut self) -> Result<Taken<T, W>, TryRecvError> {
        if self.values.len() > self.promises {
            Ok(self.take())
        } else if self.has_ended() {
            Err(TryRecvError::Disconnected)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Adds a receiver to the line of receivers, after [`receive`](Self::receive) has found no value, and returns its ticket.
    pub(super) fn enter_receiving(&mut self, waiter: W) -> u64 {
        self.receiving.enter(waiter)
    }

    /// Takes the value that was promised to this waiting receiver. `None` means that it must still wait. After any other result,
    /// the ticket is no longer valid.
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

    /// Removes from the line a receiver that stops waiting. If a value was promised to it already, the promise passes to the
    /// next receiver in line, which is returned and must be woken. If the line is empty, the promise is withdrawn.
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

    /// Returns whether no value is left and none can be sent. A promised value that has not been taken counts as left, because
    /// the promise may pass to another receiver.
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

    /// Promises a value to the first receiver in line. The caller has made at most one more value available, so one promise is
    /// enough.
    fn promise(&mut self) -> Option<W> {
        if self.values.len() == self.promises {
            return None;
        }
        let receiver = self.receiving.pop_front()?;
        self.promises += 1;
        Some(receiver)
    }
}
