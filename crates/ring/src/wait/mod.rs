//! What a thread does while there is nothing to do.
//!
//! On a machine with fewer cores than threads this decides more than the claim protocol does: the same ring does
//! 25 or 120 M events/s, depending on who naps when. The reasons, measured on two cores:
//!
//! - A cache line goes from core to core and back in 66 ns. Within that time a producer that keeps its lines
//!   publishes 15 events. So a consumer *lets events gather*: before it looks again it pauses, 0.1 µs at first, up to 1.6 µs while
//!   events keep coming in small portions; and so do its waits. Each look takes the line that the producer writes. An event
//!   that comes alone is never kept waiting by this, and the `try_` forms never pause.
//! - A producer that finds the ring full wants a *quarter of it* free before it goes on (bounded by a few looks, so
//!   a slow consumer is not waited for). Else it takes each slot the moment it is freed, and both sides run at the
//!   pace of single hand-overs.
//! - A producer that loses a compare-and-swap lets the winner run on (see [`Multi`](crate::sequencer::Multi)).
//! - Who waits for a thread that does not run should give it the core, and for a whole burst: after two looks in
//!   vain a waiter yields. With 1024 slots a change of threads (0.5 to 1 µs) then costs 1 ns an event.
//! - Two threads that share a core and yield to each other never part. So a producer takes a nap now and then although yielding
//!   would do: who wakes is placed anew, perhaps on a core of its own.
//! - Waking a sleeper costs its waker 2 µs. So sleep is what comes when yielding did not help, and sleeping
//!   *producers* are woken one at a time, and only when those who are awake do not keep the ring filled.
//! - Whoever yields comes behind all others who can run on its core. So of the producers that find the ring full one looks for room, and the others
//!   sleep: a consumer must not wait for hundreds who find nothing.
//! - Of those who wait for the same, as many are woken as can go on: one member of a pool for an event, one of a channel's tasks for a place. Where
//!   they wait for different things, as the consumers of a graph do, all are.
//! - To be heard takes a heavy fence, and that makes the next wake-up slower. So a lone consumer that sleeps for each event goes on listening
//!   while it is awake.
//!
//! How long to yield before sleeping is learnt for each side of each ring: it doubles when a wait ends while yielding or soon after
//! falling asleep, and halves when sleep was long, down to not looking at all. A ring that is mostly idle so uses next to no CPU, and a
//! busy one never sleeps.

mod arrivals;
mod bell;
mod pace;
mod room;
mod set;
mod strategy;

pub(crate) use arrivals::Arrivals;
pub(crate) use bell::Bell;
pub(crate) use room::{Places, Room};
pub use set::WaitSet;
pub use strategy::WaitStrategy;
