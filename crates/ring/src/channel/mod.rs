//! Bounded channels: the ring for programs that only send and receive.
//!
//! | I have | function | either side can [`close`](Receiver::close) it |
//! | --- | --- | --- |
//! | many senders, one receiver | [`mpsc`] | yes |
//! | many senders, many receivers, each value goes to one receiver | [`mpmc`] | yes |
//! | one sender, one receiver, and every nanosecond counts | [`spsc`] | no |
//! | one sender, many receivers, each value goes to one receiver | [`spmc`] | no |
//!
//! Closing is exact: a sender whose `send` reported success can rely on it. Many senders claim their places by
//! compare-and-swap, which fails once the channel is closed. A sole sender claims without an atomic operation; checking
//! for a closed channel between its claim and its success would take one per value. To end such a channel, drop the
//! receivers, and with them the values in the channel, or ask the sender to stop.
//!
//! A channel holds any number of values from 1 on; it is full at exactly that many, and rounds the slots it allocates
//! up to a power of two. There is no capacity of 0, because a ring hands values over through a slot (take 1 and a reply
//! channel to learn that a value was taken), and no unbounded channel, because every queue here has a bound.
//!
//! All receivers see values in one order; the values of one sender are in the order in which it sent them.
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
//! **Batches.** [`Sender::send_many`] and [`Receiver::recv_many`] claim and complete many positions at once: several
//! times the throughput. **Time.** The `try_` forms never wait, the `_deadline` forms wait until an instant, and the
//! `_async` forms wait as a task; each exists for one value and for many. (A single value also has `_timeout` forms.)
//! **Several channels.** [`Select`] waits for any receivers and senders, [`WaitSet`](crate::WaitSet) for the arrivals
//! of channels that were made for it. **Streams.** With the feature `futures`, `Receiver::into_stream` and
//! `Sender::into_sink`.
//!
//! **The end.** When all senders are gone, receivers get the values that were sent and then [`Disconnected`]. When all
//! receivers are gone, senders get their values back, and the values in the channel are dropped at once: by the last
//! receiver, or, if a `send` puts a value in meanwhile, by its sender. (Values behind a [`Permit`] that is still held
//! are dropped when it is used or dropped.) An end that learns of a disconnection sees everything the others did before
//! they left. Destructors run outside all locks and may use the channel. A destructor that panics does not keep others
//! from running; its panic then resumes where the last receiver is dropped, and is swallowed in a `send`, which is not
//! at fault.
//!
//! **Two steps.** [`Sender::reserve`] acquires a place first and takes the value later; a [`Permit`] that is dropped
//! leaves a hole that receivers skip.
//!
//! # Progress
//! Sending and receiving without waiting is lock-free (wait-free with one participant on that side). A sender that is
//! stopped in the middle of `send` does not keep others from sending; receivers get all values before its place, and
//! the rest as soon as it goes on. Until then `try_recv` reports an empty channel although a later `send` has returned.
//!
//! # Cost
//! On two cores at 2.6 GHz: 2 ns for a `send` or a `recv` with one participant, 4 ns for a `send` with many, as long as
//! lines stay on their core; see [`WaitStrategy`](crate::WaitStrategy) for the cost of waiting.

mod batch;
mod core;
mod discard;
mod ends;
mod error;
mod iter;
mod receiver;
mod select;
mod sender;
#[cfg(feature = "futures")]
mod stream;
mod tasks;
mod wait;

#[cfg(feature = "futures")]
pub use {futures_core, futures_sink};

pub use error::{Disconnected, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError};
pub use iter::{IntoIter, Iter};
pub use receiver::Receiver;
pub use select::Select;
pub use sender::{Permit, Sender};
#[cfg(feature = "futures")]
pub use stream::{ReceiverStream, SenderSink};

use self::core::Core;
use crate::Options;
use crate::primitive::Arc;
use crate::sequencer::{Multi, Sequencer, Single};

/// A channel with many senders and one receiver.
///
/// # Panics
/// If the capacity is 0 or exceeds 2^32 (2^30 where an address has 32 bits), or if there is not enough memory.
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
/// If the capacity is 0 or exceeds 2^32 (2^30 where an address has 32 bits), or if there is not enough memory.
#[must_use]
pub fn mpmc<T: Send>(options: impl Into<Options>) -> (Sender<T, Multi, Multi>, Receiver<T, Multi, Multi>) {
    new(&options.into())
}

/// A channel with one sender and one receiver.
///
/// # Panics
/// If the capacity is 0 or exceeds 2^32 (2^30 where an address has 32 bits), or if there is not enough memory.
#[must_use]
pub fn spsc<T: Send>(options: impl Into<Options>) -> (Sender<T, Single, Single>, Receiver<T, Single, Single>) {
    new(&options.into())
}

/// A channel with one sender and many receivers; each value is received once.
///
/// # Panics
/// If the capacity is 0 or exceeds 2^32 (2^30 where an address has 32 bits), or if there is not enough memory.
#[must_use]
pub fn spmc<T: Send>(options: impl Into<Options>) -> (Sender<T, Single, Multi>, Receiver<T, Single, Multi>) {
    new(&options.into())
}

fn new<T: Send, P: Sequencer, C: Sequencer>(options: &Options) -> (Sender<T, P, C>, Receiver<T, P, C>) {
    let core = Arc::new(Core::new(options));
    (Sender::first(Arc::clone(&core)), Receiver::first(core))
}
