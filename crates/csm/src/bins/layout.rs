//! The number of bins, and their capacity.

use crate::Error;

/// The maximum number of bins.
const MAX_BINS: u32 = 1 << 24;

/// The maximum capacity; this times [`MAX_BINS`] is exact in binary64.
const MAX_CAPACITY: u32 = 1 << 28;

/// `bins` bins that hold `capacity` balls each.
///
/// ```
/// use millstream_csm::bins::Bins;
///
/// let bins = Bins::new(1000, 30_000)?;
/// assert_eq!(bins.places(), 30_000_000);
/// assert_eq!(bins.fill(29_400_000), 0.98);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    bins: u32,
    capacity: u32,
}

impl Bins {
    /// A layout of 1 to 2²⁴ bins of 1 to 2²⁸ balls.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one of the numbers is 0 or larger.
    pub fn new(bins: u32, capacity: u32) -> Result<Self, Error> {
        if !(1..=MAX_BINS).contains(&bins) {
            let expected = "a number from 1 to 16777216";
            return Err(Error::OutOfRange { what: "the number of bins", expected, found: f64::from(bins) });
        }
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            let expected = "a number from 1 to 268435456";
            return Err(Error::OutOfRange { what: "the capacity of a bin", expected, found: f64::from(capacity) });
        }
        Ok(Self { bins, capacity })
    }

    /// The number of bins.
    #[must_use]
    pub fn bins(self) -> u32 {
        self.bins
    }

    /// The number of balls that a bin holds.
    #[must_use]
    pub fn capacity(self) -> u32 {
        self.capacity
    }

    /// The number of balls that all bins hold together.
    #[must_use]
    pub fn places(self) -> u64 {
        u64::from(self.bins) * u64::from(self.capacity)
    }

    /// The share of the places that `balls` balls take, rounded to nearest: 98 balls in 100 places give the same number
    /// as the literal `0.98`.
    #[must_use]
    pub fn fill(self, balls: u64) -> f64 {
        balls as f64 / self.places() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_the_literal_of_its_share() {
        let bins = Bins::new(10, 10).unwrap();
        assert_eq!([0, 70, 98, 100].map(|balls| bins.fill(balls)), [0.0, 0.7, 0.98, 1.0]);
    }

    #[test]
    fn invalid_layouts_are_refused() {
        for (bins, capacity) in [(0, 1), (1, 0), (MAX_BINS + 1, 1), (1, MAX_CAPACITY + 1), (u32::MAX, u32::MAX)] {
            assert!(matches!(Bins::new(bins, capacity), Err(Error::OutOfRange { .. })), "{bins} x {capacity}");
        }
        assert_eq!(Bins::new(MAX_BINS, MAX_CAPACITY).unwrap().places(), 1 << 52);
    }
}
