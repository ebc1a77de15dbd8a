//! The receiving end.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use millstream_ring::channel::{Disconnected, RecvTimeoutError, TryRecvError};

use super::core::Core;
use crate::park::deadline_after;

/// The receiving end of a [`channel`](super::channel).
pub struct Receiver<T> {
    core: Arc<Core<T>>,
}

// A panic cannot interrupt a change of the queue, since no user code runs during a change.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// Returns the first receiver of a new core. The core's count of receivers includes it already.
    pub(super) fn first(core: Arc<Core<T>>) -> Self {
        Receiver { core }
    }
}

impl<T: Send> Receiver<T> {
    /// Receives a value, waiting for one if there is none. A fiber that is cancelled during the wait takes no value.
    ///
    /// Acquire: everything written before the value was sent is visible.
    ///
    /// # Errors
    /// Returns an error if all senders are gone and all their values have been received.
    #[track_caller]
    pub fn recv(&self) -> Result<T, Disconnected> {
        // Without a deadline, the only possible error is the disconnection.
        self.core.receive(None, Location::caller()).map_err(|_| Disconnected)
    }

    /// Receives a value if there is one that is not reserved for another receiver. Locks a mutex briefly, and never waits for
    /// another fiber to act.
    ///
    /// # Errors
    /// Returns an error if there is no value.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.core.try_receive()
    }

    /// Receives a value, waiting for at most `timeout`.
    ///
    /// # Errors
    /// Returns an error if no value arrived in time, or all senders are gone and all their values have been received.
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.core.receive(deadline_after(timeout), Location::caller())
    }

    /// Returns an iterator that receives values until all senders are gone.
    #[track_caller]
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let at = Location::caller();
        std::iter::from_fn(move || self.core.receive(None, at).ok())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.core.add_receiver();
        Receiver { core: Arc::clone(&self.core) }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.core.remove_receiver();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
