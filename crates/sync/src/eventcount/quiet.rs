//! The timed rule: once the flag has been set for a second and the count has not changed, the next increment sees the
//! flag.

use std::time::{Duration, Instant};

use super::kind::Announced;

/// Measures how long the flag has been set without a change of the count.
#[derive(Debug)]
pub(super) struct Quiet {
    since: Instant,
    next_nap: Duration,
}

impl Quiet {
    /// After this long without a change, no increment can have overlooked the flag.
    const MIN_QUIET: Duration = Duration::from_secs(1);
    const FIRST_NAP: Duration = Duration::from_millis(1);
    const MAX_NAP: Duration = Duration::from_millis(100);

    pub(super) fn new() -> Self {
        Quiet { since: Instant::now(), next_nap: Self::FIRST_NAP }
    }

    /// The longest sleep before the next check; `None` when no further check is needed.
    pub(super) fn nap(&mut self, announced: Announced) -> Option<Duration> {
        if announced == Announced::Newly {
            // The flag had been cleared, so the time before that does not count.
            *self = Self::new();
        }
        if self.since.elapsed() >= Self::MIN_QUIET {
            return None;
        }
        let nap = self.next_nap;
        self.next_nap = (nap * 2).min(Self::MAX_NAP);
        Some(nap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_of_standing_still_ends_the_naps() {
        let mut quiet = Quiet::new();
        assert_eq!(quiet.nap(Announced::Newly), Some(Duration::from_millis(1)));
        assert_eq!(quiet.nap(Announced::Already), Some(Duration::from_millis(2)));
        quiet.since -= Quiet::MIN_QUIET;
        assert_eq!(quiet.nap(Announced::Already), None);
        assert_eq!(quiet.nap(Announced::Newly), Some(Duration::from_millis(1)), "the flag was gone");
    }

    #[test]
    fn naps_grow_to_a_tenth_of_a_second() {
        let mut quiet = Quiet::new();
        let longest = (0..20).filter_map(|_| quiet.nap(Announced::Already)).max();
        assert_eq!(longest, Some(Quiet::MAX_NAP));
    }
}
