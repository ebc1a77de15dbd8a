//! The choice a user has.

/// How threads wait for events and for room.
///
/// | strategy | CPU while waiting | latency of an event | take it when |
/// | --- | --- | --- | --- |
/// | [`Adaptive`](Self::Adaptive) | none, after some 20 µs | 0.1 µs, a few µs from sleep | always, unless you know better |
/// | [`Block`](Self::Block) | none | a few µs | events are rare and the CPU belongs to others |
/// | [`Yield`](Self::Yield) | all that others leave | 0.1 to 1 µs | no sleeper may ever have to be woken |
/// | [`Spin`](Self::Spin) | a core | 0.1 µs | each waiter has a core to itself |
///
/// Waiting as a task (the `async` methods) never spins, whatever the strategy.
///
/// **Room is another matter than events.** A consumer that sleeps is woken by the next event, so the latencies above are those of events. Of the
/// threads that wait for room, with [`Adaptive`](Self::Adaptive) or [`Block`](Self::Block), some sleep while others keep the ring full:
/// waking one takes as long as hundreds of events. Consumers wake them one at a time, when the ring runs empty. Should the consumer stop
/// before, with room for some, they find it by themselves: each naps for as long as it has waited so far, at least 1 ms and at most 50 ms, times
/// the number of those who sleep, but never more than 200 ms. So a `send` into a full ring may return that much later than it
/// could, and waiting for room takes some CPU: eight producers at a consumer that takes an event each millisecond, 2.4 % of a core.
/// [`Yield`](Self::Yield), [`Spin`](Self::Spin) and tasks that send find room at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitStrategy {
    /// Looks a few times, then yields, then sleeps on an event count. How long it yields is learnt from how the
    /// waits before ended.
    #[default]
    Adaptive,
    /// Sleeps on an event count at once.
    Block,
    /// Looks a few times, then yields for as long as it takes.
    Yield,
    /// Looks again and again, with pauses. With fewer cores than threads that keeps the one that is waited for
    /// from running.
    Spin,
}
