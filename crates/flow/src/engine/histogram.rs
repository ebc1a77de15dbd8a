//! Distributions of times.

use hdrhistogram::Histogram;

use crate::snapshot::Quantiles;

/// The longest time that a distribution resolves: one hour. Longer times are recorded as one hour.
const MAX_NS: u64 = 3_600_000_000_000;

/// A distribution of times, and their sum.
pub(crate) struct Times {
    histogram: Histogram<u64>,
    /// This sum is exact, unlike the histogram's rounded values, because the exported sum must never fall.
    total_ns: u64,
}

impl Times {
    pub(crate) fn new() -> Self {
        // Two digits: each bucket is within 1 % of its values, and a histogram takes 36 KiB.
        let histogram = Histogram::new_with_bounds(1, MAX_NS, 2).expect("the bounds are constant and valid");
        Times { histogram, total_ns: 0 }
    }

    /// Records `n` values of `ns` each.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64, n: u64) {
        self.histogram.saturating_record_n(ns, n);
        self.total_ns = self.total_ns.saturating_add(ns.saturating_mul(n));
    }

    /// The values at these ascending quantiles. They are found in one pass, because a snapshot queries many
    /// distributions under the flow's mutex.
    fn at<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let units = self.histogram.len();
        let mut found = [self.histogram.max(); N];
        let mut wanted = quantiles
            .map(|quantile| ((quantile * units as f64).ceil() as u64).max(1))
            .into_iter()
            .enumerate()
            .peekable();
        let mut passed = 0;
        for step in self.histogram.iter_recorded() {
            passed += step.count_since_last_iteration();
            while let Some((nth, _)) = wanted.next_if(|&(_, rank)| passed >= rank) {
                found[nth] = step.value_iterated_to();
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        found
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let histogram = &self.histogram;
        if histogram.is_empty() {
            return Quantiles::default();
        }
        let [p50, p90, p99] = self.at([0.5, 0.9, 0.99]);
        Quantiles {
            p50,
            p90,
            p99,
            max: histogram.max(),
            mean: self.total_ns / histogram.len(),
            count: histogram.len(),
            total: self.total_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent_and_long_times_saturate() {
        let mut times = Times::new();
        for ns in 1..=100_000u64 {
            times.record(ns * 1000, 1);
        }
        let q = times.quantiles();
        for (got, exact) in [(q.p50, 50_000_000u64), (q.p99, 99_000_000), (q.max, 100_000_000)] {
            assert!(got.abs_diff(exact) <= exact / 100, "{got} {exact}");
        }
        assert_eq!([q.p50, q.p90, q.p99], [0.5, 0.9, 0.99].map(|at| times.histogram.value_at_quantile(at)));
        assert_eq!(q.total, 5_000_050_000_000);
        times.record(u64::MAX, 2);
        assert!(times.quantiles().max >= MAX_NS);
        assert_eq!(times.quantiles().total, u64::MAX);
    }
}
