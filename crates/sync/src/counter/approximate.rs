//! A counter in two bytes.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Bits of the word's lower part.
const DIGITS: u32 = 10;
const SCALE: f64 = (1 << DIGITS) as f64;

/// Counts up to 10²² in two bytes, with a relative standard error of at most 2 %: suits a counter for each of a million
/// things.
///
/// The word is a floating-point number with 10 binary digits that is incremented with a probability: with exponent `t`
/// the probability is 2⁻ᵗ, and each increment of the word stands for 2ᵗ increments. Up to 1024 the count is exact. The
/// estimate is unbiased, and its standard error relative to the true count is at most √(3 / (8·1024)) = 1.92 %: an
/// error above 6 % (three standard errors) occurs once in several hundred counts.
///
/// ```
/// use millstream_sync::counter::Approximate;
///
/// let views: Vec<Approximate> = (0..1000).map(|_| Approximate::new()).collect();
/// assert_eq!(size_of_val(&views[..]), 2000);
/// (0..100_000).for_each(|_| views[7].increment());
/// assert!((90_000.0..110_000.0).contains(&views[7].estimate()));
/// ```
///
/// # When not
/// When eight bytes are available: a [`Counter`](super::Counter) is exact. When one call must count more than one.
///
/// # Sources
/// Robert Morris, *Counting large numbers of events in small registers* (1978); the floating-point form and its error
/// by Miklós Csűrös (2010); its use for statistics of threads, where the rarer writes are the point, by Dave Dice,
/// Yossi Lev and Mark Moir, *Scalable statistics counters* (SPAA 2013).
#[derive(Debug, Default)]
pub struct Approximate(AtomicU16);

impl Approximate {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Approximate(AtomicU16::new(0))
    }

    /// Adds one, with the word's probability.
    ///
    /// Lock-free. The larger the count, the less often the word is written: from 10⁶ on, once in a thousand increments.
    /// Not ordered with any other access.
    #[inline]
    pub fn increment(&self) {
        self.increment_by_lot(random());
    }

    /// `lot` is uniform: its first `t` bits are all zero with a probability of 2⁻ᵗ. After a failed exchange the same
    /// lot decides again, so only the bits not yet examined count.
    #[inline]
    fn increment_by_lot(&self, lot: u64) {
        let mut word = self.0.load(Relaxed);
        while lot.leading_zeros() >= u32::from(word >> DIGITS) && word != u16::MAX {
            match self.0.compare_exchange_weak(word, word + 1, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// An estimate of the number of increments so far.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        let word = self.0.load(Relaxed);
        let digits = f64::from(word & ((1 << DIGITS) - 1));
        (SCALE + digits) * f64::from(word >> DIGITS).exp2() - SCALE
    }
}

thread_local! {
    /// The generator's state, which is never zero after the first draw.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Draws the thread's next random number by xorshift64*, whose upper bits are the better ones.
fn random() -> u64 {
    STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            x = RandomState::new().hash_one(0) | 1;
        }
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An independent generator (splitmix64) with a fixed seed, so every run of the test is the same.
    fn lots(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        }
    }

    #[test]
    fn small_counts_are_exact() {
        let counter = Approximate::new();
        for n in 0..=1024 {
            assert_eq!(counter.estimate(), f64::from(n));
            counter.increment();
        }
    }

    #[test]
    fn estimates_are_unbiased_and_as_close_as_stated() {
        const COUNTERS: u64 = 400;
        const STANDARD_ERROR: f64 = 0.0192;
        // The error is largest a third into a power of two.
        for n in [50_000_u32, (1024 * 31 + 1024 * 32 / 3), 200_000] {
            let errors: Vec<f64> = (0..COUNTERS)
                .map(|seed| {
                    let (counter, mut lot) = (Approximate::new(), lots(seed << 32));
                    (0..n).for_each(|_| counter.increment_by_lot(lot()));
                    counter.estimate() / f64::from(n) - 1.0
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / COUNTERS as f64;
            let spread = (errors.iter().map(|error| error * error).sum::<f64>() / COUNTERS as f64).sqrt();
            assert!(mean.abs() < 3.0 * STANDARD_ERROR / (COUNTERS as f64).sqrt(), "{n}: biased by {mean}");
            assert!((0.7 * STANDARD_ERROR..1.1 * STANDARD_ERROR).contains(&spread), "{n}: off by {spread}");
        }
    }

    #[test]
    fn the_largest_word_stays() {
        let counter = Approximate(AtomicU16::new(u16::MAX));
        counter.increment_by_lot(0);
        assert!(counter.estimate() > 1e22);
    }
}
