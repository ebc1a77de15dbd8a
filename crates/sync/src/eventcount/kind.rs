//! What distinguishes the kinds of event counts.

use super::place::{Overlooks, Place};
use super::sleep::Sleeping;

/// A kind of event count: [`Many`](super::Many), [`TwoWord`](super::TwoWord), and on x86-64
/// `Unlocked`.
///
/// Sealed: the kinds are proven one by one.
pub trait Kind: sealed::Kind {}

/// A kind that only one thread at a time may increment.
pub trait SoleKind: Kind {}

/// The value of a count whose flag says that somebody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// The value is not the waiter's any more.
    Changed,
    /// The flag was not set before.
    Newly,
    /// The flag was set before.
    Already,
}

pub(super) mod sealed {
    use super::{Announced, Overlooks, Place, Sleeping};

    pub trait Kind: Send + Sync + 'static {
        #[cfg(not(loom))]
        const ZERO: Self;

        /// How an increment can overlook a flag that was set at the same time.
        const OVERLOOKS: Overlooks;

        fn starting_at(value: u64) -> Self;

        /// The value, with acquire ordering.
        fn value(&self) -> u64;

        /// `number` as a value of this kind's width.
        fn wrap(number: u64) -> u64;

        /// Adds `n`, with release ordering, and tells whether [`settle`](Kind::settle) must be called.
        ///
        /// # Safety
        /// For a [`SoleKind`](super::SoleKind), no other call of `add` or `settle` happens at the same time.
        unsafe fn add<P: Place>(&self, n: u64) -> bool;

        /// Wakes at most `most` waiters after [`add`](Kind::add) saw the flag, and brings the flag in order.
        /// `wake` wakes at most so many and tells how many it woke.
        ///
        /// # Safety
        /// As for `add`.
        unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize);

        /// Sets the flag if the count has this value.
        fn announce(&self, value: u64) -> Announced;

        /// Sleeps unless the count changed since [`announce`](Kind::announce).
        fn sleep(&self, value: u64, sleeping: &Sleeping<'_>);

        /// Wakes at most so many sleeping threads.
        fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize;
    }
}
