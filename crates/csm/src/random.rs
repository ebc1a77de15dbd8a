//! A small generator of random numbers from a seed. The numbers are the same on every machine.

/// The generator xoshiro256++ of David Blackman and Sebastiano Vigna, seeded by their SplitMix64.
///
/// Its period is `2^256 - 1`, and a number takes less than a nanosecond. It is not cryptographically secure: a few
/// numbers reveal the next ones.
///
/// ```
/// use millstream_csm::random::Random;
///
/// let mut random = Random::seeded(7);
/// let mut cards = [1, 2, 3, 4, 5];
/// random.shuffle(&mut cards);
/// assert!((0.0..1.0).contains(&random.uniform()));
/// assert_eq!(Random::seeded(7).uniform(), Random::seeded(7).uniform());
/// ```
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Creates a generator from a seed. Generators with different seeds are independent for all practical purposes.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut walk = seed;
        let state = [(); 4].map(|()| {
            walk = walk.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = walk;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Random { state }
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A whole number in `0..n`, uniformly distributed. Daniel Lemire's method: a multiplication, repeated in the rare
    /// cases that would cause a bias.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is no number below zero");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let biased = n.wrapping_neg() % n;
            while (product as u64) < biased {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A multiple of `2^-53` in `0.0..1.0`.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (0.5 / (1u64 << 52) as f64)
    }

    /// Shuffles the slice; each order has the same probability (Fisher and Yates).
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        self.shuffle_front(slice, slice.len());
    }

    /// Puts a random choice of `count` elements, in random order, at the front of the slice.
    ///
    /// # Panics
    /// If the slice has fewer elements.
    pub(crate) fn shuffle_front<T>(&mut self, slice: &mut [T], count: usize) {
        assert!(count <= slice.len(), "cannot choose {count} of {}", slice.len());
        for i in 0..count {
            let j = i + self.below((slice.len() - i) as u64) as usize;
            slice.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs of the reference implementation for the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!([(); 5].map(|()| random.next_u64()), expected);
    }

    #[test]
    fn small_numbers_are_equally_likely() {
        let mut random = Random::seeded(3);
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[random.below(6) as usize] += 1;
        }
        // The tolerance is six standard deviations of a count: 6 sqrt(60000 * 5/36).
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 548), "{seen:?}");
    }

    #[test]
    fn a_shuffle_gives_every_order_its_share() {
        let mut random = Random::seeded(4);
        let mut seen = std::collections::HashMap::new();
        for _ in 0..24_000 {
            let mut cards = [0, 1, 2, 3];
            random.shuffle(&mut cards);
            *seen.entry(cards).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|&n| n.abs_diff(1000) < 190), "{seen:?}");
    }
}
