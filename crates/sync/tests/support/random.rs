//! Reproducible random numbers.

/// A xorshift generator: small, seeded, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.max(1))
    }

    /// A seed from the environment variable `MILLSTREAM_SEED` or the clock, printed so that a failure can be repeated.
    pub(crate) fn seed() -> u64 {
        let asked = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
        println!("MILLSTREAM_SEED={seed}");
        seed
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
