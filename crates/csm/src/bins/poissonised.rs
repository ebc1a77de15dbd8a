//! The fill without throwing the balls.
//!
//! Let the balls of each bin come as a Poisson process of rate 1, independent between bins. Then the *sequence* of bins
//! hit is exactly that of balls thrown uniformly, and only the clock is new. A bin is full at its `c`-th ball, a
//! Gamma(c) time; the first bin is full at `T`, the least of `m` such times; and the number of balls by then is the
//! answer.
//!
//! Drawing `m` Gamma times and then `m − 1` Poisson(T) numbers below `c` costs two slow variates per bin. It is cheaper
//! to look at the bins once, at a fixed time a little after the first is likely to be full, and then to look back:
//!
//! 1. At the *horizon* `h` each bin has had Poisson(h) balls. The mean is always the same, so a table made ahead draws
//!    it in a few nanoseconds. About [`EXPECTED_FULL`] bins have had `c` or more.
//! 2. Given that `n` balls came to a bin by `h`, their times are independent and uniform on (0, h). So an overfull bin
//!    became full at `h V`, with `V` the `c`-th smallest of `n` uniform numbers: Beta(c, n − c + 1). The least of these
//!    few is `T`.
//! 3. The balls of all other bins that had come by `T` are a binomial share `T/h` of their sum: one variate for all of
//!    them. A bin that became full later, at `U > T`, has its `c − 1` earlier balls uniform on (0, U): Binomial(c − 1,
//!    T/U). The first bin has `c`.
//! 4. If no bin is full at the horizon (once in 150 trials), time goes on by a smaller fixed step, until one is. A bin
//!    with room for `r` more becomes full at the `r`-th ball of the step; the same two laws hold with `r` for `c`.
//!
//! Nothing is approximated except by the rounding of binary64 numbers. The uniformity of times given their number is
//! the order-statistics property of the Poisson process; Poissonisation of balls and bins goes back to Lars Holst, "On
//! birthday, collectors', occupancy and other classical urn problems", 1986.

use std::convert::Infallible;

use rand_core::TryRng;
use rand_distr::{Beta, Binomial, Distribution};

use super::Bins;
use super::poisson::{PoissonTable, Weights};
use crate::random::Random;

/// The mean number of bins that are full at the horizon. With 5, none is in one trial of 150; each costs two variates.
const EXPECTED_FULL: f64 = 5.0;

/// The maximum probability that a bin is full at the horizon, however few bins there are.
const MAX_FULL: f64 = 0.9;

/// Draws the number of balls from its exact distribution, in a few nanoseconds a bin.
///
/// [`new`](Self::new) makes two tables of about `20 √capacity` entries; [`balls`](Self::balls) allocates nothing once
/// its lists have grown to their usual length.
///
/// ```
/// use millstream_csm::bins::{Bins, Poissonised};
/// use millstream_csm::random::Random;
///
/// let bins = Bins::new(1000, 30_000)?;
/// let mut sampler = Poissonised::new(bins);
/// let mut random = Random::seeded(1);
/// let mean = (0..1000).map(|_| bins.fill(sampler.balls(&mut random))).sum::<f64>() / 1000.0;
/// assert!((mean - 0.9814).abs() < 0.0005);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Poissonised {
    capacity: u64,
    to_horizon: PoissonTable,
    step: PoissonTable,
    counts: Box<[u32]>,
    full: Vec<Full>,
}

/// A bin that became full within the stretch of time under consideration.
#[derive(Debug, Clone, Copy)]
struct Full {
    /// The number of balls that it could take at the beginning of the stretch, at least 1.
    room: u64,
    /// The share of the stretch that was left when it became full.
    left: f64,
}

impl Poissonised {
    /// A sampler for `bins`.
    #[must_use]
    pub fn new(bins: Bins) -> Self {
        let capacity = u64::from(bins.capacity());
        let horizon = horizon(bins);
        let step = horizon.min(0.5 * f64::from(bins.capacity()).sqrt());
        Self {
            capacity,
            to_horizon: PoissonTable::new(horizon),
            step: PoissonTable::new(step),
            counts: vec![0; bins.bins() as usize].into_boxed_slice(),
            full: Vec::new(),
        }
    }

    /// One trial: the number of balls until the first bin is full, the last ball included.
    pub fn balls(&mut self, random: &mut Random) -> u64 {
        self.counts.fill(0);
        self.full.clear();
        let mut before = 0;
        let mut stretch = &self.to_horizon;
        loop {
            let arrivals = advance(&mut self.counts, &mut self.full, stretch, self.capacity, random);
            if !self.full.is_empty() {
                return before + until_first_full(arrivals, &self.full, random);
            }
            before += arrivals;
            stretch = &self.step;
        }
    }
}

/// A time by which about [`EXPECTED_FULL`] bins are full. Its value affects only the speed of the sampler, not the law.
fn horizon(bins: Bins) -> f64 {
    let capacity = f64::from(bins.capacity());
    let wanted = (EXPECTED_FULL / f64::from(bins.bins())).min(MAX_FULL);
    let (mut early, mut late) = (0.0, 2.0 * capacity + 4.0);
    loop {
        let middle = 0.5 * (early + late);
        let full = Weights::new(middle).at_least(u64::from(bins.capacity()));
        if full > 1.1 * wanted {
            late = middle;
        } else if full < 0.9 * wanted {
            early = middle;
        } else {
            return middle;
        }
    }
}

/// Lets a stretch of time pass. Bins that became full go to `full`, the others' arrivals are added to their counts;
/// returns the sum of the latter.
fn advance(
    counts: &mut [u32],
    full: &mut Vec<Full>,
    stretch: &PoissonTable,
    capacity: u64,
    random: &mut Random,
) -> u64 {
    let mut sum = 0;
    for count in counts {
        let arrivals = stretch.draw(random);
        let room = capacity - u64::from(*count);
        if arrivals >= room {
            full.push(Full::within(room, arrivals, random));
        } else {
            // Below the capacity, which is a u32.
            *count += arrivals as u32;
            sum += arrivals;
        }
    }
    sum
}

impl Full {
    /// A bin with room for `room` balls became full in a stretch with `arrivals` balls for it.
    ///
    /// The time is counted backwards, from the end of the stretch, where its digits are: the `room`-th smallest of
    /// `arrivals` uniform numbers is the `arrivals − room + 1`-th largest.
    #[cold]
    fn within(room: u64, arrivals: u64, random: &mut Random) -> Self {
        let left = Beta::new((arrivals - room + 1) as f64, room as f64);
        let left = left.expect("arrivals are at least the room, and the room at least 1").sample(&mut Source(random));
        Self { room, left }
    }
}

/// The balls that came in a stretch before its first bin was full, that bin's last ball included, where `full` are the
/// bins that became full in it and `others` balls came to those that did not.
fn until_first_full(others: u64, full: &[Full], random: &mut Random) -> u64 {
    let after = |one: &(usize, &Full), other: &(usize, &Full)| one.1.left.total_cmp(&other.1.left);
    let (first, &Full { left, room }) = full.iter().enumerate().max_by(after).expect("at least one bin is full");
    let mut balls = room + others - binomial(others, left, random);
    for (index, later) in full.iter().enumerate() {
        if index != first {
            // Of its `room − 1` earlier balls, uniform on (0, 1 − later.left), those after 1 − left came too late.
            let earlier = later.room - 1;
            balls += earlier - binomial(earlier, (left - later.left) / (1.0 - later.left), random);
        }
    }
    balls
}

/// The number of `balls` independent events of probability `share` that happen.
fn binomial(balls: u64, share: f64, random: &mut Random) -> u64 {
    let share = share.clamp(0.0, 1.0);
    Binomial::new(balls, share).expect("a share is a probability").sample(&mut Source(random))
}

/// The generator behind the interface of the distributions' crate.
struct Source<'a>(&'a mut Random);

impl TryRng for Source<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::Direct;

    fn fills(mut balls: impl FnMut() -> u64, trials: usize) -> Vec<u64> {
        (0..trials).map(|_| balls()).collect()
    }

    /// The two-sample Kolmogorov–Smirnov distance, times √(n/2): above 3.0 once in 10⁷ for continuous data, less often
    /// with ties.
    fn distance(mut one: Vec<u64>, mut other: Vec<u64>) -> f64 {
        one.sort_unstable();
        other.sort_unstable();
        let n = one.len() as f64;
        let share = |sorted: &[u64], x: u64| sorted.partition_point(|&y| y <= x) as f64 / n;
        let widest = one.iter().map(|&x| (share(&one, x) - share(&other, x)).abs()).fold(0.0, f64::max);
        widest * (n / 2.0).sqrt()
    }

    #[test]
    fn the_fill_is_distributed_as_in_the_direct_simulation() {
        for (bins, capacity, trials) in [
            (1, 5, 1000),
            (2, 1, 1000),
            (2, 3, 20_000),
            (5, 20, 20_000),
            (30, 4, 20_000),
            (100, 50, 5000),
            (10, 1000, 2000),
        ] {
            let bins = Bins::new(bins, capacity).unwrap();
            let mut random = Random::seeded(u64::from(capacity));
            let (mut direct, mut poissonised) = (Direct::new(bins), Poissonised::new(bins));
            let thrown = fills(|| direct.balls(&mut random), trials);
            let drawn = fills(|| poissonised.balls(&mut random), trials);
            let distance = distance(thrown, drawn);
            assert!(distance < 3.0, "{bins:?}: {distance}");
        }
    }

    /// The textbook form: `m` Gamma times, the least of them `T`, and Poisson(T) numbers below the capacity.
    #[test]
    fn the_fill_is_distributed_as_by_gamma_times_and_truncated_counts() {
        let bins = Bins::new(20, 3000).unwrap();
        let mut random = Random::seeded(20);
        let gamma = rand_distr::Gamma::new(3000.0, 1.0).unwrap();
        let textbook = fills(
            || {
                let first = (0..20).map(|_| gamma.sample(&mut Source(&mut random))).fold(f64::INFINITY, f64::min);
                let count = rand_distr::Poisson::new(first).unwrap();
                let mut below = || loop {
                    let count: f64 = count.sample(&mut Source(&mut random));
                    if count < 3000.0 {
                        return count as u64;
                    }
                };
                3000 + (0..19).map(|_| below()).sum::<u64>()
            },
            20_000,
        );
        let mut poissonised = Poissonised::new(bins);
        let drawn = fills(|| poissonised.balls(&mut random), 20_000);
        let distance = distance(textbook, drawn);
        assert!(distance < 3.0, "{distance}");
    }

    #[test]
    fn the_law_does_not_depend_on_the_horizon() {
        let bins = Bins::new(20, 100).unwrap();
        let mut random = Random::seeded(100);
        let mut usual = Poissonised::new(bins);
        let expected = fills(|| usual.balls(&mut random), 20_000);
        // Far too early, so that many steps follow; and so late that nearly every bin is full.
        for (horizon, step) in [(30.0, 5.0), (50.0, 1.0), (120.0, 1.0)] {
            let mut other = usual.clone();
            other.to_horizon = PoissonTable::new(horizon);
            other.step = PoissonTable::new(step);
            let distance = distance(expected.clone(), fills(|| other.balls(&mut random), 20_000));
            assert!(distance < 3.0, "horizon {horizon}: {distance}");
        }
    }

    #[test]
    fn the_smallest_layouts_have_their_certain_answers() {
        let mut random = Random::seeded(1);
        for capacity in [1, 2, 1000] {
            let mut one_bin = Poissonised::new(Bins::new(1, capacity).unwrap());
            assert_eq!(one_bin.balls(&mut random), u64::from(capacity));
        }
        let mut one_ball = Poissonised::new(Bins::new(1000, 1).unwrap());
        assert!((0..1000).all(|_| one_ball.balls(&mut random) == 1));
    }

    #[test]
    fn a_horizon_is_found_for_the_largest_layouts() {
        for (bins, capacity) in [(1 << 24, 1), (1, 1 << 28), (1 << 24, 1 << 20), (3, 2)] {
            let bins = Bins::new(bins, capacity).unwrap();
            let wanted = (EXPECTED_FULL / f64::from(bins.bins())).min(MAX_FULL);
            let full = Weights::new(horizon(bins)).at_least(u64::from(capacity));
            assert!((0.9 * wanted..=1.1 * wanted).contains(&full), "{bins:?}: {full} for {wanted}");
        }
    }

    /// Reference: mean 0.98140, deviation 0.0020, P(≥ 0.98) = 0.786, P(≥ 0.975) = 0.993.
    #[test]
    fn a_thousand_bins_of_thirty_thousand_match_the_reference() {
        let bins = Bins::new(1000, 30_000).unwrap();
        let mut sampler = Poissonised::new(bins);
        let mut random = Random::seeded(1);
        let fills: Vec<f64> = (0..20_000).map(|_| bins.fill(sampler.balls(&mut random))).collect();
        let n = fills.len() as f64;
        let mean = fills.iter().sum::<f64>() / n;
        let deviation = (fills.iter().map(|fill| (fill - mean).powi(2)).sum::<f64>() / n).sqrt();
        let reached = |x: f64| fills.iter().filter(|&&fill| fill >= x).count() as f64 / n;
        assert!((mean - 0.98140).abs() < 0.00008, "mean {mean}");
        assert!((deviation - 0.0020).abs() < 0.0001, "deviation {deviation}");
        assert!((reached(0.98) - 0.786).abs() < 0.013, "{}", reached(0.98));
        assert!((reached(0.975) - 0.993).abs() < 0.003, "{}", reached(0.975));
    }
}
