//! Bounded channels, for programs that only send and receive.
//!
//! | I have | function | either side can [`close`](Receiver::close) it |
//! | --- | --- | --- |
//! | many senders, one receiver | [`mpsc`] | yes |
//! | many senders, many receivers, each value goes to one receiver | [`mpmc`] | yes |
//! | one sender, one receiver, and every nanosecond counts | [`spsc`] | no |
//! | one sender, many receivers, each value goes to one receiver | [`spmc`] | no |
//!
//! Closing is exact: if a `send` reports success, its value is received. Many senders claim slots by compare-and-swap,
//! which fails once the channel is closed. A sole sender claims without an atomic operation; an exact check for a
//! closed channel would cost an atomic operation per value. So a channel with a sole sender has no `close`. To end such
//! a channel, ask the sender to stop, or drop the receivers, which also drops the values in the channel.
//!
//! The capacity may be any positive number. A channel is full at exactly that number of values; the number of its slots
//! is the next power of two. There is no capacity of 0, because every value passes through a slot. To learn that a
//! value was received, use a capacity of 1 and a reply channel. All channels are bounded.
//!
//! All values of a channel are received in one order, and the values of each sender in the order in which they were
//! sent.
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
//! **Batches.** [`Sender::send_many`] and [`Receiver::recv_many`] claim and complete many positions at once, for
//! several times the throughput. **Time.** The `try_` forms never wait, the `_deadline` forms wait until an instant,
//! and the `_async` forms wait as a task. Each of these forms exists for one value and for many. The `_timeout` forms,
//! which wait for a duration, exist for one value only. **Several channels.** [`Select`] waits until one of several
//! receivers and senders is ready; a [`WaitSet`](crate::WaitSet) waits for arrivals on channels that were created with
//! it. **Streams.** The feature `futures` adds `Receiver::into_stream` and `Sender::into_sink`.
//!
//! **Disconnection.** When all senders are gone, receivers get the values that were sent and then [`Disconnected`]. When all
//! receivers are gone, senders get their values back, and the values in the channel are dropped at once. The last
//! receiver drops them; a sender whose `send` adds a value at the same time drops that value itself. (Values behind an
//! open [`Permit`] are dropped when the permit is used or dropped.) A thread that learns of a disconnection sees
//! everything the other side did before it left. Destructors run outside all locks and may use the channel. If a
//! destructor panics, the others still run. The panic then resumes in the thread that drops the last receiver; a `send`
//! discards it, because its caller is not at fault.
//!
//! **Two steps.** [`Sender::reserve`] claims a slot now, and the value follows later. A [`Permit`] that is dropped
//! unused leaves a slot that receivers skip.
//!
//! # Progress
//! A `send` or `recv` that does not wait is lock-free, and even wait-free if its side of the channel has only one
//! participant. A sender that is stopped in the middle of `send` does not block other senders. Receivers get the values
//! in front of the stopped sender's slot at once, and the values behind that slot once the sender continues. Until then
//! `try_recv` reports an empty channel even though a later `send` has returned.
//!
//! # Cost
//! On two cores at 2.6 GHz, a `send` by a sole sender or a `recv` by a sole receiver takes 2 ns, and a `send` by one of
//! many senders takes 4 ns, as long as cache lines stay on their core. See [`WaitStrategy`](crate::WaitStrategy) for
//! the cost of waiting.

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
