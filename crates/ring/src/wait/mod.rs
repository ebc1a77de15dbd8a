//! How threads wait.
//!
//! On a machine with fewer cores than threads, this matters more than the claim protocol: the same ring passes 25 or
//! 120 M events/s, depending on which threads nap when. The reasons, measured on two cores:
//!
//! - A cache line goes from core to core and back in 66 ns. Within that time a producer that keeps its lines publishes
//!   15 events. So a consumer *lets events gather*: before it looks again it pauses, 0.1 µs at first, up to 1.6 µs
//!   while events keep coming in small portions; the pauses in its waits are as long. Each look takes the line that the
//!   producer writes. An event that comes alone is never delayed by this, and the `try_` forms never pause.
//! - A producer that finds the ring full wants a *quarter of it* free before it goes on (bounded by a few looks, so
//!   that a slow consumer does not delay it). Otherwise it takes each slot the moment it is freed, and both sides run
//!   at the pace of single hand-overs.
//! - A producer that loses a compare-and-swap lets the winner run on (see [`Multi`](crate::sequencer::Multi)).
//! - A thread that waits for one that does not run should give it the core, for a whole burst of events: a waiter
//!   yields after two fruitless looks. With 1024 slots a thread switch (0.5 to 1 µs) then costs 1 ns per event.
//! - Two threads that share a core and yield to each other never part. So a producer takes a nap now and then although
//!   yielding would do: the scheduler places a woken thread afresh, perhaps on a core of its own.
//! - Waking a sleeper costs its waker 2 µs. So threads sleep only when yielding did not help, and sleeping *producers*
//!   are woken one at a time, and only when the awake ones do not keep the ring filled.
//! - A thread that yields runs after all others that are runnable on its core. So of the producers that find the ring
//!   full one looks for room, and the others sleep: a consumer must not wait for hundreds of producers that find
//!   nothing.
//! - Of interchangeable waiters, as many are woken as can go on: one member of a pool per event, one of a channel's
//!   tasks per place. Where waiters wait for different events, as the consumers of a graph do, all are woken.
//! - Registering as a waiter takes a heavy fence, and that makes the next wake-up slower. So a lone consumer that
//!   sleeps for each event stays registered while it is awake.
//!
//! Each side of each ring learns how long to yield before it sleeps: the time doubles when a wait ends while yielding
//! or soon after falling asleep, and halves when the sleep was long, down to not looking at all. A mostly idle ring
//! therefore uses next to no CPU, and a busy one never sleeps.

mod arrivals;
mod free_space;
mod notifier;
mod set;
mod spin;
mod strategy;

pub(crate) use arrivals::Arrivals;
pub(crate) use free_space::{FreeSpace, Places};
pub(crate) use notifier::Notifier;
pub use set::WaitSet;
pub use strategy::WaitStrategy;
