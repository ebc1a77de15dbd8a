//! The numbers of the units of a batch, as ranges: units with consecutive numbers usually stay together.

use super::bytes::{put, put_difference};
use super::sampling::end_of_block;

/// Ranges of consecutive numbers, in the order of the units. Each range has its first number and its length.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Replaces the numbers with `ids`.
    #[inline]
    pub(crate) fn refill(&mut self, ids: impl Iterator<Item = u64>) {
        self.0.clear();
        for id in ids {
            match self.0.last_mut() {
                Some((first, length)) if *first + *length == id => *length += 1,
                _ => self.0.push((id, 1)),
            }
        }
    }

    /// Cuts the ranges at the ends of sampling blocks, and calls `each` with the first number and the length of each
    /// part.
    #[inline]
    pub(crate) fn each_block(&self, mut each: impl FnMut(u64, u64)) {
        for &(mut first, length) in &self.0 {
            let end = first + length;
            while first < end {
                let next = end_of_block(first).min(end);
                each(first, next - first);
                first = next;
            }
        }
    }

    /// The highest number plus one; 0 if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.0.iter().map(|(first, length)| first + length).max().unwrap_or(0)
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.iter().any(|&(first, length)| id.checked_sub(first).is_some_and(|place| place < length))
    }

    /// The numbers, in the order of the units.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|&(first, length)| first..first + length)
    }

    /// Writes each range relative to the end of the previous one, and the first one relative to `from`. Returns the end of
    /// the last one.
    pub(crate) fn put(&self, out: &mut Vec<u8>, mut from: u64) -> u64 {
        for &(first, length) in &self.0 {
            put_difference(out, from, first);
            put(out, length);
            from = first + length;
        }
        from
    }
}

impl FromIterator<u64> for Ranges {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut ranges = Ranges::default();
        ranges.refill(ids.into_iter());
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::bytes::Numbers;

    #[test]
    fn parts_of_ranges_end_at_blocks() {
        let end = end_of_block(0);
        let ranges: Ranges = (end - 2..end * 2 + 1).chain([7]).collect();
        let mut parts = Vec::new();
        ranges.each_block(|first, units| parts.push((first, units)));
        assert_eq!(parts, [(end - 2, 2), (end, end), (end * 2, 1), (7, 1)]);
    }

    #[test]
    fn consecutive_numbers_are_one_range_and_the_order_is_kept() {
        let mut ranges: Ranges = [7, 8, 9, 3, 4, 20].into_iter().collect();
        assert_eq!(ranges.0, [(7, 3), (3, 2), (20, 1)]);
        assert_eq!(ranges.end(), 21);
        assert!(
            [3, 4, 7, 9, 20].iter().all(|&id| ranges.has(id)) && ![0, 2, 5, 6, 10, 21].iter().any(|&id| ranges.has(id))
        );
        let mut out = Vec::new();
        assert_eq!(ranges.put(&mut out, 5), 21);
        let mut numbers = Numbers(&out);
        let mut from = 5;
        for (first, length) in [(7, 3), (3, 2), (20, 1)] {
            assert_eq!((numbers.next_from(from), numbers.next()), (Some(first), Some(length)));
            from = first + length;
        }
        ranges.refill(std::iter::empty());
        assert_eq!((ranges.end(), ranges.put(&mut out, 5)), (0, 5));
    }
}
