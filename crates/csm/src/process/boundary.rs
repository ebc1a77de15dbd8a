//! The counts at which a test stops, for each number of trials.

use super::Test;
use crate::Direction;

/// The numbers of successes at which a test stops, for an increasing number of trials.
///
/// A further trial moves either boundary by at most one. Near the boundary of "above", a failure never helps, and if a
/// count stops the test, so does the count after a further success. For "below", exchange success and failure. So each
/// step computes only two or three levels.
#[derive(Debug)]
pub(crate) struct Boundary<'a> {
    test: &'a Test,
    trials: u64,
    /// The smallest number of successes that proves "above"; more than the number of trials if none does.
    above: u64,
    /// Any smaller number of successes than this one proves "below".
    below: u64,
}

impl<'a> Boundary<'a> {
    /// The boundary before the first trial.
    pub(crate) fn new(test: &'a Test) -> Self {
        Boundary { test, trials: 0, above: 1, below: 0 }
    }

    /// Advances by one trial.
    pub(crate) fn advance(&mut self) {
        self.trials += 1;
        while self.above <= self.trials && !self.test.proves(Direction::Above, self.trials, self.above) {
            self.above += 1;
        }
        while self.below <= self.trials && self.test.proves(Direction::Below, self.trials, self.below) {
            self.below += 1;
        }
    }

    /// The direction that this number of successes proves.
    pub(crate) fn direction(&self, successes: u64) -> Option<Direction> {
        if successes >= self.above {
            Some(Direction::Above)
        } else if successes < self.below {
            Some(Direction::Below)
        } else {
            None
        }
    }
}
