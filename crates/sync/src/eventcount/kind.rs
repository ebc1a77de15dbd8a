//! The differences between the kinds of event counts.

use super::place::{Overlooks, Place};
use super::sleep::Sleeping;

/// A kind of event count: [`Many`](super::Many), [`TwoWord`](super::TwoWord), and on x86-64
/// `Unlocked`.
///
/// Sealed: each kind has its own proof that it loses no wake-up.
pub trait Kind: sealed::Kind {}

/// A kind that only one thread may increment at a time.
pub trait SoleKind: Kind {}

/// The outcome of setting the flag for a waiter of some value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// The count no longer has the waiter's value.
    Changed,
    /// This waiter set the flag.
    Newly,
    /// The flag was already set.
    Already,
}

pub(super) mod sealed {
    use super::{Announced, Overlooks, Place, Sleeping};

    pub trait Kind: Send + Sync + 'static {
        #[cfg(not(loom))]
        const ZERO: Self;

        /// How an increment can overlook a flag that is set concurrently.
        const OVERLOOKS: Overlooks;

        fn starting_at(value: u64) -> Self;

        /// The value, with acquire ordering.
        fn value(&self) -> u64;

        /// `number` as a value of this kind's width.
        fn wrap(number: u64) -> u64;

        /// Adds `n`, with release ordering, and returns whether [`settle`](Kind::settle) must be called.
        ///
        /// # Safety
        /// For a [`SoleKind`](super::SoleKind), no other call of `add` or `settle` runs at the same time.
        unsafe fn add<P: Place>(&self, n: u64) -> bool;

        /// Wakes at most `most` waiters after [`add`](Kind::add) saw the flag, and clears or keeps the flag. `wake`
        /// wakes at most as many waiters as its argument says and returns how many it woke.
        ///
        /// # Safety
        /// As for `add`.
        unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize);

        /// Sets the flag if the count has the value `value`.
        fn announce(&self, value: u64) -> Announced;

        /// Sleeps unless the count has changed since [`announce`](Kind::announce).
        fn sleep(&self, value: u64, sleeping: &Sleeping<'_>);

        /// Wakes at most `most` sleeping threads, and returns how many it woke.
        fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize;
    }
}
