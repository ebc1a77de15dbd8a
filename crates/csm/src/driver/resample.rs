//! Resampling: sets that are identically distributed, of units that are not.
//!
//! Production requests differ: some are heavier, and some depend on others. But if sets of requests are drawn from one
//! sample, each set without replacement and independently of the others, the sets are identically distributed by
//! construction. So judge the units of a set one at a time, add up their successes, and evaluate the evidence only when
//! a set is complete (Paul Khuong's advice).
//!
//! **Why this is safe.** The rate in question is that of the sample: the share of its units that succeed. The number of
//! successes in a set drawn without replacement varies *less* than in independent trials of this rate. More exactly,
//! the mean of any convex function is at most as large without replacement as with replacement (W. Hoeffding 1963,
//! theorem 4). The likelihood ratio of an alternative is convex in the number of a set's successes. So the factor by
//! which a set multiplies the evidence is at most one on average, as required.

use super::{Driver, Progress, Status};
use crate::Error;
use crate::random::Random;

impl Driver {
    /// Draws sets of `size` units and judges each unit, until the claim about the success rate is decided or the limit
    /// is reached. A set is drawn without replacement and in random order, and is always completed. Reports progress
    /// after each set.
    ///
    /// The units need not be identically distributed. The claim is about the share of all `units` that succeed.
    ///
    /// # Errors
    /// A size of zero, a size above the number of units, or more than [`MAX_TRIALS`](crate::MAX_TRIALS) trials.
    ///
    /// ```
    /// use millstream_csm::{Claim, Driver, Progress, Setup, Verdict, random::Random};
    ///
    /// let latencies_ms: Vec<u32> = (0..500).map(|i| if i % 100 == 0 { 90 } else { 10 }).collect();
    /// let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.9), 1e-6))?;
    /// let status = driver.run_sets(&latencies_ms, 40, &mut Random::seeded(1), |&latency| latency < 50, |_| ())?;
    /// assert_eq!(status.progress, Progress::Decided(Verdict::Holds));
    /// # Ok::<(), millstream_csm::Error>(())
    /// ```
    pub fn run_sets<T>(
        &mut self,
        units: &[T],
        size: usize,
        random: &mut Random,
        mut judge: impl FnMut(&T) -> bool,
        mut progress: impl FnMut(&Status),
    ) -> Result<Status, Error> {
        let mut sets = Sets::new(units, size)?;
        loop {
            let successes = sets.next(random).filter(|unit| judge(unit)).count() as u64;
            self.observe_set(size as u64, successes)?;
            let status = self.status();
            progress(&status);
            if status.progress != Progress::Running {
                return Ok(status);
            }
        }
    }
}

/// Sets of a fixed size, drawn at random from a sample.
struct Sets<'a, T> {
    units: Vec<&'a T>,
    size: usize,
}

impl<'a, T> Sets<'a, T> {
    fn new(units: &'a [T], size: usize) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::OutOfRange { what: "a set's size", expected: "at least one", found: 0.0 });
        }
        if size > units.len() {
            return Err(Error::TooFew { what: "the sample", least: size as u64, found: units.len() as u64 });
        }
        Ok(Sets { units: units.iter().collect(), size })
    }

    /// The next set: distinct units of the sample, in random order.
    fn next(&mut self, random: &mut Random) -> impl Iterator<Item = &'a T> {
        random.shuffle_front(&mut self.units, self.size);
        self.units[..self.size].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Setup, Verdict};

    #[test]
    fn a_claim_about_the_sample_is_decided_at_the_end_of_a_set() {
        let latencies: Vec<u32> = (0..500).map(|i| if i % 100 == 0 { 90 } else { 10 }).collect();
        let setup = Setup::new(Claim::AtLeast(0.9), 1e-6);
        let mut reports = 0;
        let fast = |&latency: &u32| latency < 50;
        let mut driver = Driver::new(&setup).unwrap();
        let status = driver.run_sets(&latencies, 40, &mut Random::seeded(2), fast, |_| reports += 1).unwrap();
        assert_eq!(status.progress, Progress::Decided(Verdict::Holds));
        assert_eq!(status.trials, 40 * reports);
    }

    #[test]
    fn a_set_has_distinct_units_each_equally_often() {
        let units: Vec<usize> = (0..10).collect();
        let mut sets = Sets::new(&units, 4).unwrap();
        let mut random = Random::seeded(3);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            let mut set: Vec<usize> = sets.next(&mut random).copied().collect();
            set.iter().for_each(|&unit| seen[unit] += 1);
            set.sort_unstable();
            set.dedup();
            assert_eq!(set.len(), 4);
        }
        // The tolerance is six standard deviations of a count: 6 sqrt(10000 * 0.4 * 0.6).
        assert!(seen.iter().all(|&n| n.abs_diff(4000) < 294), "{seen:?}");
    }

    #[test]
    fn a_set_that_the_sample_cannot_fill_is_refused() {
        assert!(matches!(Sets::new(&[1, 2], 3), Err(Error::TooFew { .. })));
        assert!(matches!(Sets::new(&[1, 2], 0), Err(Error::OutOfRange { .. })));
    }
}
