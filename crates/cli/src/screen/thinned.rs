//! Samples over the time of a run. Their number is limited to what a picture can show, however long the run is.

/// A sample with a time.
pub(crate) trait Timed {
    /// Seconds since the start.
    fn at_s(&self) -> f64;
}

/// Samples, oldest first. When there are `most` samples, every second sample is dropped, and later samples are half as
/// frequent. So a run of a week needs no more memory than a run of a minute.
#[derive(Debug, Clone)]
pub(crate) struct Thinned<T> {
    samples: Vec<T>,
    most: usize,
    /// The minimum time between two samples.
    spacing_s: f64,
}

impl<T: Timed> Thinned<T> {
    /// Creates an empty list of at most `most` samples.
    pub(crate) fn new(most: usize) -> Self {
        Self { samples: Vec::new(), most, spacing_s: 0.0 }
    }

    /// Whether a sample at this moment is due.
    pub(crate) fn is_due(&self, at_s: f64) -> bool {
        self.samples.last().is_none_or(|last| at_s >= last.at_s() + self.spacing_s)
    }

    /// Adds a sample, unless the previous sample is too recent.
    pub(crate) fn note(&mut self, sample: T) {
        if !self.is_due(sample.at_s()) {
            return;
        }
        let length_s = sample.at_s() - self.samples.first().unwrap_or(&sample).at_s();
        self.samples.push(sample);
        if self.samples.len() == self.most {
            self.spacing_s = length_s / (self.most / 2) as f64;
            let mut odd = true;
            self.samples.retain(|_| {
                odd = !odd;
                odd
            });
        }
    }

    /// Adds the sample of the run's end, however recent the previous sample is.
    pub(crate) fn end(&mut self, sample: T) {
        while self.samples.last().is_some_and(|last| last.at_s() >= sample.at_s()) {
            self.samples.pop();
        }
        self.samples.push(sample);
    }

    /// The samples, oldest first.
    pub(crate) fn samples(&self) -> &[T] {
        &self.samples
    }
}
