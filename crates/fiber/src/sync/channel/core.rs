//! The state that the ends of a channel share, and their waits.

use std::collections::VecDeque;
use std::mem;
use std::panic::Location;
use std::time::Instant;

use millstream_ring::channel::{Disconnected, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError};
use parking_lot::Mutex;

use super::queue::{Queue, Woken};
use crate::contained::drop_all;
use crate::scheduler::state::Reason;
use crate::waiter::Waiter;

/// The greatest capacity: 2³², or 2³⁰ where an address has 32 bits.
const MAX_CAPACITY: usize = if usize::BITS > 32 { 1 << (usize::BITS / 2) } else { 1 << 30 };

/// A thread holds this lock only for a few instructions. Meanwhile it neither suspends its fiber nor runs the user's code.
pub(super) struct Core<T> {
    queue: Mutex<Queue<T, Waiter>>,
}

impl<T> Core<T> {
    pub(super) fn new(capacity: usize) -> Self {
        assert!(
            (1..=MAX_CAPACITY).contains(&capacity),
            "a channel's capacity is between 1 and {MAX_CAPACITY}, not {capacity}"
        );
        let mut values = VecDeque::new();
        if let Err(error) = values.try_reserve_exact(capacity) {
            panic!("no memory for a channel of {capacity} values of {} bytes: {error}", size_of::<T>());
        }
        Core { queue: Mutex::new(Queue::new(values, capacity)) }
    }

    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let sent = self.queue.lock().send(value);
        wake(sent?);
        Ok(())
    }

    pub(super) fn send(
        &self,
        value: T,
        deadline: Option<Instant>,
        at: &'static Location<'static>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut queue = self.queue.lock();
        let value = match queue.send(value) {
            Ok(receiver) => {
                drop(queue);
                wake(receiver);
                return Ok(());
            }
            Err(TrySendError::Disconnected(value)) => return Err(SendTimeoutError::Disconnected(value)),
            Err(TrySendError::Full(value)) => value,
        };
        let waiter = Waiter::current();
        let seat = waiter.seat();
        let place = Sending { core: self, ticket: queue.enter_sending(waiter, value) };
        drop(queue);
        while !has_passed(deadline) {
            seat.block_at(Reason::Send, deadline, at);
            let sent = self.queue.lock().sent(place.ticket);
            if let Some(sent) = sent {
                mem::forget(place);
                return sent.map_err(SendTimeoutError::from);
            }
        }
        let unsent = place.leave();
        unsent.map_or(Ok(()), |(_, value)| Err(SendTimeoutError::Timeout(value)))
    }

    pub(super) fn try_receive(&self) -> Result<T, TryRecvError> {
        let taken = self.queue.lock().receive();
        taken.map(deliver)
    }

    pub(super) fn receive(
        &self,
        deadline: Option<Instant>,
        at: &'static Location<'static>,
    ) -> Result<T, RecvTimeoutError> {
        let mut queue = self.queue.lock();
        match queue.receive() {
            Ok(taken) => {
                drop(queue);
                return Ok(deliver(taken));
            }
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        let waiter = Waiter::current();
        let seat = waiter.seat();
        let place = Receiving { core: self, ticket: queue.enter_receiving(waiter) };
        drop(queue);
        while !has_passed(deadline) {
            seat.block_at(Reason::Receive, deadline, at);
            let received = self.queue.lock().received(place.ticket);
            if let Some(received) = received {
                mem::forget(place);
                return received.map(deliver).map_err(|Disconnected| RecvTimeoutError::Disconnected);
            }
        }
        Err(RecvTimeoutError::Timeout)
    }

    pub(super) fn add_sender(&self) {
        self.queue.lock().add_sender();
    }

    pub(super) fn add_receiver(&self) {
        self.queue.lock().add_receiver();
    }

    pub(super) fn remove_sender(&self) {
        let receivers = self.queue.lock().remove_sender();
        wake(receivers);
    }

    /// Removes a receiver. If it was the last one, drops the remaining values. If a destructor panics, the panic resumes after
    /// all destructors have run.
    pub(super) fn remove_receiver(&self) {
        let (values, senders) = self.queue.lock().remove_receiver();
        wake(senders);
        drop_all(values);
    }
}

/// A sender in the line of waiting senders. Dropping this, as an unwinding fiber does, removes the sender from the line and
/// drops its value, unless the value has been sent.
struct Sending<'a, T> {
    core: &'a Core<T>,
    ticket: u64,
}

impl<T> Sending<'_, T> {
    /// Leaves the line, and returns the value unless it has been sent.
    fn leave(self) -> Option<(Waiter, T)> {
        let unsent = self.core.queue.lock().leave_sending(self.ticket);
        mem::forget(self);
        unsent
    }
}

impl<T> Drop for Sending<'_, T> {
    fn drop(&mut self) {
        // The value is dropped after the lock has been released.
        let unsent = self.core.queue.lock().leave_sending(self.ticket);
        drop(unsent);
    }
}

/// A receiver in the line of waiting receivers. Dropping this, by unwinding or after a timeout, removes the receiver from the
/// line; a value promised to it is then promised to the next receiver.
struct Receiving<'a, T> {
    core: &'a Core<T>,
    ticket: u64,
}

impl<T> Drop for Receiving<'_, T> {
    fn drop(&mut self) {
        let next = self.core.queue.lock().leave_receiving(self.ticket);
        wake(next);
    }
}

fn deliver<T>((value, woken): (T, Woken<Waiter>)) -> T {
    if !woken.is_empty() {
        wake(woken);
    }
    value
}

fn wake(waiters: impl IntoIterator<Item = Waiter>) {
    waiters.into_iter().for_each(|waiter| waiter.wake());
}

fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}
