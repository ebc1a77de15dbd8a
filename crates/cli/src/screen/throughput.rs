//! How many units left a flow, over its time.
//!
//! Samples of the totals are taken while the flow runs. When there are `MAX_SAMPLES` of them, every second one is dropped and
//! the others come half as often, so that a run of a week takes no more room than one of a minute.

use serde::Serialize;

/// The most samples that are kept.
const MAX_SAMPLES: usize = 480;

/// Spans of time that are told apart in a picture.
const MAX_SPANS: usize = 60;

/// Totals at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the start.
    pub at_s: f64,
    /// Units retired by then.
    pub retired: u64,
    /// Units dead-lettered by then.
    pub dead_lettered: u64,
}

/// The samples of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throughput {
    samples: Vec<Sample>,
    /// The least time between two samples.
    spacing_s: f64,
}

/// The units that left the flow in a span of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    /// Its begin, in seconds since the start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Units retired, a second.
    pub retired_per_s: f64,
    /// Units dead-lettered, a second.
    pub dead_per_s: f64,
}

impl Throughput {
    /// Takes a sample, unless the last one is too young.
    pub(crate) fn note(&mut self, sample: Sample) {
        if self.samples.last().is_some_and(|last| sample.at_s < last.at_s + self.spacing_s) {
            return;
        }
        self.samples.push(sample);
        if self.samples.len() == MAX_SAMPLES {
            let length_s = sample.at_s - self.samples[0].at_s;
            self.spacing_s = length_s / (MAX_SAMPLES / 2) as f64;
            let mut odd = true;
            self.samples.retain(|_| {
                odd = !odd;
                odd
            });
        }
    }

    /// Takes the totals of the end, whenever the last sample was.
    pub(crate) fn end(&mut self, sample: Sample) {
        while self.samples.last().is_some_and(|last| last.at_s >= sample.at_s) {
            self.samples.pop();
        }
        self.samples.push(sample);
    }

    /// The samples, oldest first.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The rates between the samples, in at most `MAX_SPANS` spans; the first begins at the start.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let step = self.samples.len().div_ceil(MAX_SPANS).max(1);
        let mut ends: Vec<&Sample> = self.samples.iter().skip(step - 1).step_by(step).collect();
        ends.extend(self.samples.last().filter(|last| ends.last() != Some(last)));
        // What is left at the end is no span of its own if it is short: its rate would be chance.
        if let [.., before, short, last] = ends[..]
            && last.at_s - short.at_s < (short.at_s - before.at_s) / 2.0
        {
            ends.remove(ends.len() - 2);
        }
        let mut from = Sample::default();
        let mut spans = Vec::new();
        for to in ends {
            let seconds = to.at_s - from.at_s;
            if seconds <= 0.0 {
                continue;
            }
            let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds;
            spans.push(Span {
                from_s: from.at_s,
                to_s: to.at_s,
                retired_per_s: per_s(from.retired, to.retired),
                dead_per_s: per_s(from.dead_lettered, to.dead_lettered),
            });
            from = *to;
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tenths: u32, retired: u64) -> Sample {
        Sample { at_s: f64::from(tenths) / 10.0, retired, dead_lettered: 0 }
    }

    #[test]
    fn a_run_of_any_length_has_few_samples_and_all_units() {
        for length in [1, 2, 59, 60, 61, 479, 480, 481, 10_000, 100_000] {
            let mut throughput = Throughput::default();
            for tenth in 1..=length {
                throughput.note(at(tenth, u64::from(tenth) * 3));
            }
            throughput.end(at(length + 1, u64::from(length) * 3 + 5));
            assert!(throughput.samples().len() <= MAX_SAMPLES, "{length}: {}", throughput.samples().len());
            let spans = throughput.spans();
            assert!((1..=MAX_SPANS).contains(&spans.len()), "{length}: {}", spans.len());
            let units: f64 = spans.iter().map(|span| span.retired_per_s * (span.to_s - span.from_s)).sum();
            assert_eq!(units.round() as u64, u64::from(length) * 3 + 5, "{length}");
            assert!(spans.windows(2).all(|pair| pair[0].to_s == pair[1].from_s));
        }
    }

    #[test]
    fn a_run_that_ends_at_once_has_no_spans() {
        let mut throughput = Throughput::default();
        throughput.end(at(0, 0));
        assert_eq!(throughput.spans(), []);
    }
}
