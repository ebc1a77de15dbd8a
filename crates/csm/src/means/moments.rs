//! The evidence about a mean: three sums.

use crate::number::exact::two_sum;

/// Half a unit in the last place of 1.
const U: f64 = f64::EPSILON / 2.0;

/// The evidence about numbers between 0 and 1 that were observed one at a time.
///
/// The fields are public so that they can be stored in a file. Set them only to numbers that were read from another
/// `Moments`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// The count of the observed numbers.
    pub trials: u64,
    /// The sum of the numbers, rounded to a float.
    pub sum: f64,
    /// The rounding error of `sum`: `sum + sum_rest` is the sum to twice the precision.
    pub sum_rest: f64,
    /// The sum of the squared differences between each number and its guess. The guess is the mean of 1/2 and all numbers
    /// before this one.
    pub squares: f64,
}

impl Moments {
    /// Adds a number between 0 and 1.
    #[inline]
    pub(super) fn add(&mut self, x: f64) {
        let guess = ((self.sum + 0.5) / (self.trials as f64 + 1.0)).clamp(0.0, 1.0);
        self.trials += 1;
        let (sum, error) = two_sum(self.sum, x);
        self.sum = sum;
        self.sum_rest += error;
        self.squares += (x - guess) * (x - guess);
    }

    /// The mean.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.trials > 0).then(|| (self.sum + self.sum_rest) / self.trials as f64)
    }

    /// The best case after `trials` further numbers equal to `x`, which is 0 or 1: nothing is added to the squares.
    pub(super) fn at_best(self, trials: u64, x: f64) -> Self {
        Moments { trials: self.trials + trials, sum: self.sum + x * trials as f64, ..self }
    }

    /// An upper bound on the sum of squares. The relative error of each term and of each partial sum is a few parts in
    /// `2^53`.
    pub(super) fn squares_up(&self) -> f64 {
        let n = self.trials as f64;
        (self.squares * (1.0 + 4.0 * n * U) + 16.0 * n * U).next_up()
    }

    /// A bound on the error of the sum minus `trials` times a mean. It covers an error of `4 U` from the scaling of
    /// each number, the loss of `sum_rest`, and a few roundings of the result.
    pub(super) fn sum_error(&self) -> f64 {
        self.trials as f64 * (16.0 * U)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_many_numbers_stay_within_their_stated_errors() {
        // Multiples of 2^-53 add up exactly as integers.
        let mut moments = Moments::default();
        let (mut sum, mut state) = (0u128, 12345u64);
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let part = state >> 11;
            sum += u128::from(part);
            moments.add(part as f64 / (1u64 << 53) as f64);
        }
        let whole = (sum >> 53) as f64;
        let fraction = (sum & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64;
        let off = (moments.sum - whole - fraction + moments.sum_rest).abs();
        assert!(off <= moments.sum_error(), "{off}");
        assert!(off < 1e-9);
    }
}
