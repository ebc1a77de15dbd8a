//! The user's choice of a wait strategy.

/// How threads wait for events and for room.
///
/// | strategy | CPU while waiting | latency of an event | take it when |
/// | --- | --- | --- | --- |
/// | [`Adaptive`](Self::Adaptive) | none, after about as long as a sleep costs | 0.1 µs, a few µs from sleep | always, unless you know better |
/// | [`Block`](Self::Block) | none | a few µs | events are rare and other programs need the CPU |
/// | [`Yield`](Self::Yield) | all that other threads leave | 0.1 to 1 µs | waking a sleeper is never acceptable |
/// | [`Spin`](Self::Spin) | a core | 0.1 µs | each waiter has a core to itself |
///
/// Waiting as a task (the `async` methods) never spins, whatever the strategy.
///
/// **Waiting for room differs from waiting for events.** The next event wakes a sleeping consumer, so the latencies
/// above are those of events. Of the threads that wait for room, with [`Adaptive`](Self::Adaptive), one polls, and the
/// others sleep in a line, in the order in which they came: waking one takes as long as hundreds of events. The poller
/// hands over after some 30 times what a sleep costs, and a consumer that runs out of events wakes the first of the
/// line sooner. If consumers stop before that, with room for some producers, these find it by themselves: each naps for
/// as long as it has waited so far, at least 1 ms and at most 50 ms, times the length of the line, but never more than
/// 200 ms. So a `send` into a full ring may return that much later than it could. With [`Block`](Self::Block) no
/// producer polls. [`Yield`](Self::Yield), [`Spin`](Self::Spin) and tasks that send find room at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Polls and yields for as long as a sleep and its wake-up cost in this process, then sleeps on an event count. Polls
    /// for a shorter time, down to none, while events are far apart.
    #[default]
    Adaptive,
    /// Sleeps on an event count at once.
    Block,
    /// Polls and yields for as long as necessary.
    Yield,
    /// Polls with pauses and without yields, for as long as necessary. With fewer cores than threads this keeps the
    /// thread for which it waits from running.
    Spin,
}
