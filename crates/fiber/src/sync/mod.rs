//! Synchronisation that suspends the fiber instead of its thread.
//!
//! | I want | look at |
//! | --- | --- |
//! | to let one fiber at a time use a value, even across its waits | [`Mutex`] |
//! | to wait for an event | [`Event`] |
//! | to pass values on | [`channel()`] |
//!
//! All of them also work outside fibers, where a wait blocks the thread, and between fibers and threads. The standard library's
//! locks also work in fibers, but waiting for one blocks the worker. If a fiber waits while it holds such a lock, its whole
//! worker can deadlock; the report of a [stalled](crate::Report::Stalled) worker shows this.

mod channel;
mod event;
mod line;
mod mutex;
mod wait_list;

pub use channel::{Receiver, Sender, channel};
pub use event::Event;
pub use millstream_ring::channel::{
    Disconnected, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
pub use mutex::{Mutex, MutexGuard};
