//! The differences between the kinds of event counts.

use super::scope::{Overlooks, Scope};
use super::sleep::Sleeping;

/// A kind of event count: [`Many`](super::many::Many), [`TwoWord`](super::two_word::TwoWord), and on x86-64 `Unlocked`.
/// Each has its own proof that it loses no wake-up.
pub trait Kind: Send + Sync + 'static {
    /// The kind with value zero.
    #[cfg(not(loom))]
    const ZERO: Self;

    /// How an increment can overlook a flag that is set concurrently.
    const OVERLOOKS: Overlooks;

    /// The kind with value `value`, truncated to its width.
    fn starting_at(value: u64) -> Self;

    /// The value, with acquire ordering.
    fn value(&self) -> u64;

    /// `number` as a value of this kind's width.
    fn wrap(number: u64) -> u64;

    /// Adds `n`, with release ordering, and returns whether [`settle`](Kind::settle) must be called.
    ///
    /// # Safety
    /// For a [`SoleKind`], no other call of `add` or `settle` runs at the same time.
    unsafe fn add<S: Scope>(&self, n: u64) -> bool;

    /// Wakes at most `most` waiters after [`add`](Kind::add) saw the flag, and clears or keeps the flag. `wake`
    /// wakes at most as many waiters as its argument says and returns how many it woke.
    ///
    /// # Safety
    /// The caller upholds the contract of [`add`](Kind::add).
    unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize);

    /// Sets the flag if the count has the value `value`.
    fn announce(&self, value: u64) -> Announced;

    /// Sleeps unless the count has changed since [`announce`](Kind::announce).
    fn sleep(&self, value: u64, sleeping: &Sleeping<'_>);

    /// Wakes at most `most` sleeping threads, and returns how many it woke.
    fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize;
}

/// A kind with one incrementer.
pub trait SoleKind: Kind {
    /// The incrementer's copy of the count, if the kind uses one. A loop of increments keeps the copy in a register, so
    /// no increment loads the value that the previous one stored.
    type Cached: std::fmt::Debug + Send + Sync;

    /// Reads the copy for a new incrementer.
    fn cache(&self) -> Self::Cached;

    /// Like [`add`](Kind::add), for the incrementer that has a cached copy of the count.
    ///
    /// # Safety
    /// The caller upholds the contract of [`add`](Kind::add). The copy comes from [`cache`](SoleKind::cache), and each
    /// call of `add` or `add_cached` since then passed it.
    unsafe fn add_cached<S: Scope>(&self, cached: &mut Self::Cached, n: u64) -> bool;
}

/// The outcome of [`announce`](Kind::announce).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// The count no longer has the waiter's value.
    Changed,
    /// This waiter set the flag.
    Newly,
    /// The flag was already set.
    Already,
}
