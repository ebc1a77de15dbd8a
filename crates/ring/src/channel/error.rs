//! What can come instead of a value, or of sending one.

use std::fmt;

use thiserror::Error;

/// The other side is gone, and nothing is left to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: nobody is left on the other side")]
pub struct Disconnected;

/// All receivers are gone; the value comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: no receiver is left to take the value")]
pub struct SendError<T>(pub T);

/// Why a value was not sent at once; it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum TrySendError<T> {
    /// There is no room now.
    #[error("the channel is full")]
    Full(T),
    /// All receivers are gone.
    #[error("the channel is disconnected: no receiver is left to take the value")]
    Disconnected(T),
}

/// Why a value was not sent in time; it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendTimeoutError<T> {
    /// There was no room until the deadline.
    #[error("the channel was full until the deadline")]
    Timeout(T),
    /// All receivers are gone.
    #[error("the channel is disconnected: no receiver is left to take the value")]
    Disconnected(T),
}

/// Why nothing was received at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TryRecvError {
    /// Nothing is there now.
    #[error("the channel is empty")]
    Empty,
    /// Nothing is there, and all senders are gone.
    #[error("the channel is empty and disconnected: no sender is left")]
    Disconnected,
}

/// Why nothing was received in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecvTimeoutError {
    /// Nothing came until the deadline.
    #[error("nothing arrived before the deadline")]
    Timeout,
    /// Nothing is there, and all senders are gone.
    #[error("the channel is empty and disconnected: no sender is left")]
    Disconnected,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Disconnected(_) => "Disconnected(..)",
        })
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Disconnected(_) => "Disconnected(..)",
        })
    }
}
