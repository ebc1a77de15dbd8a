//! Distributions of times.

use hdrhistogram::Histogram;

use crate::snapshot::Quantiles;

/// The longest time that a distribution resolves: one hour. Longer times are recorded as this.
const MAX_NS: u64 = 3_600_000_000_000;

pub(crate) fn histogram() -> Histogram<u64> {
    // Two digits: each bucket is within 1 % of its values, and a histogram takes 36 KiB.
    Histogram::new_with_bounds(1, MAX_NS, 2).expect("the bounds are constant and valid")
}

pub(crate) fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    if histogram.is_empty() {
        return Quantiles::default();
    }
    Quantiles {
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
        mean: histogram.mean() as u64,
        count: histogram.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent_and_long_times_saturate() {
        let mut h = histogram();
        for ns in 1..=100_000u64 {
            h.saturating_record(ns * 1000);
        }
        let q = quantiles(&h);
        for (got, exact) in [(q.p50, 50_000_000u64), (q.p99, 99_000_000), (q.max, 100_000_000)] {
            assert!(got.abs_diff(exact) <= exact / 100, "{got} {exact}");
        }
        h.saturating_record(u64::MAX);
        assert!(quantiles(&h).max >= MAX_NS);
    }
}
