//! What can come instead of a value, or of sending one.

use std::fmt;

use thiserror::Error;

/// The other side is gone or the channel is closed, and nothing is left to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: the other side is gone or the channel is closed")]
pub struct Disconnected;

/// All receivers are gone, or the channel is closed; the value comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: no receiver is left to take the value")]
pub struct SendError<T>(pub T);

/// Why a value was not sent at once; it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum TrySendError<T> {
    /// There is no room now.
    #[error("the channel is full")]
    Full(T),
    /// All receivers are gone, or the channel is closed.
    #[error("the channel is disconnected: no receiver is left to take the value")]
    Disconnected(T),
}

/// Why a value was not sent in time; it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendTimeoutError<T> {
    /// There was no room until the deadline.
    #[error("the channel was full until the deadline")]
    Timeout(T),
    /// All receivers are gone, or the channel is closed.
    #[error("the channel is disconnected: no receiver is left to take the value")]
    Disconnected(T),
}

/// Why nothing was received at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TryRecvError {
    /// Nothing is there now.
    #[error("the channel is empty")]
    Empty,
    /// Nothing is there, and all senders are gone or the channel is closed.
    #[error("the channel is empty and disconnected: no sender is left")]
    Disconnected,
}

/// Why nothing was received in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecvTimeoutError {
    /// Nothing came until the deadline.
    #[error("nothing arrived before the deadline")]
    Timeout,
    /// Nothing is there, and all senders are gone or the channel is closed.
    #[error("the channel is empty and disconnected: no sender is left")]
    Disconnected,
}

impl<T> SendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        let (TrySendError::Full(value) | TrySendError::Disconnected(value)) = self;
        value
    }

    /// Whether there was no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, TrySendError::Full(_))
    }

    /// Whether all receivers are gone or the channel is closed.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self, TrySendError::Disconnected(_))
    }
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        let (SendTimeoutError::Timeout(value) | SendTimeoutError::Disconnected(value)) = self;
        value
    }

    /// Whether there was no room until the deadline.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendTimeoutError::Timeout(_))
    }

    /// Whether all receivers are gone or the channel is closed.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self, SendTimeoutError::Disconnected(_))
    }
}

impl TryRecvError {
    /// Whether nothing was there, and more may come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == TryRecvError::Empty
    }

    /// Whether nothing more comes.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        *self == TryRecvError::Disconnected
    }
}

impl RecvTimeoutError {
    /// Whether nothing came until the deadline.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        *self == RecvTimeoutError::Timeout
    }

    /// Whether nothing more comes.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        *self == RecvTimeoutError::Disconnected
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(value): SendError<T>) -> Self {
        TrySendError::Disconnected(value)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(SendError(value): SendError<T>) -> Self {
        SendTimeoutError::Disconnected(value)
    }
}

impl From<Disconnected> for TryRecvError {
    fn from(_: Disconnected) -> Self {
        TryRecvError::Disconnected
    }
}

impl From<Disconnected> for RecvTimeoutError {
    fn from(_: Disconnected) -> Self {
        RecvTimeoutError::Disconnected
    }
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
