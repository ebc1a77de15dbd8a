//! Means of bounded numbers: latencies with a timeout, ratios, scores.
//!
//! A yes-or-no question about each number ("is it under 50 ms?") needs no bounds and is often the better objective: use
//! a [`Driver`](crate::Driver). A mean needs values with known bounds, because a single value beyond them could move
//! the mean anywhere.
//!
//! The evidence is the empirical Bernstein process of S. Howard, A. Ramdas, J. McAuliffe and J. Sekhon ("Time-uniform,
//! nonparametric, nonasymptotic confidence sequences", 2021): it estimates the variance from the data, so that few
//! observations suffice if the values hardly differ. Tests and interval are computed from three sums alone, the
//! [`Moments`], so nothing else needs to be stored between runs.
//!
//! ```
//! use millstream_csm::means::{MeanDriver, MeanSetup};
//! use millstream_csm::{Claim, Progress, Verdict};
//!
//! // The mean latency is at most 20 ms; no request takes longer than the timeout of 200 ms.
//! let mut driver = MeanDriver::new(&MeanSetup::new(Claim::AtMost(20.0), 1e-6, 0.0, 200.0))?;
//! let mut latency_ms = 0.0;
//! while driver.observe(10.0 + latency_ms % 5.0)?.is_none() {
//!     latency_ms += 1.0;
//! }
//! let status = driver.status();
//! assert_eq!(status.progress, Progress::Decided(Verdict::Holds));
//! assert!(status.interval.contains(12.0) && status.trials < 1000);
//! # Ok::<(), millstream_csm::Error>(())
//! ```

mod bernstein;
mod decide;
mod moments;
mod setup;

pub use self::{
    decide::{MeanDriver, MeanStatus},
    moments::Moments,
    setup::MeanSetup,
};
