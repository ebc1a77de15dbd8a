//! Keys at places, with range minimum and a search for the first key at or below a limit.

const FAN: usize = 16;

/// A tree of minima, sixteen to a node: one cache line. Changes and queries cost O(log n).
pub(super) struct MinTree {
    /// The keys, then the minima of sixteen keys each, and so on. Each level is a whole number of nodes.
    levels: Vec<Vec<u32>>,
}

impl MinTree {
    pub(super) fn of(keys: impl Iterator<Item = u32>) -> Self {
        let mut level: Vec<u32> = keys.collect();
        let mut levels = Vec::new();
        loop {
            level.resize(level.len().max(1).next_multiple_of(FAN), u32::MAX);
            let above = level.chunks_exact(FAN).map(least).collect();
            levels.push(level);
            level = above;
            if level.len() == 1 {
                return MinTree { levels };
            }
        }
    }

    pub(super) fn get(&self, place: usize) -> u32 {
        self.levels[0][place]
    }

    pub(super) fn set(&mut self, mut place: usize, mut key: u32) {
        for level in &mut self.levels {
            level[place] = key;
            place /= FAN;
            key = least(&level[place * FAN..][..FAN]);
        }
    }

    /// The least key in `from..to`.
    pub(super) fn min(&self, mut from: usize, mut to: usize) -> u32 {
        let mut min = u32::MAX;
        for level in &self.levels {
            if from >= to {
                return min;
            }
            if from / FAN == (to - 1) / FAN {
                return min.min(least(&level[from..to]));
            }
            let first_whole = from.next_multiple_of(FAN);
            let last_whole = to - to % FAN;
            min = min.min(least(&level[from..first_whole])).min(least(&level[last_whole..to]));
            from = first_whole / FAN;
            to = last_whole / FAN;
        }
        min
    }

    /// The first place in `from..to` whose key is at most `limit`.
    pub(super) fn first_at_most(&self, from: usize, to: usize, limit: u32) -> Option<usize> {
        let mut at = from;
        let mut height = 0;
        // Up and to the right, until a node has such a key …
        loop {
            let level = self.levels.get(height)?;
            let node_end = (at + 1).next_multiple_of(FAN).min(level.len());
            if let Some(found) = level[at..node_end].iter().position(|&key| key <= limit) {
                at += found;
                break;
            }
            at = node_end / FAN;
            height += 1;
            if height == self.levels.len() || at >= self.levels[height].len() {
                return None;
            }
        }
        // … and down to it.
        for level in self.levels[..height].iter().rev() {
            let node = &level[at * FAN..][..FAN];
            at = at * FAN + node.iter().position(|&key| key <= limit).expect("the minimum is in its node");
        }
        (at < to).then_some(at)
    }
}

fn least(keys: &[u32]) -> u32 {
    keys.iter().copied().min().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_and_searches_agree_with_a_plain_array() {
        for n in [1, 2, 15, 16, 17, 256, 257, 700] {
            let mut keys: Vec<u32> = (0..n).map(|i| (i * 7919 + 13) % 1009).collect();
            let mut tree = MinTree::of(keys.iter().copied());
            for round in 0..n.min(40) as usize {
                let place = round * 31 % n as usize;
                keys[place] = (round as u32 * 557) % 1009;
                tree.set(place, keys[place]);
                for from in (0..=n as usize).step_by(1 + round % 7) {
                    for to in (from..=n as usize).step_by(1 + round % 11) {
                        let range = &keys[from..to];
                        assert_eq!(tree.min(from, to), range.iter().copied().min().unwrap_or(u32::MAX));
                        let limit = (from + to) as u32 % 300;
                        let first = range.iter().position(|&key| key <= limit).map(|i| from + i);
                        if from < n as usize {
                            assert_eq!(tree.first_at_most(from, to, limit), first, "{from}..{to}");
                        }
                    }
                }
            }
        }
    }
}
