//! The conclusions that the samples support.

use millstream_csm::compare::Paired;
use millstream_csm::means::{MeanDriver, MeanSetup};
use millstream_csm::{Claim, Progress, quantile};

use crate::error::Error;
use crate::fence::load::Load;
use crate::fence::method::{DAEMON, GLOBAL, NAMES};
use crate::fence::sample::Samples;
use crate::table;

/// Each statement is wrong with at most this probability.
const ERROR: f64 = 1e-3;
/// Bound on the absolute value of the logarithm of a ratio.
const WIDEST: f64 = 16.0;
/// The required speed of the daemon, as a multiple of `global`'s.
const FACTOR: f64 = 2.8;

/// Renders the quantiles of each kind.
#[must_use]
pub fn table(samples: &Samples) -> String {
    let header = ["ms", "p50", "p90", "p99", "p99.9", "worst", "mean"];
    let rows = NAMES.iter().zip(samples).map(|(name, samples)| {
        let sorted = sorted(samples);
        let at = |q: f64| format!("{:.3}", sorted[((sorted.len() - 1) as f64 * q).round() as usize]);
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        [(*name).to_owned(), at(0.5), at(0.9), at(0.99), at(0.999), at(1.0), format!("{mean:.3}")]
    });
    table::render(header, rows)
}

/// States the conclusions in words. Their error bounds are valid although several kinds are examined.
///
/// # Errors
/// Fails if a time is not a positive number.
pub fn verdicts(samples: &Samples, load: Load) -> Result<Vec<String>, Error> {
    let failed = |error: millstream_csm::Error| Error::new(error.to_string());
    let mut lines = Vec::new();
    for method in DAEMON {
        let name = NAMES[method];
        let mut mean =
            MeanDriver::new(&MeanSetup::new(Claim::AtLeast(FACTOR.ln()), ERROR, -WIDEST, WIDEST)).map_err(failed)?;
        let mut median = Paired::new(ERROR, 1.0).map_err(failed)?;
        let (mut sum, mut as_fast) = (0.0, 0_usize);
        for (ours, global) in samples[method].iter().zip(&samples[GLOBAL]) {
            let log = (global / ours).ln();
            sum += log;
            as_fast += usize::from(ours <= global);
            mean.observe(log).map_err(failed)?;
            median.observe(*ours, *global).map_err(failed)?;
        }
        let count = samples[method].len();
        let status = mean.status();
        let verdict = match status.progress {
            Progress::Decided(verdict) => format!("{verdict:?}").to_lowercase(),
            _ => "is undecided".to_owned(),
        };
        lines.push(format!(
            "{name}, {}: {:.2} times as fast as global in geometric mean ({:.2} to {:.2}); at least {FACTOR} {verdict}; \
             median ratio {:.2} to {:.2}; as fast in {:.2} % of the pairs.",
            load.title(),
            (sum / count as f64).exp(),
            status.interval.low.exp(),
            status.interval.high.exp(),
            median.status().map_err(failed)?.interval.low,
            median.status().map_err(failed)?.interval.high,
            100.0 * as_fast as f64 / count as f64,
        ));
        let tail = quantile::interval(&sorted(&samples[method]), 0.99, ERROR).map_err(failed)?;
        lines.push(format!("{name}, {}: p99 between {:.3} and {:.3} ms.", load.title(), tail.low, tail.high));
    }
    lines.push(format!("If the rounds are alike, each statement is wrong with a probability of at most {ERROR}."));
    Ok(lines)
}

/// The samples in ascending order.
#[must_use]
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
