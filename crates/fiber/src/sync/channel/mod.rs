//! A bounded channel whose waits suspend the fiber.

mod core;
mod queue;
mod receiver;
mod sender;

use std::sync::Arc;

use self::core::Core;
pub use receiver::Receiver;
pub use sender::Sender;

/// Creates a channel for any number of senders and receivers; each value is received once.
///
/// Receivers see the values in one order; the values of one sender are in the order in which it sent them. The channel
/// is full at exactly `capacity` values.
///
/// **Waits are fair.** Senders get room, and receivers get values, in the order in which they began to wait. A value
/// that has woken a receiver is reserved for it, so that a newcomer finds the channel empty. A waiter that is cancelled
/// or out of time passes on what it was given.
///
/// **The end.** When all senders are gone, receivers get the values that were sent and then [`Disconnected`]. When all
/// receivers are gone, senders get their values back, and the last receiver drops the values in the channel. Destructors
/// run outside the channel's lock and may use the channel. A destructor that panics does not keep others from running;
/// its panic then resumes where the last receiver is dropped.
///
/// **Cost.** Each call takes a short lock, and one more after a wait. A wait allocates only when a line of waiters grows.
/// Waking a fiber of the same worker makes no system call. Waking one of another worker, or a thread, makes one only if it
/// sleeps. For many values between threads that are not fibers, [`millstream_ring::channel`] is faster.
///
/// # Panics
/// Panics if the capacity is 0 or exceeds 2³² (2³⁰ where an address has 32 bits), or if there is not enough memory.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads};
/// use millstream_fiber::sync::channel;
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let (sender, receiver) = channel(4);
/// runtime.spawn(move || (1..=100).for_each(|n| sender.send(n).unwrap()));
/// let sum = runtime.spawn(move || receiver.iter().sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 5050);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
///
/// [`Disconnected`]: super::Disconnected
#[must_use]
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let core = Arc::new(Core::new(capacity));
    (Sender::first(Arc::clone(&core)), Receiver::first(core))
}
