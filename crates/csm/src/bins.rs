//! Balls and bins: when the first bin is full, how full are all bins together?
//!
//! Balls fall uniformly and independently into `m` bins that hold `c` balls each. The *fill* is the number of balls
//! thrown until the first bin is full, the last ball included, divided by the total capacity `m c`. It is the share of
//! its memory that a hash table of large fixed bins can use before it must grow. The question comes from Paul Khuong.
//!
//! The trials are independent and identically distributed, so a [`Driver`](crate::Driver) can decide claims such as
//! "the fill reaches 97.5 % in at least 98 % of all cases". The example `bins` does so.

use crate::Error;
use crate::random::Random;

/// The maximum number of bins.
const MAX_BINS: u32 = 1 << 24;

/// The maximum capacity. Its product with [`MAX_BINS`] is exact in binary64.
const MAX_CAPACITY: u32 = 1 << 28;

/// Bins of a fixed capacity, into which balls are thrown until the first one is full.
///
/// ```
/// use millstream_csm::{bins::Bins, random::Random};
///
/// let mut bins = Bins::new(10, 1000)?;
/// let fill = bins.fill(&mut Random::seeded(1));
/// assert!(fill >= 0.1 && fill <= 1.0);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bins {
    capacity: u32,
    /// The remaining capacity of each bin.
    room: Box<[u32]>,
}

impl Bins {
    /// 1 to 2²⁴ bins of 1 to 2²⁸ balls each.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one of the numbers is 0 or above its maximum.
    pub fn new(bins: u32, capacity: u32) -> Result<Self, Error> {
        if !(1..=MAX_BINS).contains(&bins) {
            let expected = "a number from 1 to 16777216";
            return Err(Error::OutOfRange { what: "the number of bins", expected, found: f64::from(bins) });
        }
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            let expected = "a number from 1 to 268435456";
            return Err(Error::OutOfRange { what: "the capacity of a bin", expected, found: f64::from(capacity) });
        }
        Ok(Self { capacity, room: vec![0; bins as usize].into() })
    }

    /// Makes one trial. Returns the fill, rounded to the nearest float.
    ///
    /// Cost: about two nanoseconds per ball while the counts (four bytes per bin) fit in the L1 cache.
    pub fn fill(&mut self, random: &mut Random) -> f64 {
        let places = self.room.len() as u64 * u64::from(self.capacity);
        self.balls(random) as f64 / places as f64
    }

    /// The number of balls until the first bin is full, the last ball included.
    fn balls(&mut self, random: &mut Random) -> u64 {
        self.room.fill(self.capacity);
        let bins = self.room.len() as u64;
        let mut balls = 0;
        loop {
            balls += 1;
            let room = &mut self.room[random.below(bins) as usize];
            *room -= 1;
            if *room == 0 {
                return balls;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_layouts_are_refused() {
        for (bins, capacity) in [(0, 1), (1, 0), (MAX_BINS + 1, 1), (1, MAX_CAPACITY + 1), (u32::MAX, u32::MAX)] {
            assert!(matches!(Bins::new(bins, capacity), Err(Error::OutOfRange { .. })), "{bins} x {capacity}");
        }
        assert_eq!(Bins::new(1, MAX_CAPACITY).unwrap().room.len(), 1);
    }

    #[test]
    fn one_bin_is_full_after_its_capacity() {
        for capacity in [1, 2, 7, 100] {
            let mut bins = Bins::new(1, capacity).unwrap();
            assert_eq!(bins.balls(&mut Random::seeded(1)), u64::from(capacity));
        }
    }

    #[test]
    fn bins_of_one_ball_are_full_after_the_first() {
        let mut bins = Bins::new(1000, 1).unwrap();
        assert_eq!(bins.balls(&mut Random::seeded(1)), 1);
    }

    /// With bins of capacity two this is the birthday problem: P(balls > k) = (m)ₖ / mᵏ.
    #[test]
    fn bins_of_two_balls_meet_the_birthday_problem() {
        let days = 365.0;
        let trials = 100_000;
        let mut bins = Bins::new(365, 2).unwrap();
        let mut random = Random::seeded(365);
        let mut longer_than_22 = 0;
        for _ in 0..trials {
            longer_than_22 += u32::from(bins.balls(&mut random) > 22);
        }
        let exact: f64 = (0..22).map(|k| (days - f64::from(k)) / days).product();
        let share = f64::from(longer_than_22) / f64::from(trials);
        assert!(
            (share - exact).abs() < 5.0 * (exact * (1.0 - exact) / f64::from(trials)).sqrt(),
            "{share} for {exact}"
        );
    }

    /// According to the reference, the fill has a mean of 0.98140 and a standard deviation of 0.0020.
    #[test]
    fn a_thousand_bins_of_thirty_thousand_match_the_reference() {
        let mut bins = Bins::new(1000, 30_000).unwrap();
        let mut random = Random::seeded(1);
        let mean = (0..16).map(|_| bins.fill(&mut random)).sum::<f64>() / 16.0;
        // The tolerance is five standard deviations of the mean of 16 trials.
        assert!((mean - 0.98140).abs() < 0.0025, "mean {mean}");
    }
}
