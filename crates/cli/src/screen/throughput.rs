//! The number of units that have left a flow, over the time of a run.

use serde::{Deserialize, Serialize};

use super::thinned::{Thinned, Timed};

/// The maximum number of samples.
const MAX_SAMPLES: usize = 480;

/// Totals at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Seconds since the start.
    pub at_s: f64,
    /// The number of units retired until that moment.
    pub retired: u64,
    /// The number of units dead-lettered until that moment.
    pub dead_lettered: u64,
}

impl Timed for Sample {
    fn at_s(&self) -> f64 {
        self.at_s
    }
}

/// The samples of one run.
#[derive(Debug, Clone)]
pub(crate) struct Throughput(Thinned<Sample>);

impl Default for Throughput {
    fn default() -> Self {
        Self(Thinned::new(MAX_SAMPLES))
    }
}

impl Throughput {
    /// Adds a sample, unless the previous sample is too recent.
    pub(crate) fn note(&mut self, sample: Sample) {
        self.0.note(sample);
    }

    /// Adds the totals of the run's end, however recent the previous sample is.
    pub(crate) fn end(&mut self, sample: Sample) {
        self.0.end(sample);
    }

    /// The samples, oldest first.
    pub(crate) fn samples(&self) -> &[Sample] {
        self.0.samples()
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
            let samples = throughput.samples();
            assert_eq!(samples.last().unwrap().retired, u64::from(length) * 3 + 5, "{length}");
            assert!(samples.windows(2).all(|pair| pair[0].at_s < pair[1].at_s), "{length}");
        }
    }

    #[test]
    fn a_run_that_ends_at_once_has_its_totals() {
        let mut throughput = Throughput::default();
        throughput.end(at(0, 0));
        assert_eq!(throughput.samples(), [at(0, 0)]);
    }
}
