//! Bounded channels: the ring for those who just want to send and receive.
//!
//! | I have | function | a receiver can [`close`](Receiver::close) it |
//! | --- | --- | --- |
//! | many senders, one receiver | [`mpsc`] | yes |
//! | many senders, many receivers, each value goes to one of them | [`mpmc`] | yes |
//! | one sender, one receiver, and every nanosecond counts | [`spsc`] | no |
//! | one sender, many receivers, each value goes to one of them | [`spmc`] | no |
//!
//! Closing is exact: whoever was told that a value is sent can rely on it. Many senders claim their places by an exchange, which fails once
//! the channel is closed. A sole sender claims by itself, without an atomic operation; to look for a closed channel between its claim and its
//! success would take one for each value. There the receivers are dropped instead, and what is in the channel with them, or the sender is asked to stop.
//!
//! All receivers see values in one order; the values of one sender are in the order it sent them.
//!
//! ```
//! use millstream_ring::channel;
//!
//! let (sender, receiver) = channel::mpsc(1024);
//! std::thread::scope(|scope| {
//!     for thread in 0..3 {
//!         let sender = sender.clone();
//!         scope.spawn(move || (0..100).for_each(|n| sender.send(thread * 100 + n).unwrap()));
//!     }
//!     drop(sender);
//!     assert_eq!(receiver.iter().sum::<u32>(), (0..300).sum());
//! });
//! ```
//!
//! **Batches.** [`Sender::send_many`] and [`Receiver::recv_many`] claim and complete many positions at once: several times
//! the throughput. **Time.** `try_` forms never wait, `_deadline` and `_timeout` forms wait that long, `_async` forms
//! wait as a task; there is each of them for one value and for many. **Several channels.** See [`WaitSet`](crate::WaitSet). **The end.** When all senders are gone, receivers get what was
//! sent and then [`Disconnected`]; when all receivers are gone, senders get their values back. Who is told so sees what the others did before
//! they left.
//!
//! **Two steps.** [`Sender::reserve`] gives a place first and takes the value later; a [`Permit`] that is
//! dropped leaves a hole that receivers pass over.
//!
//! # Progress
//! Sending and receiving without waiting is lock-free (wait-free with one participant on that side). A sender
//! that is stopped in the middle of `send` keeps nobody else from sending; receivers get everything before its place, and
//! the rest as soon as it goes on.
//!
//! # Cost
//! On two cores at 2.6 GHz: 2 ns for a `send` or a `recv` with one participant, 4 ns for a `send` with many, as
//! long as lines stay on their core; see [`WaitStrategy`](crate::WaitStrategy) for what waiting costs.

mod batch;
mod error;
mod iter;
mod level;
mod receiver;
mod sender;
mod shared;
mod wait;

pub use error::{Disconnected, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError};
pub use iter::{IntoIter, Iter, TryIter};
pub use receiver::Receiver;
pub use sender::{Permit, Sender};

use crate::Options;
use crate::primitive::Arc;
use crate::sequencer::{Multi, Sequencer, Single};
use shared::Shared;

/// A channel with many senders and one receiver.
///
/// # Panics
/// When the capacity is not a power of two.
///
/// ```
/// let (sender, receiver) = millstream_ring::channel::mpsc(16);
/// sender.send("grain").unwrap();
/// assert_eq!(receiver.recv(), Ok("grain"));
/// ```
#[must_use]
pub fn mpsc<T: Send>(options: impl Into<Options>) -> (Sender<T, Multi, Single>, Receiver<T, Multi, Single>) {
    new(&options.into())
}

/// A channel with many senders and many receivers; each value is received once.
///
/// # Panics
/// When the capacity is not a power of two.
#[must_use]
pub fn mpmc<T: Send>(options: impl Into<Options>) -> (Sender<T, Multi, Multi>, Receiver<T, Multi, Multi>) {
    new(&options.into())
}

/// A channel with one sender and one receiver.
///
/// # Panics
/// When the capacity is not a power of two.
#[must_use]
pub fn spsc<T: Send>(options: impl Into<Options>) -> (Sender<T, Single, Single>, Receiver<T, Single, Single>) {
    new(&options.into())
}

/// A channel with one sender and many receivers; each value is received once.
///
/// # Panics
/// When the capacity is not a power of two.
#[must_use]
pub fn spmc<T: Send>(options: impl Into<Options>) -> (Sender<T, Single, Multi>, Receiver<T, Single, Multi>) {
    new(&options.into())
}

fn new<T: Send, P: Sequencer, C: Sequencer>(options: &Options) -> (Sender<T, P, C>, Receiver<T, P, C>) {
    let shared = Arc::new(Shared::new(options));
    (Sender::first(Arc::clone(&shared)), Receiver::first(shared))
}
