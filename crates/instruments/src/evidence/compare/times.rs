//! The times of a command's runs, and their summary.

use std::time::Duration;

/// The times of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) wall: Duration,
    /// User time of the command and of the children that it has waited for.
    pub(super) user: Duration,
    /// System time of the same processes.
    pub(super) system: Duration,
    /// The exit status; `None` for a run that a signal ended.
    pub(super) status: Option<i32>,
}

/// The times of all runs of a command, in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    pub(super) wall: Vec<f64>,
    pub(super) statuses: Vec<Option<i32>>,
    user: f64,
    system: f64,
}

/// A summary of times, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    pub(super) mean: f64,
    /// The standard deviation, of two runs or more.
    pub(super) deviation: Option<f64>,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The mean user time.
    pub(super) user: f64,
    /// The mean system time.
    pub(super) system: f64,
    /// Runs that took far longer or shorter than the others.
    pub(super) outliers: usize,
}

impl Times {
    pub(super) fn add(&mut self, took: &Took) {
        self.wall.push(took.wall.as_secs_f64());
        self.statuses.push(took.status);
        self.user += took.user.as_secs_f64();
        self.system += took.system.as_secs_f64();
    }

    /// Returns the summary, or `None` if there was no run.
    pub(super) fn summary(&self) -> Option<Summary> {
        let mut sorted = self.wall.clone();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
        Some(Summary {
            mean,
            deviation: (sorted.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
            median: median(&sorted),
            min,
            max,
            user: self.user / n,
            system: self.system / n,
            outliers: outliers(&sorted),
        })
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// Counts the values that are more than ten standard deviations from the median. The standard deviation is estimated
/// from the median absolute deviation.
fn outliers(sorted: &[f64]) -> usize {
    /// The standard deviation of a normal distribution, in median absolute deviations.
    const DEVIATION: f64 = 1.482_602_218_505_602;
    const FAR: f64 = 10.0;
    let middle = median(sorted);
    let mut distances: Vec<f64> = sorted.iter().map(|x| (x - middle).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let limit = FAR * DEVIATION * median(&distances);
    if limit > 0.0 { distances.iter().filter(|distance| **distance > limit).count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_textbooks_figures() {
        let mut times = Times::default();
        assert!(times.summary().is_none());
        for ms in [10, 12, 11, 13, 500] {
            let took = Took {
                wall: Duration::from_millis(ms),
                user: Duration::from_millis(4),
                system: Duration::from_millis(2),
                status: Some(0),
            };
            times.add(&took);
        }
        let found = times.summary().unwrap();
        let near = |found: f64, ms: f64| (found * 1e3 - ms).abs() < 1e-9;
        assert!(near(found.mean, 109.2) && near(found.median, 12.0) && near(found.min, 10.0) && near(found.max, 500.0));
        assert!(near(found.user, 4.0) && near(found.system, 2.0) && found.outliers == 1, "{found:?}");
        assert!((found.deviation.unwrap() - 0.218_474).abs() < 1e-5, "{found:?}");
    }
}
