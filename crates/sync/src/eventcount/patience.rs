//! The spinning and napping of a waiter before it sets the flag and sleeps.

use std::time::Duration;

/// How long a waiter tries to make do without a wake-up.
///
/// A waiter that spins or naps has not set the flag, so the incrementer pays for no system call. The waiter first
/// checks the count `spins` times with a pause instruction between checks. Then it naps `naps` times, each nap twice as
/// long as the one before, up to [`NAP_LONGEST`](Self::NAP_LONGEST). Then it sets the flag and sleeps until it is
/// woken.
///
/// Spinning pays if a running thread is expected to make the change within a microsecond. Napping suits a consumer that
/// may let work gather: the naps bound the rate of wake-ups, at the price of up to a nap of delay, so napping is off by
/// default.
///
/// ```
/// use std::time::Duration;
/// use millstream_sync::eventcount::Patience;
///
/// let gathering = Patience::default().spins(0).naps(4, Duration::from_micros(50)); // 50, 100, 200, 400 µs
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub(super) spins: u32,
    pub(super) naps: u32,
    pub(super) first_nap: Duration,
}

impl Patience {
    /// Length of the longest nap.
    pub const NAP_LONGEST: Duration = Duration::from_millis(10);

    /// Spins 100 times, some 2 µs, and does not nap.
    pub const DEFAULT: Patience = Patience { spins: 100, naps: 0, first_nap: Duration::ZERO };

    /// Goes to sleep at once.
    pub const NONE: Patience = Patience { spins: 0, ..Patience::DEFAULT };

    /// Checks the count `spins` times, with a pause instruction between checks.
    #[must_use]
    pub const fn spins(self, spins: u32) -> Self {
        Patience { spins, ..self }
    }

    /// Naps `naps` times, the first time for `first_nap`.
    #[must_use]
    pub const fn naps(self, naps: u32, first_nap: Duration) -> Self {
        Patience { naps, first_nap, ..self }
    }

    /// The lengths of the naps.
    pub(super) fn nap_lengths(self) -> impl Iterator<Item = Duration> {
        growing(self.first_nap, Self::NAP_LONGEST).take(self.naps as usize)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// `first`, doubled each time, up to `longest`.
pub(super) fn growing(first: Duration, longest: Duration) -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(first.min(longest)), move |&length| Some((length * 2).min(longest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_up_to_the_longest() {
        let naps = Patience::NONE.naps(5, Duration::from_millis(1)).nap_lengths().map(|nap| nap.as_millis());
        assert_eq!(naps.collect::<Vec<_>>(), [1, 2, 4, 8, 10]);
    }
}
