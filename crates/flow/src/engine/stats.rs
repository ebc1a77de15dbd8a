//! Counts and distributions of a stage's queue and workers.

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

pub(crate) struct StageStats {
    pub(crate) units: u64,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) requeued: u64,
    pub(crate) busy_ns: u64,
    /// A running mean of the service time; 0 before the first unit.
    pub(crate) mean_ns: u64,
    /// A decaying maximum of the service time: an older unit weighs less with every unit since.
    pub(crate) slow_ns: u64,
    pub(crate) service: Histogram<u64>,
    pub(crate) wait: Histogram<u64>,
    /// The sum and number of waits, by resource.
    pub(crate) waited: Vec<(u64, u64)>,
    pub(crate) waited_memory: (u64, u64),
    pub(crate) waited_worker: (u64, u64),
}

impl StageStats {
    pub(crate) fn new(resources: usize) -> Self {
        StageStats {
            units: 0,
            failures: 0,
            retries: 0,
            dead_lettered: 0,
            requeued: 0,
            busy_ns: 0,
            mean_ns: 0,
            slow_ns: 0,
            service: histogram(),
            wait: histogram(),
            waited: vec![(0, 0); resources],
            waited_memory: (0, 0),
            waited_worker: (0, 0),
        }
    }

    /// Records that `n` units were served in `ns` each.
    pub(crate) fn served(&mut self, ns: u64, n: u64) {
        self.service.saturating_record_n(ns, n);
        let sample = ns.max(1);
        self.slow_ns = sample.max(self.slow_ns - self.slow_ns / 64);
        self.mean_ns = match self.mean_ns {
            0 => sample,
            mean => mean.saturating_mul(7).saturating_add(sample) / 8,
        }
        .max(1);
    }

    /// Records that `n` units were in the queue for `ns` each.
    pub(crate) fn waited_in_queue(&mut self, ns: u64, n: u64) {
        self.wait.saturating_record_n(ns, n);
        self.waited_worker.0 = self.waited_worker.0.saturating_add(ns.saturating_mul(n));
        self.waited_worker.1 += n;
    }

    pub(crate) fn waited_for_resource(&mut self, resource: u16, ns: u64) {
        let (total, count) = &mut self.waited[usize::from(resource)];
        *total = total.saturating_add(ns);
        *count += 1;
    }

    pub(crate) fn waited_for_memory(&mut self, ns: u64) {
        self.waited_memory.0 = self.waited_memory.0.saturating_add(ns);
        self.waited_memory.1 += 1;
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
