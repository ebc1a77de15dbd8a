//! The permutation test: would a difference this large between two samples arise by chance?
//!
//! If both samples come from the same distribution, then any division of all values into samples of the same sizes is
//! as likely as the observed division. So divide the values at random many times, and count how often the statistic is
//! at least as extreme as the observed statistic. That rate is the p-value. A [`Driver`](crate::Driver) decides whether
//! the p-value is below a threshold, and draws only as many divisions as the answer needs. The statistic may be any
//! pure function of two sets of values. (R. A. Fisher invented the test; Paul Khuong combined it with confidence
//! sequences.)
//!
//! A division whose statistic *equals* the observed statistic counts as extreme. There are many such divisions if the
//! values are few or rounded. So a statistic must not depend on the order of the values, not even in its last bit: in
//! floats, `0.1 + 0.2 + 0.3` is more than `0.3 + 0.2 + 0.1`, and a p-value from such sums would be too small. The
//! statistics of this module sum exactly, and round each sum once.
//!
//! With a claim of threshold `alpha` and error `eps`, a difference that is due to chance is reported as real with a
//! probability of at most `alpha + eps`.
//!
//! ```
//! use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference};
//! use millstream_csm::{Claim, Driver, Progress, Setup, Verdict, random::Random};
//!
//! let before: Vec<f64> = (0..50).map(|i| 10.0 + f64::from(i % 7)).collect();
//! let after: Vec<f64> = (0..40).map(|i| 12.0 + f64::from(i % 7)).collect();
//! let mut test = Permutation::new(&before, &after, mean_difference, Tail::Less, Null::default())?;
//! let mut random = Random::seeded(1);
//! let mut driver = Driver::new(&Setup::new(Claim::AtMost(0.01), 1e-6))?;
//! let status = driver.run(|| test.draw(&mut random), |_| ());
//! assert_eq!(status.progress, Progress::Decided(Verdict::Holds)); // p < 0.01: the difference is real
//! # Ok::<(), millstream_csm::Error>(())
//! ```

use crate::Error;
use crate::number::sum::sum;
use crate::random::Random;

/// The direction in which a statistic is extreme, compared with the observed statistic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tail {
    /// A statistic at least as large as the observed one is extreme.
    Greater,
    /// A statistic at most as large as the observed one is extreme.
    Less,
    /// A statistic whose absolute value is at least as large is extreme. This suits statistics that are centred at zero
    /// under the null hypothesis. (scipy's two-sided p-value is twice the smaller p-value of the other two tails. The
    /// two definitions agree if the statistic is as often above zero as below.)
    #[default]
    Both,
}

/// The null hypothesis: the second sample is distributed like `shift + scale * x`, where `x` is distributed like the
/// first sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Null {
    /// The summand.
    pub shift: f64,
    /// The factor; not zero.
    pub scale: f64,
}

impl Default for Null {
    /// The hypothesis that both samples have the same distribution.
    fn default() -> Self {
        Null { shift: 0.0, scale: 1.0 }
    }
}

impl Null {
    /// A value of the second sample, translated to the first.
    fn back(self, x: f64) -> f64 {
        if self == Null::default() { x } else { (x - self.shift) / self.scale }
    }

    /// A value of the first sample, translated to the second.
    fn forth(self, x: f64) -> f64 {
        if self == Null::default() { x } else { x * self.scale + self.shift }
    }
}

/// Two samples, a statistic and a null hypothesis.
#[derive(Debug, Clone)]
pub struct Permutation<F> {
    /// All values, those of the second sample translated to the first.
    pool: Vec<f64>,
    first: usize,
    null: Null,
    statistic: F,
    tail: Tail,
    observed: f64,
    /// The second sample of a division, translated back.
    second: Vec<f64>,
}

impl<F: Fn(&[f64], &[f64]) -> f64> Permutation<F> {
    /// Creates the test of these samples.
    ///
    /// # Errors
    /// An empty sample; a value, shift or scale that is not finite; a scale of zero; a statistic that is not a
    /// number.
    pub fn new(first: &[f64], second: &[f64], statistic: F, tail: Tail, null: Null) -> Result<Self, Error> {
        for (what, sample) in [("the first sample", first), ("the second sample", second)] {
            if sample.is_empty() {
                return Err(Error::TooFew { what, least: 1, found: 0 });
            }
        }
        let values = first.iter().chain(second).copied();
        if let Some(found) = values.chain([null.shift, null.scale]).find(|x| !x.is_finite()) {
            return Err(Error::NotFinite { what: "each value, and the shift and the scale,", found });
        }
        if null.scale == 0.0 {
            return Err(Error::OutOfRange { what: "the scale", expected: "anything but zero", found: 0.0 });
        }
        let pool = first.iter().copied().chain(second.iter().map(|&x| null.back(x))).collect();
        // The observed statistic is computed in the same way as that of every draw, so that the same division results
        // in the same statistic, to the last bit.
        let second: Vec<f64> = second.iter().map(|&x| null.forth(null.back(x))).collect();
        let observed = statistic(first, &second);
        if observed.is_nan() {
            return Err(Error::NotFinite { what: "the statistic of the two samples", found: observed });
        }
        Ok(Permutation { pool, first: first.len(), null, statistic, tail, observed, second })
    }

    /// The statistic of the observed samples.
    #[must_use]
    pub fn observed(&self) -> f64 {
        self.observed
    }

    /// Divides the values at random, and returns whether the statistic is at least as extreme as the observed one. A
    /// statistic that is not a number counts as extreme, which is evidence against a real difference. Cost: one shuffle
    /// and one evaluation of the statistic.
    pub fn draw(&mut self, random: &mut Random) -> bool {
        random.shuffle_front(&mut self.pool, self.first);
        let (first, rest) = self.pool.split_at(self.first);
        for (value, &x) in self.second.iter_mut().zip(rest) {
            *value = self.null.forth(x);
        }
        let drawn = (self.statistic)(first, &self.second);
        let extreme = match self.tail {
            Tail::Greater => drawn >= self.observed,
            Tail::Less => drawn <= self.observed,
            Tail::Both => drawn.abs() >= self.observed.abs(),
        };
        extreme || drawn.is_nan()
    }
}

/// The first sample's mean minus the second's. [`Tail::Greater`] asks whether the first sample has the larger values,
/// like scipy's `alternative="greater"`.
#[must_use]
pub fn mean_difference(first: &[f64], second: &[f64]) -> f64 {
    let mean = |sample: &[f64]| sum(sample.iter().copied()) / sample.len() as f64;
    mean(first) - mean(second)
}

/// The first sample's median minus the second's. For an even number of values, the median is the upper of the middle
/// two.
#[must_use]
pub fn median_difference(first: &[f64], second: &[f64]) -> f64 {
    let median = |sample: &[f64]| {
        let (mut sample, middle) = (sample.to_vec(), sample.len() / 2);
        *sample.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    median(first) - median(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Driver, Progress, Setup, Verdict};

    /// The exact p-value, computed from all divisions.
    fn exact(first: &[f64], second: &[f64], tail: Tail) -> f64 {
        let all: Vec<f64> = first.iter().chain(second).copied().collect();
        let observed = mean_difference(first, second);
        let (mut extreme, mut total) = (0u32, 0u32);
        for mask in 0u32..1 << all.len() {
            if mask.count_ones() as usize != first.len() {
                continue;
            }
            let part = |chosen: bool| -> Vec<f64> {
                all.iter().enumerate().filter(|(i, _)| (mask >> i & 1 == 1) == chosen).map(|(_, &x)| x).collect()
            };
            let drawn = mean_difference(&part(true), &part(false));
            total += 1;
            extreme += u32::from(match tail {
                Tail::Greater => drawn >= observed,
                Tail::Less => drawn <= observed,
                Tail::Both => drawn.abs() >= observed.abs(),
            });
        }
        f64::from(extreme) / f64::from(total)
    }

    #[test]
    fn the_rate_of_extreme_draws_is_the_p_value_of_all_divisions() {
        // Sums of small integers are exact, so equal statistics are equal floats.
        let (first, second) = ([1.0, 4.0, 2.0, 8.0], [16.0, 3.0, 9.0, 5.0]);
        for tail in [Tail::Greater, Tail::Less, Tail::Both] {
            let expected = exact(&first, &second, tail);
            let mut test = Permutation::new(&first, &second, mean_difference, tail, Null::default()).unwrap();
            let mut random = Random::seeded(5);
            let draws = 40_000;
            let extreme = (0..draws).filter(|_| test.draw(&mut random)).count() as u64;
            let interval = crate::interval::fixed(draws, extreme, 1e-9).unwrap();
            assert!(interval.contains(expected), "{tail:?}: {expected} is not in {interval:?}");
        }
    }

    #[test]
    fn a_division_into_the_same_values_is_extreme_whatever_their_order() {
        // One of the twenty divisions is the observed division.
        let (first, second) = ([0.3, 0.2, 0.1], [0.5, 0.7, 0.9]);
        for null in [Null::default(), Null { shift: 0.1, scale: 1.0 }] {
            let mut random = Random::seeded(1);
            let mut test = Permutation::new(&first, &second, mean_difference, Tail::Less, null).unwrap();
            let extreme = (0..20_000).filter(|_| test.draw(&mut random)).count();
            assert!((900..1100).contains(&extreme), "{null:?}: {extreme} of 20000");
        }
    }

    #[test]
    fn a_statistic_that_is_no_number_counts_against_a_difference() {
        let (first, second) = ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]);
        let only_as_observed = |a: &[f64], b: &[f64]| if a[0] + a[1] + a[2] == 3.0 { b[0] } else { f64::NAN };
        let mut random = Random::seeded(1);
        let mut test = Permutation::new(&first, &second, only_as_observed, Tail::Greater, Null::default()).unwrap();
        assert!((0..1000).all(|_| test.draw(&mut random)));
    }

    #[test]
    fn a_null_hypothesis_that_rounds_leaves_the_division_observed_extreme() {
        // Adding and subtracting a large shift changes each value a little. Apart from the observed division, all
        // statistics are far from zero.
        for tenth in 1..20 {
            let part = 0.1 * f64::from(tenth);
            let (first, second) = ([0.1, 0.2, 0.3], [1.5 + 0.1 * part, 1.7 + 0.2 * part, 1.9 + 0.3 * part]);
            let null = Null { shift: 1e5 + part, scale: 1.0 };
            let mut random = Random::seeded(1);
            let mut test = Permutation::new(&first, &second, mean_difference, Tail::Greater, null).unwrap();
            let extreme = (0..2000).filter(|_| test.draw(&mut random)).count();
            assert!((60..150).contains(&extreme), "{null:?}: {extreme} of 2000");
        }
    }

    #[test]
    fn a_true_shift_and_scale_leave_no_difference() {
        let mut random = Random::seeded(6);
        let first: Vec<f64> = (0..100).map(|_| random.uniform()).collect();
        let second: Vec<f64> = (0..80).map(|_| 3.0 - 2.0 * random.uniform()).collect();
        let setup = Setup::new(Claim::AtMost(0.01), 1e-4).limit(20_000);
        let decide = |null, random: &mut Random| {
            let mut test = Permutation::new(&first, &second, mean_difference, Tail::Both, null).unwrap();
            Driver::new(&setup).unwrap().run(|| test.draw(random), |_| ()).progress
        };
        assert_eq!(decide(Null::default(), &mut random), Progress::Decided(Verdict::Holds));
        // Under this null hypothesis the statistic is around -1.5, and the second sample satisfies it.
        let centred = |first: &[f64], second: &[f64]| mean_difference(first, second) + 1.5;
        let null = Null { shift: 3.0, scale: -2.0 };
        let mut test = Permutation::new(&first, &second, centred, Tail::Both, null).unwrap();
        let status = Driver::new(&setup).unwrap().run(|| test.draw(&mut random), |_| ());
        assert_eq!(status.progress, Progress::Decided(Verdict::Fails), "{status:?}");
    }

    #[test]
    fn senseless_samples_are_refused() {
        let new = |first: &[f64], second: &[f64], null| {
            Permutation::new(first, second, mean_difference, Tail::Both, null).map(drop).unwrap_err()
        };
        assert!(matches!(new(&[], &[1.0], Null::default()), Error::TooFew { .. }));
        assert!(matches!(new(&[1.0], &[f64::NAN], Null::default()), Error::NotFinite { .. }));
        assert!(matches!(new(&[1.0], &[1.0], Null { shift: 0.0, scale: 0.0 }), Error::OutOfRange { .. }));
    }
}
