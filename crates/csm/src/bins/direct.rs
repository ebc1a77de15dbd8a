//! The direct simulation, which throws every ball.
//!
//! The time goes into random numbers, so one 64-bit word places several balls. With `m` bins and `k` balls a word,
//! `floor(word mᵏ / 2⁶⁴)` is a number of `k` digits in base `m`, and its digits are the bins. The digits come out one
//! at a time, most significant first, as the high halves of products with `m`; the low half left at the end is `word mᵏ
//! mod 2⁶⁴`. Words whose low half is below `2⁶⁴ mod mᵏ` are drawn again, which leaves each of the `mᵏ` numbers the same
//! count of words: every bin has exactly the same chance, for any `m`.
//!
//! Source: Nevin Brackett-Rozinsky and Daniel Lemire, "Batched ranged random integer generation", 2024.

use super::Bins;
use crate::random::Random;

/// The maximum number of balls placed by one word.
const MAX_PER_WORD: u32 = 6;

/// `mᵏ` stays at or below this, so that fewer than one word in 127 is drawn again.
const MAX_PRODUCT: u64 = 1 << 57;

/// Throws ball after ball until a bin is full.
///
/// Costs below a nanosecond a ball while the counts (four bytes a bin) fit the first-level cache, and no allocation
/// after [`new`](Self::new).
///
/// ```
/// use millstream_csm::bins::{Bins, Direct};
/// use millstream_csm::random::Random;
///
/// let bins = Bins::new(10, 1000)?;
/// let balls = Direct::new(bins).balls(&mut Random::seeded(1));
/// assert!(balls >= 1000 && bins.fill(balls) <= 1.0);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Direct {
    bins: Bins,
    /// The places left in each bin.
    room: Box<[u32]>,
}

impl Direct {
    /// A thrower for `bins`.
    #[must_use]
    pub fn new(bins: Bins) -> Self {
        Self { bins, room: vec![0; bins.bins() as usize].into_boxed_slice() }
    }

    /// One trial: the number of balls until the first bin is full, the last ball included.
    pub fn balls(&mut self, random: &mut Random) -> u64 {
        self.room.fill(self.bins.capacity());
        match balls_a_word(u64::from(self.bins.bins())) {
            6 => throw::<6>(&mut self.room, random),
            5 => throw::<5>(&mut self.room, random),
            4 => throw::<4>(&mut self.room, random),
            3 => throw::<3>(&mut self.room, random),
            _ => throw::<2>(&mut self.room, random),
        }
    }
}

/// The largest `k` up to [`MAX_PER_WORD`] with `mᵏ` at most [`MAX_PRODUCT`]; at least 2, because `m` is at most 2²⁴.
fn balls_a_word(bins: u64) -> u32 {
    (2..=MAX_PER_WORD).rev().find(|&k| bins.checked_pow(k).is_some_and(|product| product <= MAX_PRODUCT)).unwrap_or(2)
}

fn throw<const K: usize>(room: &mut [u32], random: &mut Random) -> u64 {
    let bins = room.len() as u64;
    let product = bins.pow(K as u32);
    let drawn_again_below = words_drawn_again(product);
    let mut balls = 0;
    loop {
        let (places, low) = digits::<K>(bins, random.next_u64());
        if low < drawn_again_below {
            continue;
        }
        for (before, place) in (0..).zip(places) {
            room[place] -= 1;
            if room[place] == 0 {
                return balls + before + 1;
            }
        }
        balls += K as u64;
    }
}

/// `2⁶⁴ mod product`: this many words are drawn again, so that the others are a multiple of `product`.
fn words_drawn_again(product: u64) -> u64 {
    product.wrapping_neg() % product
}

/// The `K` digits of `floor(word baseᴷ / 2⁶⁴)` in base `base`, and `word baseᴷ mod 2⁶⁴`.
#[inline(always)]
fn digits<const K: usize>(base: u64, word: u64) -> ([usize; K], u64) {
    let mut low = word;
    let digits = std::array::from_fn(|_| {
        let wide = u128::from(low) * u128::from(base);
        low = wide as u64;
        (wide >> 64) as usize
    });
    (digits, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_those_of_the_scaled_word() {
        let mut random = Random::seeded(11);
        for base in [1, 2, 3, 10, 1000] {
            for _ in 0..1000 {
                let word = random.next_u64();
                let (places, low) = digits::<5>(base, word);
                let scaled = u128::from(word) * u128::from(base.pow(5));
                let number = places.iter().fold(0, |number, &digit| number * u128::from(base) + digit as u128);
                assert_eq!(number, scaled >> 64, "base {base}, word {word}");
                assert_eq!(low, scaled as u64, "base {base}, word {word}");
            }
        }
    }

    #[test]
    fn a_word_places_as_many_balls_as_the_rejection_allows() {
        let expected =
            [(1, 6), (2, 6), (724, 6), (725, 5), (1000, 5), (2702, 5), (2703, 4), (1 << 19, 3), (1 << 24, 2)];
        for (bins, balls) in expected {
            assert_eq!(balls_a_word(bins), balls, "{bins} bins");
        }
    }

    #[test]
    fn accepted_words_map_evenly_to_numbers() {
        for product in [1, 2, 3, 1000_u64.pow(5), 724_u64.pow(6), 1 << 57, u64::MAX] {
            let again = words_drawn_again(product);
            assert!(again < product);
            assert_eq!(((1_u128 << 64) - u128::from(again)) % u128::from(product), 0, "{product}");
        }
    }

    #[test]
    fn one_bin_is_full_after_its_capacity() {
        for capacity in [1, 2, 7, 100] {
            let mut direct = Direct::new(Bins::new(1, capacity).unwrap());
            assert_eq!(direct.balls(&mut Random::seeded(1)), u64::from(capacity));
        }
    }

    #[test]
    fn bins_of_one_ball_are_full_after_the_first() {
        let mut direct = Direct::new(Bins::new(1000, 1).unwrap());
        assert_eq!(direct.balls(&mut Random::seeded(1)), 1);
    }

    /// With two places a bin this is the birthday problem: P(balls > k) = (m)ₖ / mᵏ.
    #[test]
    fn bins_of_two_balls_meet_the_birthday_problem() {
        let days = 365.0;
        let trials = 100_000;
        let mut direct = Direct::new(Bins::new(365, 2).unwrap());
        let mut random = Random::seeded(365);
        let mut longer_than_22 = 0;
        for _ in 0..trials {
            longer_than_22 += u32::from(direct.balls(&mut random) > 22);
        }
        let exact: f64 = (0..22).map(|k| (days - f64::from(k)) / days).product();
        let share = f64::from(longer_than_22) / f64::from(trials);
        assert!(
            (share - exact).abs() < 5.0 * (exact * (1.0 - exact) / f64::from(trials)).sqrt(),
            "{share} for {exact}"
        );
    }
}
