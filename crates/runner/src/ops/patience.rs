//! Limits on waits that might never end.

use std::time::{Duration, Instant};

use millstream_command::program::LOOK;
use millstream_flow::{Cx, Failure};

/// Decides whether a caller may go on waiting.
pub trait Patience {
    /// The longest pause before the caller must call this again.
    ///
    /// # Errors
    /// The reason why the caller must stop waiting.
    fn left(&self) -> Result<Duration, Failure>;
}

/// A unit waits until its stage's time limit passes or its flow ends.
impl Patience for Cx<'_> {
    fn left(&self) -> Result<Duration, Failure> {
        self.check()?;
        Ok(self.deadline().map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK)))
    }
}
