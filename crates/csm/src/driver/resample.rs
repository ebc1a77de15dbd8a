//! Resampling: identically distributed sets of units that are not identically distributed.
//!
//! Production requests differ: some are heavier, and some follow others. But sets of requests drawn from one sample,
//! each set without replacement and independently of the others, are identically distributed by construction. So judge
//! the units of a set one at a time, add up their successes, and look at the evidence only when a whole set is complete
//! (Paul Khuong's advice).
//!
//! **Why that is safe.** The rate in question is the sample's own: the share of its units that succeed. Within a set,
//! drawing without replacement spreads the number of successes *less* than independent trials of that rate do: for any
//! convex function, the mean over a sample without replacement is at most that over one with replacement (W. Hoeffding
//! 1963, theorem 4). The likelihood ratio of an alternative is convex in the number of a set's successes, so the factor
//! by which a set multiplies the evidence is at most one on average, as required.

use super::{Driver, Progress, Status};
use crate::Error;
use crate::random::Random;

impl Driver {
    /// Draws sets of `size` of these units, without replacement and in random order, and judges their units, until the
    /// claim about the rate of success is decided or the limit is reached, at the end of a set. Reports progress after
    /// each set.
    ///
    /// The units need not be identically distributed; the claim is about their own rate, the share that succeeds.
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

    /// A fresh set: different units of the sample, in random order.
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
        // Six standard deviations: 6 sqrt(10000 * 0.4 * 0.6).
        assert!(seen.iter().all(|&n| n.abs_diff(4000) < 294), "{seen:?}");
    }

    #[test]
    fn a_set_that_the_sample_cannot_fill_is_refused() {
        assert!(matches!(Sets::new(&[1, 2], 3), Err(Error::TooFew { .. })));
        assert!(matches!(Sets::new(&[1, 2], 0), Err(Error::OutOfRange { .. })));
    }
}
