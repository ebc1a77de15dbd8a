//! The sending end.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use millstream_ring::channel::{SendError, SendTimeoutError, TrySendError};

use super::core::Core;
use crate::park::deadline_after;

/// The sending end of a [`channel`](super::channel).
pub struct Sender<T> {
    core: Arc<Core<T>>,
}

// A panic cannot interrupt a change of the queue, since no user code runs during a change.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// Returns the first sender of a new core. The core's count of senders includes it already.
    pub(super) fn first(core: Arc<Core<T>>) -> Self {
        Sender { core }
    }
}

impl<T: Send> Sender<T> {
    /// Sends a value, waiting for room if there is none. A fiber that is cancelled during the wait drops the value,
    /// unless it has been sent by then.
    ///
    /// Release: a receiver of the value sees everything written before.
    ///
    /// # Errors
    /// Returns the value if all receivers are gone.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.core.send(value, None, Location::caller()).map_err(|error| SendError(error.into_inner()))
    }

    /// Sends a value if there is room. Locks a mutex briefly, and never waits for another fiber to act.
    ///
    /// # Errors
    /// Returns the value if there is no room or all receivers are gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.core.try_send(value)
    }

    /// Sends a value, waiting for room for at most `timeout`.
    ///
    /// # Errors
    /// Returns the value if there was no room in time or all receivers are gone.
    #[track_caller]
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.core.send(value, deadline_after(timeout), Location::caller())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.core.add_sender();
        Sender { core: Arc::clone(&self.core) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.core.remove_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
