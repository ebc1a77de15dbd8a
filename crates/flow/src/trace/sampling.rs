//! The choice of the units to record in a long run.
//!
//! The first million units are all recorded. From there to the second million, one block in two is recorded; from there
//! to the fourth million, one block in four; and so on. So the file grows with the logarithm of the run's length. A
//! block that is drawn at one rate is also drawn at every higher rate. So a reader can apply the lowest rate to the
//! whole file, and get an even sample of at least half a million units. A child is recorded if its parent is.

use crate::engine::run::front::mix;

/// The number of units that are all recorded.
pub(crate) const WHOLE: u64 = 1 << 20;

/// The number of units of a block. They have consecutive numbers, so sequences of equal keys are as long in a sample
/// as in the whole.
pub(crate) const BLOCK: u64 = 64;

/// The number N such that one block in N is recorded around `id`, if the first `whole` units are all recorded.
pub(crate) fn one_in(id: u64, whole: u64) -> u64 {
    (id / whole.max(1)).checked_ilog2().map_or(1, |octave| 2 << octave.min(61))
}

/// Whether a unit with this number is in a sample of one block in `one_in`.
pub(crate) fn draws(id: u64, one_in: u64) -> bool {
    one_in <= 1 || mix(id / BLOCK).is_multiple_of(one_in)
}

/// Whether a unit with this number is recorded, if the first `whole` units are all recorded. `whole` is a multiple of
/// [`BLOCK`], so a block is recorded completely or not at all.
pub(crate) fn is_recorded(id: u64, whole: u64) -> bool {
    draws(id, one_in(id, whole))
}

/// The end of the block of a unit with this number.
pub(crate) fn end_of_block(id: u64) -> u64 {
    (id / BLOCK + 1).saturating_mul(BLOCK)
}

/// Whether at least one of these units is recorded.
pub(crate) fn is_one_recorded(first: u64, units: u64, whole: u64) -> bool {
    let end = first.saturating_add(units);
    let mut id = first;
    while id < end {
        if is_recorded(id, whole) {
            return true;
        }
        id = end_of_block(id);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_grows_with_the_logarithm_of_the_run_and_has_an_even_sample() {
        let whole = 1 << 10;
        let recorded: Vec<u64> = (0..whole << 8).filter(|&id| is_recorded(id, whole)).collect();
        assert!(recorded.iter().take_while(|&&id| id < whole).count() as u64 == whole);
        let all = recorded.len() as u64;
        assert!((3 * whole..=7 * whole).contains(&all), "{all} of eight octaves");
        let least = one_in(whole * 256 - 1, whole);
        assert_eq!(least, 256);
        assert!((0..whole << 8).filter(|&id| draws(id, least)).all(|id| is_recorded(id, whole)));
    }

    #[test]
    fn rates_halve_with_each_octave() {
        let shares: Vec<u64> = [0, 9, 10, 19, 20, 39, 40, 79, u64::MAX].map(|id| one_in(id, 10)).into();
        assert_eq!(shares[..8], [1, 1, 2, 2, 4, 4, 8, 8]);
        assert!(shares[8].is_power_of_two() && one_in(u64::MAX, 0).is_power_of_two());
    }

    #[test]
    fn a_range_is_recorded_if_one_of_its_units_is() {
        let whole = 2 * BLOCK;
        for (first, units) in [(0, 1), (4_000, 1), (4_000, 64), (4_063, 2), (5_000, 1_000), (9_999, 0)] {
            let expected = (first..first + units).any(|id| is_recorded(id, whole));
            assert_eq!(is_one_recorded(first, units, whole), expected, "{first} {units}");
        }
    }
}
