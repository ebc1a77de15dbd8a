//! Counts at places, with a decrement of a range and a search for the first zero.

/// A binary tree of minima. Changes and queries cost O(log n).
pub(super) struct ZeroTree {
    places: usize,
    /// A node's minimum is the least count below it. The root stores its minimum. Every other node stores by how much
    /// its minimum exceeds its parent's. So a node's minimum is the sum of the numbers on the path from the root to the
    /// node, and at least one of two siblings stores zero.
    above: Vec<i32>,
}

impl ZeroTree {
    pub(super) fn of(counts: &[i32]) -> Self {
        let places = counts.len().next_power_of_two();
        let mut above = vec![i32::MAX / 2; 2 * places];
        above[places..][..counts.len()].copy_from_slice(counts);
        for node in (1..places).rev() {
            above[node] = settle(&mut above[2 * node..][..2]);
        }
        ZeroTree { places, above }
    }

    /// Decrements every count in `from..to`.
    pub(super) fn decrement(&mut self, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let (mut left, mut right) = (from + self.places, to + self.places);
        let (first, last) = (left, right - 1);
        while left < right {
            if left & 1 == 1 {
                self.above[left] -= 1;
                left += 1;
            }
            if right & 1 == 1 {
                right -= 1;
                self.above[right] -= 1;
            }
            left /= 2;
            right /= 2;
        }
        self.settle_above(first);
        self.settle_above(last);
    }

    fn settle_above(&mut self, mut node: usize) {
        while node > 1 {
            node /= 2;
            let least = settle(&mut self.above[2 * node..][..2]);
            self.above[node] += least;
        }
    }

    /// The first place in `from..to` whose count is zero. No count may be negative.
    pub(super) fn first_zero(&self, from: usize, to: usize) -> Option<usize> {
        self.search(1, 0, self.places, from, to, 0)
    }

    fn search(&self, node: usize, low: usize, high: usize, from: usize, to: usize, above: i32) -> Option<usize> {
        let least = above + self.above[node];
        if to <= low || high <= from || least > 0 {
            return None;
        }
        if high - low == 1 {
            return Some(low);
        }
        let middle = usize::midpoint(low, high);
        self.search(2 * node, low, middle, from, to, least)
            .or_else(|| self.search(2 * node + 1, middle, high, from, to, least))
    }
}

/// Subtracts the smaller of two siblings from both, and returns it.
fn settle(siblings: &mut [i32]) -> i32 {
    let least = siblings[0].min(siblings[1]);
    siblings[0] -= least;
    siblings[1] -= least;
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_found_as_in_a_plain_array() {
        for n in [1usize, 2, 3, 8, 13, 64, 100] {
            let mut counts: Vec<i32> = (0..n as i32).map(|i| i * 5 % 7 + 3).collect();
            let mut tree = ZeroTree::of(&counts);
            for round in 0..4 * n {
                let (from, to) = (round * 7 % n, round * 11 % (n + 1));
                let enough = from < to && counts[from..to].iter().all(|&count| count > 0);
                if enough {
                    counts[from..to].iter_mut().for_each(|count| *count -= 1);
                    tree.decrement(from, to);
                }
                for from in 0..n {
                    for to in from..=n {
                        let first = counts[from..to].iter().position(|&count| count == 0).map(|i| from + i);
                        assert_eq!(tree.first_zero(from, to), first, "{counts:?} {from}..{to}");
                    }
                }
            }
        }
    }
}
