//! Synchronisation that suspends the fiber instead of its thread.
//!
//! | I want | look at |
//! | --- | --- |
//! | one fiber at a time at a value, also across its waits | [`Mutex`] |
//! | to wait until something has happened | [`Event`] |
//! | to hand over values | [`channel`] |
//!
//! Each also works outside fibers, where it blocks the thread, and between fibers and threads. A lock of the standard
//! library works in fibers, too, but its wait keeps the worker; a fiber that waits while it holds one may lock out its
//! neighbours for good, which the report of a [stalled](crate::Report::Stalled) worker shows.

mod channel;
mod event;
mod mutex;
mod wait_list;

pub use channel::{Receiver, Sender, channel};
pub use event::Event;
pub use millstream_ring::channel::{
    Disconnected, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
pub use mutex::{Mutex, MutexGuard};
