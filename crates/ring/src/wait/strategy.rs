//! The user's choice of a wait strategy.

/// How threads wait for events and for room.
///
/// | strategy | CPU while waiting | latency of an event | take it when |
/// | --- | --- | --- | --- |
/// | [`Adaptive`](Self::Adaptive) | none, after some µs of polling | 0.1 µs, a few µs if asleep | in nearly all cases |
/// | [`Block`](Self::Block) | none | a few µs | events are rare and other programs need the CPU |
/// | [`Yield`](Self::Yield) | all that other threads do not use | 0.1 to 1 µs | waking a sleeper is never acceptable |
/// | [`Spin`](Self::Spin) | a core | 0.1 µs | each waiter has a core to itself |
///
/// Waiting as a task (the `async` methods) never spins, regardless of the strategy.
///
/// **Waiting for room differs from waiting for events.** The latencies above are those of events, because the next
/// event wakes a sleeping consumer. Waking a thread takes as long as hundreds of events, so of the threads that wait
/// for room, with [`Adaptive`](Self::Adaptive), only one polls. The others sleep in a line, in the order in which they
/// came. After some 30 times the cost of a sleep, the polling thread wakes the first of the line and joins the line
/// itself. A consumer that runs out of events wakes the first of the line sooner.
///
/// If the consumers stop for good and leave room without waking a producer, the sleeping producers find the room on
/// their own. Each sleeps for the time that it has waited so far, at least 1 ms and at most 50 ms, times the length of
/// the line, but never for more than 200 ms. So a `send` into a full ring may return that much later than it could.
///
/// With [`Block`](Self::Block) no producer polls. There is no such delay with [`Yield`](Self::Yield) and
/// [`Spin`](Self::Spin), where all producers poll, or for tasks, which are woken as soon as there is room for them.
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
    /// Polls with pauses and without yields, for as long as necessary. With fewer cores than threads, a spinning thread
    /// can occupy the core on which the thread that it waits for should run.
    Spin,
}
