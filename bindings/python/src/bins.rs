//! Balls and bins.

use millstream_csm::bins::Poissonised;
use millstream_csm::random::Random;
use pyo3::prelude::*;

use crate::error::question;

/// Draws the fill of all bins at the moment when the first bin is full.
///
/// Balls fall uniformly into `bins` bins of `capacity` balls each. The draws are exact and independent; the same seed
/// gives the same numbers everywhere.
///
/// >>> 0.95 < Bins(1000, 30_000, seed=1).fill() < 1
/// True
#[pyclass(module = "millstream.csm")]
pub(crate) struct Bins {
    bins: millstream_csm::bins::Bins,
    sampler: Poissonised,
    random: Random,
}

#[pymethods]
impl Bins {
    #[new]
    #[pyo3(signature = (bins, capacity, *, seed))]
    fn new(bins: u32, capacity: u32, seed: u64) -> PyResult<Self> {
        let bins = millstream_csm::bins::Bins::new(bins, capacity).map_err(question)?;
        Ok(Self { bins, sampler: Poissonised::new(bins), random: Random::seeded(seed) })
    }

    /// Runs one trial: the share of all places in use when the first bin is full.
    fn fill(&mut self) -> f64 {
        self.bins.fill(self.sampler.balls(&mut self.random))
    }

    /// Runs many trials.
    fn fills(&mut self, py: Python<'_>, trials: usize) -> Vec<f64> {
        py.detach(|| (0..trials).map(|_| self.fill()).collect())
    }
}
