//! Poisson variates with a fixed mean in constant time, by Walker's alias method.
//!
//! The weights are built outwards from the mode by `w(k+1) = w(k) mean / (k+1)`, with the four operations alone, so the
//! table is the same on every machine. It ends where a weight is below 2⁻⁶⁴ of the mode's; the probability beyond is
//! less than the rounding of one binary64 number.

use crate::random::Random;

/// Weights below this share of the mode's are cut off.
const MIN_WEIGHT: f64 = 1.0 / (1_u128 << 64) as f64;

/// The weights of a Poisson distribution around its mode.
pub(super) struct Weights {
    /// The number of the first weight.
    first: u64,
    weights: Vec<f64>,
}

impl Weights {
    pub(super) fn new(mean: f64) -> Self {
        let mode = mean.floor();
        let mut weights = Vec::new();
        let (mut k, mut weight) = (mode, 1.0);
        while weight >= MIN_WEIGHT && k > 0.0 {
            weight *= k / mean;
            k -= 1.0;
            weights.push(weight);
        }
        let first = k as u64;
        weights.reverse();
        (k, weight) = (mode, 1.0);
        while weight >= MIN_WEIGHT {
            weights.push(weight);
            k += 1.0;
            weight *= mean / k;
        }
        Self { first, weights }
    }

    /// The probability of `k` or more.
    pub(super) fn at_least(&self, k: u64) -> f64 {
        let skipped = k.saturating_sub(self.first).min(self.weights.len() as u64) as usize;
        self.weights[skipped..].iter().sum::<f64>() / self.weights.iter().sum::<f64>()
    }
}

/// One column of the alias table.
#[derive(Debug, Clone, Copy)]
struct Column {
    /// The column's own number is drawn when the fraction is below this, in units of 2⁻⁶⁴.
    keep_below: u64,
    /// The number that is drawn otherwise.
    alias: u64,
}

/// A sampler of one Poisson distribution.
#[derive(Debug, Clone)]
pub(super) struct PoissonTable {
    first: u64,
    columns: Box<[Column]>,
}

impl PoissonTable {
    pub(super) fn new(mean: f64) -> Self {
        let Weights { first, weights } = Weights::new(mean);
        let total: f64 = weights.iter().sum();
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight / total * weights.len() as f64).collect();
        let mut columns: Box<[Column]> =
            (first..).take(heights.len()).map(|number| Column { keep_below: u64::MAX, alias: number }).collect();
        let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..heights.len()).partition(|&index| heights[index] < 1.0);
        // A high column fills up each low one; its rest goes back to the list to which it then belongs. Columns left
        // over at the end are full but for rounding, and keep their own number.
        while let (Some(&giver), Some(taker)) = (high.last(), low.pop()) {
            columns[taker] =
                Column { keep_below: (heights[taker] * 2f64.powi(64)) as u64, alias: first + giver as u64 };
            heights[giver] -= 1.0 - heights[taker];
            if heights[giver] < 1.0 {
                high.pop();
                low.push(giver);
            }
        }
        Self { first, columns }
    }

    /// One variate, for one word: the high half of its product with the number of columns chooses the column, the low
    /// half is the fraction within it.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let wide = u128::from(random.next_u64()) * self.columns.len() as u128;
        let (index, fraction) = ((wide >> 64) as usize, wide as u64);
        let column = self.columns[index];
        if fraction < column.keep_below { self.first + index as u64 } else { column.alias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability of each number, read off the table.
    fn shares(table: &PoissonTable) -> Vec<f64> {
        let width = 1.0 / table.columns.len() as f64;
        let mut shares = vec![0.0; table.columns.len()];
        for (index, column) in table.columns.iter().enumerate() {
            let kept = column.keep_below as f64 / 2f64.powi(64);
            shares[index] += kept * width;
            shares[(column.alias - table.first) as usize] += (1.0 - kept) * width;
        }
        shares
    }

    #[test]
    fn the_table_holds_the_distribution() {
        for mean in [0.005, 0.5, 1.0, 7.25, 60.0, 29_450.0] {
            let table = PoissonTable::new(mean);
            let shares = shares(&table);
            let mut log_factorial = 0.0;
            let mut total = 0.0;
            for k in 0..table.first + shares.len() as u64 {
                log_factorial += (k.max(1) as f64).ln();
                if k >= table.first {
                    let exact = (k as f64 * mean.ln() - mean - log_factorial).exp();
                    let share = shares[(k - table.first) as usize];
                    assert!((share - exact).abs() < 1e-11, "mean {mean}, k {k}: {share} for {exact}");
                    total += exact;
                }
            }
            assert!((total - 1.0).abs() < 1e-8, "mean {mean}: the table covers {total}");
        }
    }

    #[test]
    fn draws_have_the_tables_mean_and_variance() {
        let mean = 60.0;
        let table = PoissonTable::new(mean);
        let mut random = Random::seeded(60);
        let draws: Vec<f64> = (0..200_000).map(|_| table.draw(&mut random) as f64).collect();
        let count = draws.len() as f64;
        let average = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / count;
        assert!((average - mean).abs() < 5.0 * (mean / count).sqrt(), "mean {average}");
        assert!((variance / mean - 1.0).abs() < 0.02, "variance {variance}");
    }

    #[test]
    fn the_tail_is_summed_from_the_weights() {
        let weights = Weights::new(2.0);
        assert!((weights.at_least(0) - 1.0).abs() < 1e-15);
        assert!((weights.at_least(1) - (1.0 - (-2f64).exp())).abs() < 1e-15);
        assert!((weights.at_least(3) - (1.0 - 5.0 * (-2f64).exp())).abs() < 1e-15);
        assert_eq!(weights.at_least(1000), 0.0);
    }
}
