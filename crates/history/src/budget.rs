//! Limits on a check: memory, time, and how much of them is left.

use std::time::{Duration, Instant};

use crate::verdict::Limit;

/// What a check may use, and how much it is to tell.
///
/// ```
/// use std::time::Duration;
/// use millstream_history::Options;
///
/// let options = Options { time: Some(Duration::from_secs(10)), ..Options::default() };
/// assert_eq!(options.memory_bytes, 1 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The most memory in bytes that a check may use beside the history itself; 1 GiB unless you say otherwise.
    pub memory_bytes: u64,
    /// The longest a check may take; as long as it needs unless you say otherwise.
    pub time: Option<Duration>,
    /// Whether to shrink a failing history and find its longest linearizable prefix; yes unless you say otherwise.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory_bytes: 1 << 30, time: None, explain: true }
    }
}

/// A limit was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted(pub(crate) Limit);

/// What is left of the limits.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    bytes: u64,
    deadline: Option<Instant>,
    ticks: u32,
}

impl Budget {
    /// The clock is looked at once in so many ticks.
    const TICKS: u32 = 4096;

    pub(crate) fn new(options: &Options) -> Self {
        let deadline = options.time.and_then(|time| Instant::now().checked_add(time));
        Budget { bytes: options.memory_bytes, deadline, ticks: 0 }
    }

    /// The same limits for a task that gives all its memory back when it ends.
    pub(crate) fn lend(&self) -> Budget {
        self.clone()
    }

    /// The same, and no more than so much time.
    pub(crate) fn lend_for(&self, time: Duration) -> Budget {
        let deadline = Instant::now().checked_add(time);
        Budget { deadline: [self.deadline, deadline].into_iter().flatten().min(), ..self.clone() }
    }

    /// Takes memory.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or(Exhausted(Limit::Memory))?;
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// A moment passed; cheap enough for an inner loop.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<(), Exhausted> {
        self.ticks += 1;
        if self.ticks < Self::TICKS { Ok(()) } else { self.look_at_the_clock() }
    }

    /// Whether there is time left: a look at the clock, for steps that are long.
    #[cold]
    pub(crate) fn look_at_the_clock(&mut self) -> Result<(), Exhausted> {
        self.ticks = 0;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Exhausted(Limit::Time)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_and_given_back() {
        let mut budget = Budget::new(&Options { memory_bytes: 10, ..Options::default() });
        budget.charge(8).unwrap();
        assert_eq!(budget.charge(3), Err(Exhausted(Limit::Memory)));
        budget.release(1);
        assert_eq!(budget.charge(3), Ok(()));
    }

    #[test]
    fn time_runs_out() {
        let mut budget = Budget::new(&Options { time: Some(Duration::ZERO), ..Options::default() });
        assert_eq!((0..2 * Budget::TICKS).find_map(|_| budget.tick().err()), Some(Exhausted(Limit::Time)));
    }
}
