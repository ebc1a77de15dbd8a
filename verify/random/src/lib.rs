//! Random numbers for tests, and the length of randomised tests.
//!
//! A test command that fails at random teaches its users to run it again. So a randomised test draws the same numbers
//! in every run, unless `MILLSTREAM_SEED` contains another seed; `cargo xtask soak` sets this variable to fresh seeds.
//! Each test prints its seed, and the test harness shows the seed if the test fails.
//!
//! | I want… | |
//! | --- | --- |
//! | one generator | [`Random::seeded`] |
//! | a generator for each thread | [`Random::fork`], or [`Random::new`] with successive numbers from [`seed`] on |
//! | properties of proptest | `#![proptest_config(cases(256))]`, with the feature `proptest` |
//! | a loop that is longer in the soak than in a test | [`stress`] as a factor |
//! | a loom model that is deeper in the soak than in a test | [`depth`] |

use std::env;

/// The seed of a run for which `MILLSTREAM_SEED` is not set.
const FIXED_SEED: u64 = 1;

/// Returns the seed of this run and prints it: the number in `MILLSTREAM_SEED`, or a fixed number.
///
/// # Panics
/// Panics if `MILLSTREAM_SEED` is not a whole number from 0 to 2^64 - 1.
#[must_use]
pub fn seed() -> u64 {
    let seed = variable("MILLSTREAM_SEED").unwrap_or(FIXED_SEED);
    println!("MILLSTREAM_SEED={seed}");
    seed
}

/// Returns the factor by which this run is longer than usual: the number in `MILLSTREAM_STRESS`, or 1.
///
/// # Panics
/// Panics if `MILLSTREAM_STRESS` is not a whole number from 0 to 2^64 - 1.
#[must_use]
pub fn stress() -> u64 {
    variable("MILLSTREAM_STRESS").unwrap_or(1)
}

/// Returns the depth of a model: `tested` in a usual run, and `soaked` in a run with a [`stress`] above 1, such as
/// `cargo xtask soak`.
#[must_use]
pub fn depth<T>(tested: T, soaked: T) -> T {
    if stress() > 1 { soaked } else { tested }
}

fn variable(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} takes a whole number, not `{text}`")))
}

/// A generator of random numbers: SplitMix64 (Steele, Lea and Flood, 2014). Neighbouring seeds result in unrelated
/// numbers.
///
/// ```
/// use millstream_verify_random::Random;
///
/// let mut random = Random::new(7);
/// assert!(random.below(6) < 6);
/// assert_eq!(Random::new(7).next(), Random::new(7).next());
/// ```
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the generator of this run's [`seed`].
    #[must_use]
    pub fn seeded() -> Self {
        Random(seed())
    }

    /// Returns a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns a generator for another thread, which draws its own numbers.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Random(self.next())
    }

    /// Returns 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence is no iterator that a loop could end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`.
    ///
    /// # Panics
    /// Panics if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Returns a configuration for `cases` random cases from this run's [`seed`]. Failing cases leave no files in the tree.
#[cfg(feature = "proptest")]
#[must_use]
pub fn cases(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, rng_seed: RngSeed::Fixed(seed()), failure_persistence: None, ..Config::default() }
}
