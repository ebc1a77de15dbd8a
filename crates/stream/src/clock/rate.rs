//! Rates: positive fractions in exact arithmetic.

use std::fmt;

/// A positive fraction in lowest terms.
///
/// Operations return `None` if a numerator or a denominator does not fit into 128 bits. No result is rounded.
///
/// ```
/// use millstream_stream::clock::Rate;
///
/// let half = Rate::new(2, 4).unwrap();
/// assert_eq!(half.times(Rate::new(3, 1).unwrap()).unwrap().to_string(), "3 of 2");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    values: u128,
    of: u128,
}

impl Rate {
    /// The rate 1: one value for each value.
    pub const ONE: Self = Self { values: 1, of: 1 };

    /// Returns `values / of`; `None` if either is 0.
    #[must_use]
    pub fn new(values: u128, of: u128) -> Option<Self> {
        if values == 0 || of == 0 {
            return None;
        }
        let divisor = gcd(values, of);
        Some(Self { values: values / divisor, of: of / divisor })
    }

    /// Returns the numerator.
    #[must_use]
    pub fn values(self) -> u128 {
        self.values
    }

    /// Returns the denominator.
    #[must_use]
    pub fn of(self) -> u128 {
        self.of
    }

    /// Returns the product, or `None` if it does not fit.
    #[must_use]
    pub fn times(self, other: Self) -> Option<Self> {
        // Common factors are cancelled before the multiplication, so the products do not overflow if the result fits.
        let (a, b) = (gcd(self.values, other.of), gcd(other.values, self.of));
        let values = (self.values / a).checked_mul(other.values / b)?;
        let of = (self.of / b).checked_mul(other.of / a)?;
        Some(Self { values, of })
    }

    /// Returns the quotient, or `None` if it does not fit.
    #[must_use]
    pub fn over(self, other: Self) -> Option<Self> {
        self.times(Self { values: other.of, of: other.values })
    }

    /// Returns the difference; `None` if it is not positive or does not fit.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        let divisor = gcd(self.of, other.of);
        let left = self.values.checked_mul(other.of / divisor)?;
        let right = other.values.checked_mul(self.of / divisor)?;
        Self::new(left.checked_sub(right)?, self.of.checked_mul(other.of / divisor)?)
    }

    /// Returns whether this rate is less than the other.
    #[must_use]
    pub fn is_below(self, other: Self) -> bool {
        // Compares the two fractions as continued fractions, so that no intermediate number overflows.
        let (mut a, mut b, mut c, mut d) = (self.values, self.of, other.values, other.of);
        let mut turned = false;
        loop {
            let (left, right) = (a / b, c / d);
            if left != right {
                return (left < right) != turned;
            }
            let (rest_left, rest_right) = (a % b, c % d);
            if rest_left == 0 || rest_right == 0 {
                return rest_left != rest_right && ((rest_left == 0) != turned);
            }
            // The fractions `rest_left / b` and `rest_right / d` remain. They compare in the reverse order of their
            // reciprocals, which are compared next.
            (a, b, c, d) = (b, rest_left, d, rest_right);
            turned = !turned;
        }
    }
}

/// Writes the rate, such as `1 of 2`: one value for every two values.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.values, self.of)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn rates_are_exact_and_never_wrap() {
        let rate = |values, of| Rate::new(values, of).unwrap();
        assert_eq!(rate(6, 4), rate(3, 2));
        assert_eq!(rate(2, 3).times(rate(3, 4)), Some(rate(1, 2)));
        assert_eq!(rate(2, 3).over(rate(4, 3)), Some(rate(1, 2)));
        assert_eq!(rate(1, 1).minus(rate(1, 3)), Some(rate(2, 3)));
        assert_eq!(rate(1, 3).minus(rate(1, 3)), None);
        assert_eq!(rate(u128::MAX, 1).times(rate(2, 1)), None);
        assert_eq!(rate(u128::MAX, 2).times(rate(2, 1)), Some(rate(u128::MAX, 1)));
        assert_eq!(Rate::new(0, 1), None);
    }

    #[test]
    fn comparison_agrees_with_cross_multiplication() {
        for (a, b, c, d) in (0..8_u128.pow(4)).map(|n| (n % 8 + 1, n / 8 % 8 + 1, n / 64 % 8 + 1, n / 512 + 1)) {
            let (left, right) = (Rate::new(a, b).unwrap(), Rate::new(c, d).unwrap());
            assert_eq!(left.is_below(right), a * d < c * b, "{left} {right}");
        }
        assert!(Rate::new(u128::MAX - 1, u128::MAX).unwrap().is_below(Rate::ONE));
    }
}
