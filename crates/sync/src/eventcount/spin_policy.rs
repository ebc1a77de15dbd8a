//! The spinning and napping of a waiter before it sets the flag and sleeps.

use std::time::Duration;

/// How long a waiter spins and naps before it sleeps until it is woken.
///
/// A waiter that spins or naps has not set the flag, so the incrementer pays for no system call. The waiter first
/// checks the count `spins` times with a pause instruction between checks. Then it naps `naps` times, each nap twice as
/// long as the one before, up to 10 ms. Then it sets the flag and sleeps until it is woken.
///
/// Spinning pays if a running thread is expected to make the change within a microsecond. Napping suits a consumer that
/// may let work accumulate: the naps bound the rate of wake-ups, but may delay an event by up to a nap, so napping is
/// off by default.
///
/// ```
/// use std::time::Duration;
/// use millstream_sync::eventcount::SpinPolicy;
///
/// let gathering = SpinPolicy::default().spins(0).naps(4, Duration::from_micros(50)); // 50, 100, 200, 400 µs
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinPolicy {
    pub(super) spins: u32,
    pub(super) naps: u32,
    pub(super) first_nap: Duration,
}

impl SpinPolicy {
    /// The longest nap.
    const MAX_NAP: Duration = Duration::from_millis(10);

    /// Spins 100 times, some 2 µs, and does not nap.
    pub const DEFAULT: SpinPolicy = SpinPolicy { spins: 100, naps: 0, first_nap: Duration::ZERO };

    /// Goes to sleep at once.
    pub const NONE: SpinPolicy = SpinPolicy { spins: 0, ..SpinPolicy::DEFAULT };

    /// The same policy with `spins` checks of the count, some 20 ns each.
    #[must_use]
    pub const fn spins(self, spins: u32) -> Self {
        SpinPolicy { spins, ..self }
    }

    /// The same policy with `naps` naps, the first of length `first_nap`.
    #[must_use]
    pub const fn naps(self, naps: u32, first_nap: Duration) -> Self {
        SpinPolicy { naps, first_nap, ..self }
    }

    /// The lengths of the naps.
    pub(super) fn nap_lengths(self) -> impl Iterator<Item = Duration> {
        let doubled = |&nap: &Duration| Some((nap * 2).min(Self::MAX_NAP));
        std::iter::successors(Some(self.first_nap.min(Self::MAX_NAP)), doubled).take(self.naps as usize)
    }
}

impl Default for SpinPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_up_to_the_maximum() {
        let naps = SpinPolicy::NONE.naps(5, Duration::from_millis(1)).nap_lengths().map(|nap| nap.as_millis());
        assert_eq!(naps.collect::<Vec<_>>(), [1, 2, 4, 8, 10]);
    }
}
