//! The choice a user has.

/// How threads wait for events and for room.
///
/// | strategy | CPU while waiting | latency | take it when |
/// | --- | --- | --- | --- |
/// | [`Adaptive`](Self::Adaptive) | none, after some 20 µs | 0.1 µs, a few µs from sleep | always, unless you know better |
/// | [`Block`](Self::Block) | none | a few µs | events are rare and the CPU belongs to others |
/// | [`Yield`](Self::Yield) | all that others leave | 0.1 to 1 µs | no sleeper may ever have to be woken |
/// | [`Spin`](Self::Spin) | a core | 0.1 µs | each waiter has a core to itself |
///
/// Waiting as a task (the `async` methods) never spins, whatever the strategy.
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
