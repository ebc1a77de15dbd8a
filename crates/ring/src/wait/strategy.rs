//! The user's choice of a wait strategy.

/// How threads wait for events and for room.
///
/// | strategy | CPU while waiting | latency of an event | take it when |
/// | --- | --- | --- | --- |
/// | [`Adaptive`](Self::Adaptive) | none, after some 20 µs | 0.1 µs, a few µs from sleep | always, unless you know better |
/// | [`Block`](Self::Block) | none | a few µs | events are rare and other programs need the CPU |
/// | [`Yield`](Self::Yield) | all that other threads leave | 0.1 to 1 µs | waking a sleeper is never acceptable |
/// | [`Spin`](Self::Spin) | a core | 0.1 µs | each waiter has a core to itself |
///
/// Waiting as a task (the `async` methods) never spins, whatever the strategy.
///
/// **Waiting for room differs from waiting for events.** The next event wakes a sleeping consumer, so the latencies
/// above are those of events. Of the threads that wait for room, with [`Adaptive`](Self::Adaptive) or
/// [`Block`](Self::Block), some sleep while others keep the ring full: waking one takes as long as hundreds of events.
/// Consumers wake them one at a time, when the ring runs empty. If the consumer stops before that, with room for some,
/// they find it by themselves: each naps for as long as it has waited so far, at least 1 ms and at most 50 ms, times
/// the number of sleepers, but never more than 200 ms. So a `send` into a full ring may return that much later than it
/// could, and waiting for room takes some CPU: eight producers with a consumer that takes an event per millisecond use
/// 2.4 % of a core. [`Yield`](Self::Yield), [`Spin`](Self::Spin) and tasks that send find room at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Looks a few times, then yields, then sleeps on an event count. The time for which it yields is learnt from
    /// earlier waits.
    #[default]
    Adaptive,
    /// Sleeps on an event count at once.
    Block,
    /// Looks a few times, then yields for as long as necessary.
    Yield,
    /// Looks again and again, with pauses. With fewer cores than threads this keeps the thread for which it waits from
    /// running.
    Spin,
}
