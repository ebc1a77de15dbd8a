//! The errors of sending and receiving.

use std::fmt;

use thiserror::Error;

/// The other side is gone or the channel is closed, and no value is left to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: the other side is gone or the channel is closed")]
pub struct Disconnected;

/// All receivers are gone, or the channel is closed. The error contains the value.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the channel is disconnected: there is no receiver to take the value")]
pub struct SendError<T>(pub T);

/// The reason why a value was not sent at once, with the value.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum TrySendError<T> {
    /// There is no room now.
    #[error("the channel is full")]
    Full(T),
    /// All receivers are gone, or the channel is closed.
    #[error("the channel is disconnected: there is no receiver to take the value")]
    Disconnected(T),
}

/// The reason why a value was not sent in time, with the value.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendTimeoutError<T> {
    /// There was no room before the deadline.
    #[error("the channel stayed full until the deadline")]
    Timeout(T),
    /// All receivers are gone, or the channel is closed.
    #[error("the channel is disconnected: there is no receiver to take the value")]
    Disconnected(T),
}

/// The reason why no value was received at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TryRecvError {
    /// There is no value now.
    #[error("the channel is empty")]
    Empty,
    /// There is no value, and all senders are gone or the channel is closed.
    #[error("the channel is empty and disconnected: there is no sender")]
    Disconnected,
}

/// The reason why no value was received in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecvTimeoutError {
    /// No value arrived before the deadline.
    #[error("no value arrived before the deadline")]
    Timeout,
    /// There is no value, and all senders are gone or the channel is closed.
    #[error("the channel is empty and disconnected: there is no sender")]
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
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        let (SendTimeoutError::Timeout(value) | SendTimeoutError::Disconnected(value)) = self;
        value
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
