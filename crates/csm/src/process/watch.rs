//! A watch: a test looked at after every trial, for little more than the cost of counting.

use super::Test;
use crate::{Direction, MOST_TRIALS};

/// A [`Test`] fed trial by trial. It stops at exactly the same trial as the test itself, looked at each time.
///
/// **How it keeps up.** A level costs a hundred nanoseconds and more, so most are not computed. If the test would not
/// stop even after `k` more successes in a row, and not after `k` more failures in a row, then it stops at none of the
/// next `k` trials, whatever they are: of all states with `j <= k` more trials, the one with `j` successes is the most
/// favourable to "above", and more successes only make it more so ([`EProcess`](super::EProcess), promise 2). Both ends
/// are computed, with a margin for rounding, and the next `k` trials are only counted. The distance to a boundary grows
/// as the square root of the number of trials, so the looks become rare.
///
/// Cost: about a nanosecond a trial, less with [`observe_slice`](Self::observe_slice).
#[derive(Debug, Clone)]
pub struct Watch {
    test: Test,
    trials: u64,
    successes: u64,
    /// The number of trials before which no look is needed.
    next_look: u64,
    /// The number of trials that the last look skipped.
    stride: u64,
    stopped: Option<Direction>,
}

impl Watch {
    /// A watch without trials.
    #[must_use]
    pub fn new(test: Test) -> Self {
        Watch { test, trials: 0, successes: 0, next_look: 0, stride: 0, stopped: None }
    }

    /// The test.
    #[must_use]
    pub fn test(&self) -> &Test {
        &self.test
    }

    /// The number of trials so far, the one at which it stopped being the last.
    #[must_use]
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// The number of successes so far.
    #[must_use]
    pub fn successes(&self) -> u64 {
        self.successes
    }

    /// The proven direction, if any.
    #[must_use]
    pub fn stopped(&self) -> Option<Direction> {
        self.stopped
    }

    /// Adds a trial. After it has stopped, or after [`MOST_TRIALS`], trials are ignored.
    #[inline]
    pub fn observe(&mut self, success: bool) -> Option<Direction> {
        if self.trials + 1 < self.next_look {
            self.trials += 1;
            self.successes += u64::from(success);
            return None;
        }
        self.observe_and_look(1, u64::from(success))
    }

    /// Adds trials in their order; returns the number used, which is all unless it stopped, and the direction. It stops
    /// after exactly the trial after which [`observe`](Self::observe) would.
    pub fn observe_slice(&mut self, outcomes: &[bool]) -> (usize, Option<Direction>) {
        let mut used = 0;
        while used < outcomes.len() && self.stopped.is_none() {
            let chunk = &outcomes[used..][..self.until_look(outcomes.len() - used)];
            let successes = count(chunk);
            used += chunk.len();
            self.observe_and_look(chunk.len() as u64, successes);
        }
        (used, self.stopped)
    }

    /// Adds a set of trials that is looked at once, after its last one.
    ///
    /// # Panics
    /// If there are more successes than trials.
    pub fn observe_set(&mut self, trials: u64, successes: u64) -> Option<Direction> {
        assert!(successes <= trials, "{successes} successes in {trials} trials");
        self.observe_and_look(trials, successes)
    }

    /// The number of trials, from one to `most`, up to and including the next look.
    pub(crate) fn until_look(&self, most: usize) -> usize {
        if self.stopped.is_some() {
            return most;
        }
        let trials = self.next_look.saturating_sub(self.trials).max(1);
        usize::try_from(trials).unwrap_or(usize::MAX).min(most)
    }

    #[cold]
    #[inline(never)]
    fn observe_and_look(&mut self, trials: u64, successes: u64) -> Option<Direction> {
        if self.stopped.is_some() || trials > MOST_TRIALS - self.trials {
            return self.stopped;
        }
        self.trials += trials;
        self.successes += successes;
        if self.trials >= self.next_look {
            self.stopped = self.test.proof(self.trials, self.successes);
            if self.stopped.is_none() {
                self.plan_next_look();
            }
        }
        self.stopped
    }

    fn plan_next_look(&mut self) {
        let mut stride = (2 * self.stride + 1).min(MOST_TRIALS - self.trials);
        while stride > 0 && !self.is_clear(stride) {
            stride /= 2;
        }
        self.stride = stride;
        self.next_look = self.trials + stride + 1;
    }

    /// Whether the next `trials` trials cannot stop the test.
    fn is_clear(&self, trials: u64) -> bool {
        let last = self.trials + trials;
        self.test.is_clear_of(Direction::Above, last, self.successes + trials)
            && self.test.is_clear_of(Direction::Below, last, self.successes)
    }
}

/// The number of outcomes that are true.
pub(crate) fn count(outcomes: &[bool]) -> u64 {
    // Bytes are added up as bytes, so that a vector register holds many of them.
    outcomes.chunks(255).map(|chunk| u64::from(chunk.iter().fold(0u8, |sum, &success| sum + u8::from(success)))).sum()
}
