//! The distribution of numbers over buckets.

use std::ops::RangeInclusive;

use super::shards::Shards;

/// Binary logarithm of the number of buckets per power of two.
const DIVIDED: u32 = 3;
/// Numbers below this have one bucket each.
const SMALL: u64 = 1 << DIVIDED;
/// Buckets of the small numbers and of each of the 61 further powers of two.
const BUCKETS: usize = (SMALL as usize) * (64 - DIVIDED as usize + 1);

/// The distribution of recorded numbers: counts them in buckets an eighth of a power of two wide, over the whole range
/// of `u64`.
///
/// Recording a number is one addition to the word of its bucket, which costs as much as an addition to a
/// [`Counter`](super::Counter). Takes one page per processor in use.
///
/// ```
/// use millstream_sync::counter::Histogram;
///
/// let latency_ns = Histogram::new();
/// (1..=1000).for_each(|ns| latency_ns.record(ns));
/// let distribution = latency_ns.distribution();
/// assert_eq!(distribution.count(), 1000);
/// assert!(distribution.quantile(0.99).unwrap().contains(&990));
/// ```
#[derive(Debug)]
pub struct Histogram(Shards<BUCKETS>);

/// The counts of a [`Histogram`] at about one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    counts: Vec<u64>,
    count: u64,
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Histogram(Shards::new())
    }

    /// Records a number. Progress and ordering are those of [`Counter::add`](super::Counter::add).
    #[inline]
    pub fn record(&self, value: u64) {
        self.0.add(bucket(value), 1);
    }

    /// The distribution of the numbers recorded so far. Each count means what a counter's [sum](super) means.
    /// Allocates; takes O(processors).
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let words = self.0.words();
        let counts: Vec<u64> =
            (0..BUCKETS).map(|bucket| words.word(bucket).copies().fold(0, u64::wrapping_add)).collect();
        Distribution { count: counts.iter().copied().fold(0, u64::wrapping_add), counts }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// The number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The range of numbers of the bucket that contains the `q` quantile: at least a share `q` of all numbers is in or
    /// below this bucket. The largest number of the range exceeds the smallest by at most an eighth. `None` if there
    /// are no numbers.
    ///
    /// # Panics
    /// If `q` is outside 0 to 1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<RangeInclusive<u64>> {
        assert!((0.0..=1.0).contains(&q), "a quantile lies between 0 and 1, not at {q}");
        // The first number is quantile 0, the last one quantile 1.
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        // The product may round up past an integer: 0.55 times 100 comes out above 55.
        let rank = if rank > 1 && (rank - 1) as f64 / self.count as f64 >= q { rank - 1 } else { rank };
        let mut seen = 0;
        self.buckets().find_map(|(values, count)| {
            seen += count;
            (seen >= rank).then_some(values)
        })
    }

    /// The non-empty buckets in ascending order, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, &count)| (values(bucket), count))
    }
}

/// The bucket of a number: the exponent picks a row of eight buckets, and the three bits after the leading one pick the
/// bucket in that row.
#[inline]
fn bucket(value: u64) -> usize {
    if value < SMALL {
        return value as usize;
    }
    let exponent = value.ilog2();
    let digits = (value >> (exponent - DIVIDED)) & (SMALL - 1);
    ((exponent - DIVIDED + 1) as usize) * SMALL as usize + digits as usize
}

/// The numbers that fall into a bucket.
fn values(bucket: usize) -> RangeInclusive<u64> {
    let (row, digits) = (bucket / SMALL as usize, bucket as u64 % SMALL);
    let Some(shift) = row.checked_sub(1) else { return digits..=digits };
    let first = (SMALL + digits) << shift;
    first..=first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps_and_are_narrow() {
        assert_eq!(*values(0).start(), 0);
        assert_eq!(*values(BUCKETS - 1).end(), u64::MAX);
        for i in 0..BUCKETS {
            let values = values(i);
            assert_eq!((bucket(*values.start()), bucket(*values.end())), (i, i));
            assert!(values.end() - values.start() <= values.start() / 8);
            if i > 0 {
                assert_eq!(*super::values(i - 1).end() + 1, *values.start());
            }
        }
    }

    #[test]
    fn a_rank_that_rounds_up_is_not_the_next_one() {
        // In floating point, 0.07 times 100 is more than 7.
        let histogram = Histogram::new();
        (0..100).for_each(|number| histogram.record(number));
        assert_eq!(histogram.distribution().quantile(0.07), Some(6..=6));
    }

    #[test]
    fn quantiles_are_those_of_the_numbers() {
        let histogram = Histogram::new();
        assert_eq!(histogram.distribution().quantile(0.5), None);
        let numbers: Vec<u64> = (0..10_000_u64).map(|i| i * i).collect();
        numbers.iter().for_each(|&number| histogram.record(number));
        let distribution = histogram.distribution();
        assert_eq!(distribution.count(), 10_000);
        for q in [0.0, 0.001, 0.5, 0.9, 0.999, 1.0] {
            let rank = ((q * 10_000.0_f64).ceil() as usize).max(1);
            let values = distribution.quantile(q).unwrap();
            assert!(values.contains(&numbers[rank - 1]), "{q}: {values:?}");
        }
    }
}
