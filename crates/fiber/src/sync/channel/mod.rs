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
/// The channel is a queue: values are received in the order in which they entered it, and the values of one sender enter it in
/// the order in which they were sent. The channel is full at exactly `capacity` values.
///
/// **Waits are fair.** Senders get room, and receivers get values, in the order in which they began to wait. When a receiver is
/// woken for a value, that value is reserved for it, and a newcomer finds the channel empty. If a waiter is cancelled or its
/// timeout passes, the room or the value that it was given goes to the next waiter.
///
/// **Disconnection.** When all senders are gone, receivers get the values that were sent and then [`Disconnected`]. When all
/// receivers are gone, senders get their values back, and the last receiver drops the values in the channel. The destructors of
/// these values may use the channel, because they run outside the channel's lock. If one panics, the others still run, and the
/// panic then resumes in the drop of the last receiver.
///
/// **Cost.** Each call locks a mutex briefly, and once more after a wait. A wait allocates only when a wait queue grows. Waking
/// a fiber of the same worker makes no system call. Waking a fiber of another worker makes a system call only if that worker
/// sleeps, and waking a thread only if that thread sleeps. For many values between threads that are not fibers,
/// [`millstream_ring::channel`] is faster.
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
