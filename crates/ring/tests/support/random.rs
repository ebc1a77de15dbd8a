//! Reproducible random numbers.

/// A small generator (splitmix64) whose seed is printed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded() -> Self {
        let seed = std::env::var("MILLSTREAM_SEED").ok().map_or_else(
            || std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970").as_nanos() as u64,
            |seed| seed.parse().expect("MILLSTREAM_SEED is a number"),
        );
        println!("MILLSTREAM_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn fork(&mut self) -> Self {
        Random(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
