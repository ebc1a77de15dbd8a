//! Policies: batches, retries, units whose last attempt has failed, and overload.

use std::ops::Range;
use std::time::Duration;

/// How many units a worker takes from a stage's queue at once.
///
/// The default, [`Batch::auto`], uses the measured service time of the stage. A batch is sized to run for about 200 µs
/// in a flow that pulls a source, and for about 20 µs if units are sent one by one or the stage blocks. A batch has at
/// most 64 units, and few enough that every worker gets a share of the units in flight. So batches reduce the cost of
/// dispatch in stages with short runs, and long runs are spread over all workers. The units of a batch run one after
/// the other. Choose [`Batch::of(1)`](Batch::of) in two cases. The first is a stage whose units could wait at the same
/// time, but wait too rarely for the measured time to show it. The second is a stage whose units wait *for one
/// another*, because a unit that waits for another unit of its batch never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub(crate) size: Option<usize>,
    pub(crate) wait: Duration,
}

impl Batch {
    /// The maximum size of a batch.
    pub const MAX_SIZE: usize = 65_536;
    /// The maximum size of a batch that [`Batch::auto`] forms.
    pub(crate) const MAX_AUTO: usize = 64;

    /// A batch whose size follows the measured service time.
    pub const fn auto() -> Self {
        Batch { size: None, wait: Duration::ZERO }
    }

    /// A batch of at most `size` units.
    pub const fn of(size: usize) -> Self {
        Batch { size: Some(size), wait: Duration::ZERO }
    }

    /// This batch, limited to `size` units if it has no limit of its own.
    pub(crate) fn or_of(self, size: usize) -> Self {
        Batch { size: self.size.or(Some(size)), ..self }
    }

    /// Lets a partial batch wait this long for more units before it runs (default: no wait).
    #[must_use]
    pub const fn wait(mut self, longest: Duration) -> Self {
        self.wait = longest;
        self
    }
}

impl Default for Batch {
    fn default() -> Self {
        Batch::auto()
    }
}

/// How often a failed unit is retried in the same stage, and after which pauses.
///
/// The pause before attempt *k* + 1 is drawn evenly from `p / 2` to `p`, where `p` is the smaller of `range.end` and
/// `range.start · 2^(k-1)` (see [`backoff`](Self::backoff)). So units that failed together are not retried together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub(crate) times: u32,
    pub(crate) backoff: Range<Duration>,
}

impl Retry {
    /// Never retries. This is the default.
    pub const fn never() -> Self {
        Retry::times(0)
    }

    /// Allows up to `times` attempts after the first, with pauses that start at 100 ms and double up to 5 s.
    pub const fn times(times: u32) -> Self {
        Retry { times, backoff: Duration::from_millis(100)..Duration::from_secs(5) }
    }

    /// Sets pauses that start at `range.start` and double up to `range.end`.
    #[must_use]
    pub const fn backoff(mut self, range: Range<Duration>) -> Self {
        self.backoff = range;
        self
    }

    /// The pause after `failed` failed attempts, in ns; `random` is any 64 random bits.
    pub(crate) fn pause_ns(&self, failed: u32, random: u64) -> u64 {
        let least = u64::try_from(self.backoff.start.as_nanos()).unwrap_or(u64::MAX);
        let most = u64::try_from(self.backoff.end.as_nanos()).unwrap_or(u64::MAX).max(least);
        let doublings = failed.saturating_sub(1).min(63);
        let full = if least.leading_zeros() > doublings { (least << doublings).min(most) } else { most };
        let half = full / 2;
        full - half + ((u128::from(random) * u128::from(half)) >> 64) as u64
    }
}

impl Default for Retry {
    fn default() -> Self {
        Retry::never()
    }
}

/// The policy for a unit whose last attempt has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AfterFailure {
    /// The unit becomes a [`DeadLetter`](crate::DeadLetter).
    #[default]
    DeadLetter,
    /// The unit is retired without a result, and counted as skipped.
    Skip,
    /// The unit becomes a dead letter, and the flow stops admitting and drains.
    StopFlow,
}

/// The behaviour of `submit` when the flow is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overload {
    /// The submitter waits for room.
    #[default]
    Wait,
    /// The new unit is refused and returned.
    Reject,
    /// The flow drops the unit that has waited longest in the queue of the first stage. The ticket of the dropped unit
    /// says so, and the unit counts as a dead letter. If no unit is in that queue, or a unit waits for memory, the new
    /// unit is refused.
    DropOldest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_stay_in_their_upper_half() {
        let retry = Retry::times(9).backoff(Duration::from_nanos(100)..Duration::from_nanos(1000));
        for (failed, full) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (60, 1000), (4_000_000, 1000)] {
            assert_eq!(retry.pause_ns(failed, 0), full - full / 2);
            let longest = retry.pause_ns(failed, u64::MAX);
            assert!(longest <= full && longest >= full - 1, "{longest} {full}");
        }
    }

    #[test]
    fn a_reversed_range_of_pauses_uses_its_start() {
        let retry = Retry::times(1).backoff(Duration::from_nanos(10)..Duration::from_nanos(1));
        assert!(retry.pause_ns(5, u64::MAX) <= 10);
    }
}
