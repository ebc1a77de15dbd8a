//! Pairs the expected units of a case with the units found.
//!
//! An expectation may fit several units, and a unit may fit several expectations. If each expectation simply took the
//! first unit that fits, another could be left without a partner. So the pairs are a maximum matching. (Kuhn's
//! algorithm: an expectation may take the partner of another expectation, provided that this other expectation can move
//! to a different unit.)

/// Returns the partner of each expectation in a maximum matching. Takes time in proportion to `expected`² · `found` at
/// most, and to `expected` · `found` where few expectations compete for a unit.
pub(super) fn pairs(expected: usize, found: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut taken_by: Vec<Option<usize>> = vec![None; found];
    for first in 0..expected {
        extend(first, &mut taken_by, &fits);
    }
    let mut partners = vec![None; expected];
    for (found, expected) in taken_by.into_iter().enumerate() {
        if let Some(expected) = expected {
            partners[expected] = Some(found);
        }
    }
    partners
}

/// Finds a partner for `first` by the shortest augmenting path: each expectation on the path moves to another unit.
fn extend(first: usize, taken_by: &mut [Option<usize>], fits: &impl Fn(usize, usize) -> bool) {
    let mut reached_from: Vec<Option<usize>> = vec![None; taken_by.len()];
    let mut next = std::collections::VecDeque::from([first]);
    while let Some(expected) = next.pop_front() {
        for found in 0..taken_by.len() {
            if reached_from[found].is_some() || !fits(expected, found) {
                continue;
            }
            reached_from[found] = Some(expected);
            match taken_by[found] {
                Some(other) => next.push_back(other),
                None => return shift(found, first, taken_by, &reached_from),
            }
        }
    }
}

/// Moves each expectation on the path to the next unit of the path, from the end of the path back to `first`. The
/// expectation that reached `free` moves to `free`; the expectation before it on the path moves to the unit that has
/// just become free, and so on.
fn shift(free: usize, first: usize, taken_by: &mut [Option<usize>], reached_from: &[Option<usize>]) {
    let mut free = free;
    while let Some(expected) = reached_from[free] {
        let before = taken_by.iter().position(|taker| *taker == Some(expected));
        taken_by[free] = Some(expected);
        match before {
            Some(before) if expected != first => free = before,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::Random;

    use super::pairs;

    #[test]
    fn a_vague_expectation_leaves_a_unit_to_the_expectation_that_fits_no_other() {
        // Expectation 0 fits both units, 1 fits only the first.
        assert_eq!(pairs(2, 2, |expected, found| expected == 0 || found == 0), [Some(1), Some(0)]);
        // An augmenting path through all three expectations.
        let fits = [[true, true, false], [true, false, false], [false, true, true]];
        assert!(pairs(3, 3, |expected, found| fits[expected][found]).iter().all(Option::is_some));
        assert_eq!(pairs(2, 1, |_, _| true).iter().flatten().count(), 1);
        assert_eq!(pairs(0, 3, |_, _| true), []);
    }

    #[test]
    fn the_matching_is_maximum() {
        fn most(expected: usize, fits: &[Vec<bool>], used: &mut Vec<bool>) -> usize {
            let Some(row) = fits.get(expected) else { return 0 };
            let mut best = most(expected + 1, fits, used);
            for found in 0..row.len() {
                if row[found] && !used[found] {
                    used[found] = true;
                    best = best.max(1 + most(expected + 1, fits, used));
                    used[found] = false;
                }
            }
            best
        }
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let (rows, columns) = (random.below(6) as usize, random.below(6) as usize);
            let fits: Vec<Vec<bool>> =
                (0..rows).map(|_| (0..columns).map(|_| random.below(3) == 0).collect()).collect();
            let found = pairs(rows, columns, |row, column| fits[row][column]);
            let mut seen = vec![false; columns];
            for (row, column) in found.iter().enumerate() {
                if let Some(column) = *column {
                    assert!(fits[row][column] && !std::mem::replace(&mut seen[column], true), "seed {seed}");
                }
            }
            assert_eq!(found.iter().flatten().count(), most(0, &fits, &mut vec![false; columns]), "seed {seed}");
        }
    }
}
