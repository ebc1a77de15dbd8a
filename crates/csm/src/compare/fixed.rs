//! Two samples whose sizes were fixed beforehand: the rank-sum test.

use super::unpaired::sorted;
use super::{Comparison, check_positive};
use crate::choose::log_choose;
use crate::driver::log_part;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::ln::ln_1p;
use crate::{Error, Interval};

/// The maximum number of additions for the exact distribution. If the exact distribution takes more, Chernoff's bound
/// is used.
const MAX_ADDITIONS: f64 = 3e8;

/// A factor that covers the rounding errors of thousands of additions of positive numbers.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Compares two samples whose sizes were **fixed before the first value**, by ranks: computes the Hodges-Lehmann
/// interval for the ratio `second / first` from the Wilcoxon-Mann-Whitney test.
///
/// The function finds far smaller differences than [`samples`](super::samples), under two conditions. The samples are
/// compared only once, and the second sample is distributed like a multiple of the first. The interval is for this
/// factor. If both samples have the same distribution, one of them is called smaller with a probability of at most
/// `error`, whatever the distribution. Ties count against a difference.
///
/// The number of pairs in which the second value is the smaller one has a known distribution. For samples of up to
/// about 150 values, it is computed exactly. For larger samples, Chernoff's bound on its tail is used, which costs as
/// much evidence as a ten times smaller error would.
///
/// # Errors
/// Those of [`samples`](super::samples).
///
/// # Cost
/// Sorting, and a few thousand steps per value. The exact distribution takes up to `3e8` additions.
///
/// ```
/// use millstream_csm::compare::{Smaller, fixed_samples};
///
/// let old: Vec<f64> = (0..60).map(|i| 20.0 + f64::from(i * 7 % 10)).collect();
/// let new: Vec<f64> = (0..60).map(|i| 17.0 + f64::from(i * 3 % 10)).collect();
/// let comparison = fixed_samples(&old, &new, 1e-3)?;
/// assert_eq!(comparison.smaller, Some(Smaller::Second));
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn fixed_samples(first: &[f64], second: &[f64], error: f64) -> Result<Comparison, Error> {
    let log_eps = log_part(error, 2.0)?;
    for (what, sample) in [("the first sample", first), ("the second sample", second)] {
        sample.iter().try_for_each(|&value| check_positive(what, value))?;
        if sample.is_empty() {
            return Err(Error::TooFew { what, least: 1, found: 0 });
        }
    }
    let ratios = Ratios { first: sorted(first), second: sorted(second) };
    let all = first.len() as u64 * second.len() as u64;
    let interval = match most_inversions(first.len() as u64, second.len() as u64, log_eps)? {
        // The error of a quotient is half a unit in the last place, which a step to the next float covers.
        Some(few) if few < all => {
            Interval { low: ratios.smallest(few + 1).next_down().max(0.0), high: ratios.smallest(all - few).next_up() }
        }
        _ => Interval { low: 0.0, high: f64::INFINITY },
    };
    let middle = ratios.smallest(all.div_ceil(2));
    Ok(Comparison::new(first.len().min(second.len()) as u64, Some(middle), interval, error))
}

/// All quotients of a value of the second sample and a value of the first.
struct Ratios {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Ratios {
    /// The `rank`-th smallest quotient; ranks count from one.
    fn smallest(&self, rank: u64) -> f64 {
        // Positive floats have the same order as their bits, so the bits are searched by bisection.
        let (mut low, mut high) = (0, f64::INFINITY.to_bits());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(f64::from_bits(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        f64::from_bits(low)
    }

    /// The number of quotients that are at most `ratio`.
    fn up_to(&self, ratio: f64) -> u64 {
        let mut beyond = 0;
        let mut count = 0;
        for value in &self.second {
            while beyond < self.first.len() && value / self.first[beyond] > ratio {
                beyond += 1;
            }
            count += (self.first.len() - beyond) as u64;
        }
        count
    }
}

/// The largest `u` for which at most `u` inversions between samples of these sizes have a probability of at most
/// `e^log_eps`; `None` if even zero inversions are more probable.
fn most_inversions(n: u64, m: u64, log_eps: f64) -> Result<Option<u64>, Error> {
    let (n, m) = (n.min(m), n.max(m));
    let all = n as f64 * m as f64;
    if all * all / 2.0 <= MAX_ADDITIONS {
        return Ok(exactly(n as usize, m as usize, log_eps));
    }
    by_chernoff(n, m, log_eps)
}

/// Uses the exact distribution. The largest of all values is in each sample with a probability proportional to the
/// sample's size. If it is in the second sample, it is above all values of the first.
fn exactly(n: usize, m: usize, log_eps: f64) -> Option<u64> {
    let most = n * m / 2 + 1;
    // laws[j]: the probabilities of 0, 1, … inversions between samples of i and j values.
    let one = || {
        let mut law = vec![0.0; most];
        law[0] = 1.0;
        law
    };
    let mut laws: Vec<Vec<f64>> = (0..=m).map(|_| one()).collect();
    for i in 1..=n {
        for j in 1..=m {
            let share = j as f64 / (i + j) as f64;
            let (before, rest) = laws.split_at_mut(j);
            let (left, law) = (&before[j - 1], &mut rest[0]);
            for (u, p) in law.iter_mut().enumerate() {
                let longer = if u >= i { left[u - i] } else { 0.0 };
                *p = *p * (1.0 - share) + longer * share;
            }
        }
    }
    let limit = exp(log_eps.into()).lower();
    let mut sum = 0.0;
    let few = laws[m].iter().take_while(|&&p| {
        sum += p;
        sum * ROUNDING <= limit
    });
    (few.count() as u64).checked_sub(1)
}

/// Uses Chernoff's bound: `P(U <= u) <= e^(t u) E e^(-t U)` for every `t > 0`, where
///
/// ```text
/// E e^(-t U) = product over i = 1 … n of (1 - e^(-t (m+i))) / (1 - e^(-t i)), over C(n + m, n)
/// ```
fn by_chernoff(n: u64, m: u64, log_eps: f64) -> Result<Option<u64>, Error> {
    let choose = Ball::from(log_choose(n + m, n)?.low);
    let most = |t: f64| {
        let term = |i: f64| ln_1p(-exp(Ball::from(-t * i)));
        let product = (1..=n).fold(-choose, |sum, i| sum + (term((m + i) as f64) - term(i as f64)));
        // The subtraction of `1e-12` per term covers the rounding of `t i`.
        (log_eps - product.upper() - 1e-12 * (n + m) as f64) / t
    };
    // The best `t` is near `sqrt(-2 ln eps)` divided by the standard deviation, and `most` has only one maximum.
    let deviation = (n as f64 * m as f64 * (n + m + 1) as f64 / 12.0).sqrt();
    let near = (-2.0 * log_eps).sqrt() / deviation;
    let (mut low, mut high) = (near / 8.0, near * 64.0);
    for _ in 0..MAX_STEPS {
        let (left, right) = (low * (high / low).sqrt().sqrt(), low * (high / low).sqrt().sqrt().powi(3));
        if most(left) < most(right) { low = left } else { high = right }
    }
    let few = most((low * high).sqrt()).floor();
    Ok((few >= 0.0).then_some(few as u64))
}

/// The number of search steps for the best `t`. Each step shortens the interval that contains `ln t` by a quarter.
const MAX_STEPS: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability of each number of inversions, by enumeration of all orders.
    fn by_all_orders(n: u32, m: u32) -> Vec<f64> {
        let mut counts = vec![0.0; (n * m + 1) as usize];
        let orders: Vec<u32> = (0u32..1 << (n + m)).filter(|order| order.count_ones() == m).collect();
        for order in &orders {
            let (mut firsts, mut inversions) = (0, 0);
            for place in 0..n + m {
                if order >> place & 1 == 1 {
                    inversions += firsts;
                } else {
                    firsts += 1;
                }
            }
            counts[inversions as usize] += 1.0 / orders.len() as f64;
        }
        counts
    }

    #[test]
    fn the_critical_number_of_inversions_is_that_of_all_orders() {
        for (n, m) in [(3, 3), (4, 7), (6, 6), (2, 9)] {
            let law = by_all_orders(n, m);
            for eps in [0.31, 0.11, 0.024, 0.001] {
                let mut sum = 0.0;
                let expected = law.iter().take_while(|&&p| {
                    sum += p;
                    sum <= eps
                });
                let expected = (expected.count() as u64).checked_sub(1);
                assert_eq!(exactly(n as usize, m as usize, f64::ln(eps)), expected, "{n}, {m}, {eps}");
                let bound = by_chernoff(n.into(), m.into(), f64::ln(eps)).unwrap();
                assert!(bound <= expected, "{n}, {m}, {eps}: {bound:?} and {expected:?}");
            }
        }
    }

    #[test]
    fn the_bound_costs_about_a_factor_of_ten() {
        let bound = by_chernoff(80, 90, 1e-6f64.ln()).unwrap();
        assert!(exactly(80, 90, 1e-6f64.ln()) > bound && bound > exactly(80, 90, 3e-8f64.ln()), "{bound:?}");
    }

    #[test]
    fn quotients_are_found_by_their_rank() {
        let ratios = Ratios { first: vec![1.0, 2.0, 4.0], second: vec![1.0, 3.0] };
        let found: Vec<f64> = (1..=6).map(|rank| ratios.smallest(rank)).collect();
        assert_eq!(found, [0.25, 0.5, 0.75, 1.0, 1.5, 3.0]);
    }
}
