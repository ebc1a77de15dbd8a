//! The timed rule: a flag that stood for a second has been seen.

use std::time::{Duration, Instant};

use super::kind::Announced;

/// Follows how long the count has stood still with the flag set.
#[derive(Debug)]
pub(super) struct Quiet {
    since: Instant,
    next_nap: Duration,
}

impl Quiet {
    /// After this long without a change, an increment that overlooked the flag is out of the question.
    const ENOUGH: Duration = Duration::from_secs(1);
    const FIRST_NAP: Duration = Duration::from_millis(1);
    const LONGEST_NAP: Duration = Duration::from_millis(100);

    pub(super) fn new() -> Self {
        Quiet { since: Instant::now(), next_nap: Self::FIRST_NAP }
    }

    /// How long to sleep at most before the next look; `None` when there is no need to look again.
    pub(super) fn nap(&mut self, announced: Announced) -> Option<Duration> {
        if announced == Announced::Newly {
            // Whatever stood still before, the flag did not.
            *self = Self::new();
        }
        if self.since.elapsed() >= Self::ENOUGH {
            return None;
        }
        let nap = self.next_nap;
        self.next_nap = (nap * 2).min(Self::LONGEST_NAP);
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
        quiet.since -= Quiet::ENOUGH;
        assert_eq!(quiet.nap(Announced::Already), None);
        assert_eq!(quiet.nap(Announced::Newly), Some(Duration::from_millis(1)), "the flag was gone");
    }

    #[test]
    fn naps_grow_to_a_tenth_of_a_second() {
        let mut quiet = Quiet::new();
        let longest = (0..20).filter_map(|_| quiet.nap(Announced::Already)).max();
        assert_eq!(longest, Some(Quiet::LONGEST_NAP));
    }
}
