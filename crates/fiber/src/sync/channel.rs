//! A bounded channel: the project's ring, with waits that suspend the fiber.

use std::fmt;
use std::panic::Location;
use std::time::{Duration, Instant};

use millstream_ring::channel::{
    self as ring, Disconnected, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use millstream_ring::sequencer::Multi;

use crate::park::deadline_after;
use crate::scheduler::state::Reason;
use crate::waiter::wait_for;

/// A channel for any number of senders and receivers; each value is received once.
///
/// It is built on [`millstream_ring`](ring), which defines its order and its end.
///
/// # Panics
/// Panics if the capacity is 0 or exceeds 2³², or if there is not enough memory.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads};
/// use millstream_fiber::sync::channel;
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let (sender, receiver) = channel(4);
/// runtime.spawn(move || (1..=100).for_each(|n| sender.send(n).unwrap()));
/// let sum = runtime.spawn(move || receiver.iter().sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 5050);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[must_use]
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = ring::mpmc(capacity);
    (Sender { ring: sender }, Receiver { ring: receiver })
}

/// The sending end of a [`channel`].
pub struct Sender<T> {
    ring: ring::Sender<T, Multi, Multi>,
}

/// The receiving end of a [`channel`].
pub struct Receiver<T> {
    ring: ring::Receiver<T, Multi, Multi>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender { ring: self.ring.clone() }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver { ring: self.ring.clone() }
    }
}

impl<T: Send> Sender<T> {
    /// Sends a value, waiting for room if there is none. A fiber that is cancelled during the wait drops the value
    /// unsent.
    ///
    /// # Errors
    /// Returns the value if all receivers are gone.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.ring.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => {
                let sent = wait_for(self.ring.send_async(value), Reason::Send, None, Location::caller());
                sent.expect("without a deadline only success ends the wait")
            }
        }
    }

    /// Sends a value if there is room. Lock-free.
    ///
    /// # Errors
    /// Returns the value if there is no room or all receivers are gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.ring.try_send(value)
    }

    /// Sends a value, waiting for room for at most `timeout`.
    ///
    /// # Errors
    /// Returns the value if there was no room in time or all receivers are gone.
    #[track_caller]
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        let deadline = deadline_after(timeout);
        let mut values = vec![value];
        // The vector keeps the value if the wait is abandoned.
        match wait_for(self.ring.send_many_async(&mut values), Reason::Send, deadline, Location::caller()) {
            Some(Ok(())) => Ok(()),
            Some(Err(Disconnected)) => Err(SendTimeoutError::Disconnected(only(values))),
            None if values.is_empty() => Ok(()),
            None => Err(SendTimeoutError::Timeout(only(values))),
        }
    }
}

fn only<T>(mut values: Vec<T>) -> T {
    values.pop().expect("a value that was not sent is still there")
}

impl<T: Send> Receiver<T> {
    /// Receives a value, waiting for one if there is none.
    ///
    /// # Errors
    /// Returns an error if all senders are gone and all their values have been received.
    #[track_caller]
    pub fn recv(&self) -> Result<T, Disconnected> {
        self.recv_until(None, Location::caller()).expect("without a deadline only success ends the wait")
    }

    /// Receives a value if there is one. Lock-free.
    ///
    /// # Errors
    /// Returns an error if there is no value.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.ring.try_recv()
    }

    /// Receives a value, waiting for at most `timeout`.
    ///
    /// # Errors
    /// Returns an error if no value arrived in time, or all senders are gone and all their values have been received.
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match self.recv_until(deadline_after(timeout), Location::caller()) {
            Some(Ok(value)) => Ok(value),
            Some(Err(Disconnected)) => Err(RecvTimeoutError::Disconnected),
            None => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Returns an iterator that receives values until all senders are gone.
    #[track_caller]
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let at = Location::caller();
        std::iter::from_fn(move || self.recv_until(None, at).and_then(Result::ok))
    }

    fn recv_until(&self, deadline: Option<Instant>, at: &'static Location<'static>) -> Option<Result<T, Disconnected>> {
        match self.ring.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Disconnected) => Some(Err(Disconnected)),
            Err(TryRecvError::Empty) => wait_for(self.ring.recv_async(), Reason::Receive, deadline, at),
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
